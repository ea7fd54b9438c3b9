// The contents of a save; damaged or foreign bytes change nothing.
#include <math.h>
#include <string.h>

#include <algorithm>

#include "api/save.h"
#include "physics/constants.h"
#include "runtime/hash.h"
#include "simulators.h"

namespace {

using Bytes = std::vector<char>;
using Header = doorstep::SaveHeader;

ds_status restore(ds_simulator simulator, const Bytes& bytes) {
    return ds_simulator_restore(simulator, bytes.data(), bytes.size(), nullptr, 0);
}

struct Stepped : OpenSimulator {
    Stepped(const ds_simulator_config& config, int steps) : OpenSimulator(config) {
        for (int step = 0; step < steps; ++step) step_once(*this, step);
    }
};

LAW(every_truncation_and_extension_is_noticed_and_so_are_counts_that_overflow) {
    const Stepped simulator(default_config(2), 4);
    const Bytes good = save_of(simulator);
    const uint64_t before = hash_of(simulator);
    for (size_t size = 0; size < good.size() + 40; ++size) {
        if (size == good.size()) continue;
        Bytes bad = good;
        bad.resize(size);
        if (bad.empty()) bad.reserve(1);
        CHECK_EQUAL(restore(simulator, bad), DS_STATUS_INVALID_STATE);
    }
    Header header;
    for (const uint64_t each : {uint64_t{0}, uint64_t{1} << 63, ~uint64_t{0}}) {
        Bytes bad = good;
        memcpy(&header, bad.data(), sizeof header);
        header.saved_world_bytes = each, header.count = 2;
        memcpy(bad.data(), &header, sizeof header);
        CHECK_EQUAL(restore(simulator, bad), DS_STATUS_INVALID_STATE);
    }
    CHECK(hash_of(simulator) == before);
}

// Changes a header field and corrects the checksum: a save of another kind of simulator.
Bytes forged(const Bytes& good, const auto& change) {
    Bytes bytes = good;
    Header header;
    memcpy(&header, bytes.data(), sizeof header);
    change(header);
    header.checksum = doorstep::save_checksum(header, bytes.data() + sizeof header);
    memcpy(bytes.data(), &header, sizeof header);
    return bytes;
}

LAW(saves_of_other_rules_are_refused_by_name) {
    const Stepped simulator(default_config(2), 1);
    const Bytes good = save_of(simulator);
#define WITH(name, field, value) {name, [](Header& header) { header.field = value; }}
    const std::pair<const char*, void (*)(Header&)> rows[] = {
        WITH("num_agents", num_agents, 5), WITH("num_bodies", num_bodies, 99), WITH("num_statics", num_statics, 99),
        WITH("num_buttons", num_buttons, 99), WITH("num_doors", num_doors, 99),
        WITH("episode_length", episode_length, 201), WITH("auto_reset", auto_reset, 0),
        {"world_bytes", [](Header& header) { header.world_bytes += 64; }},
        {"9.9.9", [](Header& header) { memcpy(header.library_version, "9.9.9", 6); }},
        WITH("format version 99", format_version, 99), WITH("not a save", magic[0], 'X')};
#undef WITH
    for (const auto& [name, change] : rows) {
        CHECK_EQUAL(restore(simulator, forged(good, change)), DS_STATUS_INVALID_STATE);
        CHECK(last_message_has(name) && last_error_names("data"));
    }
    ds_simulator_config config = default_config(2);
    config.episode_length = 100;
    const OpenSimulator other(config);
    CHECK_EQUAL(restore(other, good), DS_STATUS_INVALID_STATE);
    CHECK(last_message_has("episode_length is 200 in the save and 100 in this simulator"));
}

// Levels are checked before they are played, so no save that doorstep wrote has such cubes.
LAW(a_level_of_impossible_cubes_is_refused) {
    ds_simulator_config config = default_config(1);
    config.max_levels = 1;
    const Stepped simulator(config, 1);
    const Bytes good = save_of(simulator);
    const uint64_t before = hash_of(simulator);
    const float cubes[] = {doorstep::kCubeInverseMass, doorstep::kCubeInverseInertia, 1.f};
    const auto found = std::search(good.begin(), good.end(), reinterpret_cast<const char*>(cubes),
                                   reinterpret_cast<const char*>(cubes + 3));
    CHECK(found != good.end());
    const size_t place = static_cast<size_t>(found - good.begin());
    for (int number = 0; number < 3; ++number) {
        for (const float bad : {-1.f, -INFINITY, NAN}) {
            Bytes bytes = good;
            memcpy(bytes.data() + place + sizeof(float) * static_cast<size_t>(number), &bad, sizeof bad);
            const Bytes damaged = forged(bytes, [](Header&) {});
            CHECK_EQUAL(restore(simulator, damaged), DS_STATUS_INVALID_STATE);
            CHECK(last_message_has("a mass outside its range"));
            ds_saved_state state;
            CHECK_EQUAL(ds_saved_state_create(damaged.data(), damaged.size(), &state), DS_STATUS_INVALID_STATE);
        }
    }
    CHECK(hash_of(simulator) == before);
    CHECK_EQUAL(restore(simulator, forged(good, [](Header&) {})), DS_STATUS_OK);
}

LAW(the_hash_tells_apart_bytes_lengths_and_places) {
    unsigned char bytes[200] = {};
    const uint64_t zeros = doorstep::hash_bytes(bytes, sizeof bytes);
    CHECK(doorstep::hash_bytes(bytes, 199) != zeros);
    uint64_t seen[200];
    for (int at = 0; at < 200; ++at) {
        bytes[at] = 1;
        seen[at] = doorstep::hash_bytes(bytes, sizeof bytes);
        bytes[at] = 0;
        CHECK(seen[at] != zeros);
        for (int other = 0; other < at; ++other) CHECK(seen[other] != seen[at]);
    }
}

}  // namespace
