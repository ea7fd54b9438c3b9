// Saving, restoring and hashing worlds.
#include <string.h>

#include "api/call.h"
#include "api/save_format.h"
#include "exec/saved_world.h"

namespace doorstep {
namespace {

uint64_t save_size(const Simulator& simulator, uint64_t count) {
    return sizeof(SaveHeader) + count * static_cast<uint64_t>(saved_world_bytes(simulator));
}

ds_status check_size(const char* argument, const char* hint, uint64_t given, uint64_t expected) {
    if (given == expected) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, hint, "%s is %llu; it must be %llu", argument,
                static_cast<unsigned long long>(given), static_cast<unsigned long long>(expected));
}

// Checks that the worlds of a save fit the slots: those passed, or the first ones.
ds_status check_slots(const Simulator& simulator, const SaveHeader& header, const int64_t* worlds,
                      uint64_t count) {
    const unsigned long long saved = header.count;
    if (worlds && count != saved) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "worlds", "pass one slot per world of the save",
                    "%llu slots are passed; the save holds %llu worlds", static_cast<unsigned long long>(count), saved);
    }
    const int64_t num_worlds = simulator.config().num_worlds;
    if (saved > static_cast<uint64_t>(num_worlds)) {
        return fail(DS_STATUS_INVALID_STATE, "data", "restore into a simulator with enough worlds",
                    "the save holds %llu worlds; this simulator has %lld", saved, static_cast<long long>(num_worlds));
    }
    return DS_STATUS_OK;
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_simulator_save_size(ds_simulator simulator, uint64_t count, uint64_t* bytes) {
    if (!bytes) return fail_null("bytes");
    const Ref<Simulator> found = simulators.find(simulator);
    if (!found) return fail_closed("simulator");
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
    if (const ds_status status = call.begin_operation()) return status;
    CheckedSave save;
    if (const ds_status status = read_save(*call, data, bytes, &save)) return status;
    if (const ds_status status = check_slots(*call, save.header, worlds, count)) return status;
    const WorldSelection selection(*call, worlds, count, static_cast<int64_t>(save.header.count));
    if (selection.status()) return selection.status();
    if (const ds_status status = call->restore(selection.list(), save.worlds.get())) return status;
    if (const ds_status status = call->refresh(selection.list().mask)) return status;
    return call->update();
}

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
