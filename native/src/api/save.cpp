// Saving, restoring and hashing worlds.
#include "api/save.h"

#include <string.h>

#include <new>

#include "api/call.h"
#include "runtime/hash.h"

namespace doorstep {
namespace {

int64_t saved_world_bytes(const Simulator& simulator) {
    return saved_parts(simulator.simulation(), simulator.model()).bytes();
}

constexpr char kMagic[8] = {'D', 'O', 'O', 'R', 'S', 'A', 'V', 'E'};

ds_status fail_damaged(const char* what, uint64_t found, uint64_t expected) {
    return fail(DS_STATUS_INVALID_STATE, "data", "pass the bytes of a save, whole and unchanged",
                "the save is damaged: %s is %lu; it must be %lu", what, found, expected);
}

ds_status check_origin(const SaveHeader& header) {
    if (memcmp(header.magic, kMagic, sizeof kMagic) != 0) {
        return fail(DS_STATUS_INVALID_STATE, "data", "pass the bytes of a save",
                    "these bytes are not a save");
    }
    if (header.format_version != DS_SAVE_FORMAT_VERSION) {
        return fail(DS_STATUS_INVALID_STATE, "data", "restore it with the version of doorstep that wrote it",
                    "the save has format version %u; this library reads version %d", header.format_version,
                    DS_SAVE_FORMAT_VERSION);
    }
    return DS_STATUS_OK;
}

ds_status check_length(const SaveHeader& header, uint64_t worlds_bytes) {
    // Divided, not multiplied: a product of arbitrary numbers may overflow
    const uint64_t each = header.saved_world_bytes;
    if (each != 0 && header.count == worlds_bytes / each && worlds_bytes % each == 0) return DS_STATUS_OK;
    return fail_damaged("its length after the header", worlds_bytes, header.count * each);
}

ds_status copy_worlds(const char* from, uint64_t bytes, CheckedSave* save) {
    save->worlds.reset(new (std::nothrow) char[bytes]);
    if (!save->worlds) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "data", "restore fewer worlds at a time",
                    "no memory for a copy of the save, %lu bytes", bytes);
    }
    memcpy(save->worlds.get(), from, bytes);
    return DS_STATUS_OK;
}

ds_status check_undamaged(const SaveHeader& header, const char* worlds) {
    const uint64_t checksum = save_checksum(header, worlds);
    return checksum == header.checksum ? DS_STATUS_OK : fail_damaged("its checksum", checksum, header.checksum);
}

ds_status check_version(const SaveHeader& saved) {
    char own[sizeof saved.library_version] = {};
    static_assert(sizeof DS_VERSION_STRING <= sizeof own);
    memcpy(own, DS_VERSION_STRING, sizeof DS_VERSION_STRING);
    if (memcmp(saved.library_version, own, sizeof own) == 0) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_STATE, "data", "restore it with the version of doorstep that wrote it",
                "the save comes from doorstep %.20s; this is doorstep %s", saved.library_version, own);
}

ds_status check_fits(const SaveHeader& saved, const SaveHeader& own) {
    struct {
        const char* name;
        uint64_t saved, own;
    } const rows[] = {
#define DS_COMPARE(field) {#field, static_cast<uint64_t>(saved.field), static_cast<uint64_t>(own.field)}
        DS_COMPARE(num_agents),  DS_COMPARE(num_bodies),     DS_COMPARE(num_statics), DS_COMPARE(num_buttons),
        DS_COMPARE(num_doors),   DS_COMPARE(episode_length), DS_COMPARE(auto_reset),  DS_COMPARE(padding),
        DS_COMPARE(world_bytes), DS_COMPARE(saved_world_bytes),
#undef DS_COMPARE
    };
    for (const auto& row : rows) {
        if (row.saved == row.own) continue;
        return fail(DS_STATUS_INVALID_STATE, "data", "restore into a simulator with the same rules and sizes",
                    "%s is %lu in the save and %lu in this simulator", row.name, row.saved, row.own);
    }
    return DS_STATUS_OK;
}

ds_status check_worlds(const Simulator& simulator, const SaveHeader& header, const char* worlds) {
    for (uint64_t i = 0; i < header.count; ++i) {
        const char* world = worlds + i * header.saved_world_bytes;
        const int32_t episode_length = simulator.simulation().rules.episode_length;
        if (simulator.model().is_valid(world, simulator.model().num_agents, episode_length)) continue;
        return fail(DS_STATUS_INVALID_STATE, "data", "pass the bytes of a save, unchanged",
                    "world %lu of the save has an index, a counter or a mass outside its range", i);
    }
    return DS_STATUS_OK;
}

void write_sizes(const WorldModel& model, SaveHeader* header) {
    header->num_agents = model.num_agents;
    header->num_bodies = model.num_bodies;
    header->num_statics = model.num_statics;
    header->num_buttons = model.num_buttons;
    header->num_doors = model.num_doors;
    header->world_bytes = model.world_bytes;
}

uint64_t save_size(const Simulator& simulator, uint64_t count) {
    return sizeof(SaveHeader) + count * static_cast<uint64_t>(saved_world_bytes(simulator));
}

ds_status check_size(const char* argument, const char* hint, uint64_t given, uint64_t expected) {
    if (given == expected) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, hint, "%s is %lu; it must be %lu", argument, given, expected);
}

// Checks that the worlds of a save fit the slots: those passed, or the first ones.
ds_status check_slots(const Simulator& simulator, const SaveHeader& header, const int64_t* worlds,
                      uint64_t count) {
    const uint64_t saved = header.count;
    if (worlds && count != saved) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "worlds", "pass one slot per world of the save",
                    "%lu slots are passed; the save holds %lu worlds", count, saved);
    }
    const int64_t num_worlds = simulator.config().num_worlds;
    if (saved > static_cast<uint64_t>(num_worlds)) {
        return fail(DS_STATUS_INVALID_STATE, "data", "restore into a simulator with enough worlds",
                    "the save holds %lu worlds; this simulator has %ld", saved, num_worlds);
    }
    return DS_STATUS_OK;
}

}  // namespace

SaveHeader make_save_header(const Simulator& simulator, uint64_t count) {
    const WorldModel& model = simulator.model();
    SaveHeader header{};
    memcpy(header.magic, kMagic, sizeof kMagic);
    header.format_version = DS_SAVE_FORMAT_VERSION;
    static_assert(sizeof DS_VERSION_STRING <= sizeof header.library_version);
    memcpy(header.library_version, DS_VERSION_STRING, sizeof DS_VERSION_STRING);
    write_sizes(model, &header);
    header.episode_length = static_cast<int32_t>(simulator.config().episode_length);
    header.auto_reset = simulator.config().auto_reset;
    header.saved_world_bytes = static_cast<uint64_t>(saved_world_bytes(simulator));
    header.count = count;
    return header;
}

uint64_t save_checksum(SaveHeader header, const char* worlds) {
    header.checksum = 0;
    return hash_bytes(&header, sizeof header) + hash_bytes(worlds, header.count * header.saved_world_bytes);
}

namespace {

// A complete and undamaged save, of any worlds.
ds_status read_bytes(const void* data, uint64_t bytes, CheckedSave* save) {
    SaveHeader& header = save->header;
    if (bytes < sizeof header) {
        return fail(DS_STATUS_INVALID_STATE, "data", "pass the bytes of a save, whole and unchanged",
                    "%lu bytes are too few for a save, which begins with a header of %zu", bytes, sizeof header);
    }
    memcpy(&header, data, sizeof header);
    const uint64_t worlds_bytes = bytes - sizeof header;
    if (const ds_status status = check_origin(header)) return status;
    if (const ds_status status = check_length(header, worlds_bytes)) return status;
    const char* given = static_cast<const char*>(data) + sizeof header;
    if (const ds_status status = copy_worlds(given, worlds_bytes, save)) return status;
    if (const ds_status status = check_undamaged(header, save->worlds.get())) return status;
    return check_version(header);
}

// ---- States

// Worlds of which other numbers than these can be saved are none of this library's.
ds_status find_model(const SaveHeader& header, const WorldModel** model) {
    const bool plays_levels = header.num_statics == DS_LEVEL_MAX_STATICS;
    if (const ds_status status = check_range("num_agents", "", header.num_agents, 1, DS_MAX_AGENTS)) return status;
    *model = &prepared_model({header.num_agents, plays_levels});
    SaveHeader expected = header;
    expected.padding = 0;
    write_sizes(**model, &expected);
    return check_fits(header, expected);
}

ds_status check_block(const WorldModel& model, const SaveHeader& header, const char* block) {
    if (header.saved_world_bytes < header.world_bytes ||
        !model.is_valid(block, model.num_agents, header.episode_length)) {
        return fail(DS_STATUS_INVALID_STATE, "data", "pass the bytes of a save, unchanged",
                    "the world of the save has an index, a counter or a mass outside its range");
    }
    EpisodeProgress progress;
    model.read_progress(block, &progress);
    if (!progress.is_over) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_STATE, "data", "save the world before its last step",
                "the episode of the saved world is over");
}

ds_status read_state(const void* data, uint64_t bytes, Ref<SavedState>* state) {
    CheckedSave save;
    if (const ds_status status = read_bytes(data, bytes, &save)) return status;
    const SaveHeader& header = save.header;
    if (header.count != 1) {
        return fail(DS_STATUS_INVALID_STATE, "data", "save the worlds one by one",
                    "the save holds %lu worlds; a state is that of one", header.count);
    }
    const WorldModel* model;
    if (const ds_status status = find_model(header, &model)) return status;
    if (const ds_status status = check_block(*model, header, save.worlds.get())) return status;
    model->absorb_edits(save.worlds.get());
    *state = Ref<SavedState>::adopt(new (std::nothrow) SavedState(*model, header.episode_length, std::move(save.worlds)));
    return *state ? DS_STATUS_OK : fail_memory("a saved state");
}

ds_status fail_state(const char* name, int64_t saved, int64_t own) {
    return fail(DS_STATUS_INVALID_STATE, "state", "go on where the rules are the same",
                "%s is %ld in the saved state and %ld here", name, saved, own);
}

ds_status check_state(const SavedState& state, WorldKind kind, int64_t episode_length) {
    const WorldKind saved = state.model.kind;
    if (saved.num_agents != kind.num_agents) return fail_state("num_agents", saved.num_agents, kind.num_agents);
    if (state.episode_length != episode_length) return fail_state("episode_length", state.episode_length, episode_length);
    if (saved.plays_levels == kind.plays_levels) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_STATE, "state", "create both with max_levels, or both without",
                "max_levels is %s in the saved state and %s here", saved.plays_levels ? "positive" : "0",
                kind.plays_levels ? "positive" : "0");
}

}  // namespace

ds_status read_save(const Simulator& simulator, const void* data, uint64_t bytes, CheckedSave* save) {
    if (const ds_status status = read_bytes(data, bytes, save)) return status;
    const SaveHeader& header = save->header;
    if (const ds_status status = check_fits(header, make_save_header(simulator, header.count))) return status;
    return check_worlds(simulator, header, save->worlds.get());
}

ds_status find_state(ds_saved_state handle, WorldKind kind, int64_t episode_length, Ref<SavedState>* state) {
    *state = saved_states.find(handle, "state");
    return *state ? check_state(**state, kind, episode_length) : last_status();
}

}  // namespace doorstep

using namespace doorstep;

ds_status ds_simulator_save_size(ds_simulator simulator, uint64_t count, uint64_t* bytes) {
    if (!bytes) return fail_null("bytes");
    const Ref<Simulator> found = simulators.find(simulator, "simulator");
    if (!found) return last_status();
    const int64_t num_worlds = found->config().num_worlds, wanted = static_cast<int64_t>(count);
    if (const ds_status status = check_range("count", "a save holds each world at most once", wanted, 0, num_worlds)) {
        return status;
    }
    *bytes = save_size(*found, count);
    return DS_STATUS_OK;
}

ds_status ds_simulator_save(ds_simulator simulator, const int64_t* worlds, uint64_t count, void* buffer,
                            uint64_t bytes) {
    if (!buffer) return fail_null("buffer");
    SimulatorCall call(simulator);
    if (const ds_status status = call.begin_operation()) return status;
    const WorldSelection selection(*call, worlds, count, call->config().num_worlds);
    if (selection.status()) return selection.status();
    const uint64_t selected = static_cast<uint64_t>(selection.list().size);
    if (const ds_status status =
            check_size("bytes", "call ds_simulator_save_size() first", bytes, save_size(*call, selected))) {
        return status;
    }
    SaveHeader header = make_save_header(*call, selected);
    char* saved = static_cast<char*>(buffer) + sizeof header;
    if (const ds_status status = call->save(selection.list(), saved)) return status;
    header.checksum = save_checksum(header, saved);
    memcpy(buffer, &header, sizeof header);
    return DS_STATUS_OK;
}

ds_status ds_simulator_restore(ds_simulator simulator, const void* data, uint64_t bytes, const int64_t* worlds,
                               uint64_t count) {
    if (!data) return fail_null("data");
    SimulatorCall call(simulator);
    if (const ds_status status = call.begin_work()) return status;
    CheckedSave save;
    if (const ds_status status = read_save(*call, data, bytes, &save)) return status;
    if (const ds_status status = check_slots(*call, save.header, worlds, count)) return status;
    const WorldSelection selection(*call, worlds, count, static_cast<int64_t>(save.header.count));
    if (selection.status()) return selection.status();
    if (const ds_status status = call->restore(selection.list(), save.worlds.get())) return status;
    if (const ds_status status = call->refresh(selection.list().mask)) return status;
    return call->update();
}

ds_status ds_saved_state_create(const void* data, uint64_t bytes, ds_saved_state* state) {
    if (!data) return fail_null("data");
    if (!state) return fail_null("state");
    if (const ds_status status = check_cpu()) return status;
    Ref<SavedState> read;
    const ds_status status = read_state(data, bytes, &read);
    return status ? status : give(saved_states, read, "a saved state", state);
}

ds_status ds_saved_state_release(ds_saved_state state) { return saved_states.release(state, "state"); }

ds_status ds_simulator_hash(ds_simulator simulator, const int64_t* worlds, uint64_t count, uint64_t* hash) {
    if (!hash) return fail_null("hash");
    SimulatorCall call(simulator);
    if (const ds_status status = call.begin_operation()) return status;
    const WorldSelection selection(*call, worlds, count, call->config().num_worlds);
    if (selection.status()) return selection.status();
    return call->hash(selection.list().mask, nullptr, hash);
}

ds_status ds_simulator_world_hashes(ds_simulator simulator, uint64_t* hashes, uint64_t count) {
    if (!hashes) return fail_null("hashes");
    SimulatorCall call(simulator);
    if (const ds_status status = call.begin_operation()) return status;
    const uint64_t num_worlds = static_cast<uint64_t>(call->config().num_worlds);
    if (const ds_status status = check_size("count", "pass room for one hash per world", count, num_worlds)) {
        return status;
    }
    uint64_t sum;
    return call->hash(nullptr, hashes, &sum);
}
