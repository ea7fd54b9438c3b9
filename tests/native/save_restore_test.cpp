// The contents of a save; damaged or foreign bytes change nothing.
#include <math.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "api/save.h"
#include "physics/constants.h"
#include "runtime/hash.h"
#include "simulators.h"

namespace {

using Bytes = std::vector<char>;

ds_status restore(ds_simulator simulator, const Bytes& bytes, const std::vector<int64_t>& worlds = {}) {
    return ds_simulator_restore(simulator, bytes.data(), bytes.size(), worlds.empty() ? nullptr : worlds.data(),
                                worlds.size());
}

ds_simulator stepped_simulator(ds_simulator_config config, int steps) {
    const ds_simulator simulator = make_simulator(config);
    for (int step = 0; step < steps; ++step) step_once(simulator, step);
    return simulator;
}

void a_restored_simulator_continues_bit_for_bit() {
    const ds_simulator first = stepped_simulator(default_config(70), 30);
    write_actions(first, 30);  // pending
    static_cast<int32_t*>(tensor_of(first, DS_TENSOR_resets).data)[13] = 1;
    const Bytes bytes = save_of(first);
    const ds_simulator second = stepped_simulator(default_config(70), 3);
    CHECK_EQUAL(restore(second, bytes), DS_STATUS_OK);
    CHECK(hash_of(first) == hash_of(second));
    for (int step = 31; step < 40; ++step) {
        CHECK_EQUAL(ds_simulator_step(first), DS_STATUS_OK);
        CHECK_EQUAL(ds_simulator_step(second), DS_STATUS_OK);
        CHECK(hash_of(first) == hash_of(second));
        write_actions(first, step);
        write_actions(second, step);
    }
    close_simulator(first);
    close_simulator(second);
}

void worlds_move_to_other_slots_with_their_tensors() {
    const ds_simulator first = stepped_simulator(default_config(40), 12);
    const ds_simulator second = stepped_simulator(default_config(90), 5);
    CHECK_EQUAL(restore(second, save_of(first, {31, 4}), {2, 77}), DS_STATUS_OK);
    uint64_t from[40], to[90];
    CHECK_EQUAL(ds_simulator_world_hashes(first, from, 40), DS_STATUS_OK);
    CHECK_EQUAL(ds_simulator_world_hashes(second, to, 90), DS_STATUS_OK);
    CHECK(to[2] == from[31] && to[77] == from[4]);
    for (const ds_tensor_id tensor : {DS_TENSOR_rewards, DS_TENSOR_actions, DS_TENSOR_dones, DS_TENSOR_lidar,
                                      DS_TENSOR_self_observations, DS_TENSOR_steps_remaining}) {
        const ds_tensor_info source = tensor_of(first, tensor), target = tensor_of(second, tensor);
        const size_t row = static_cast<size_t>(source.strides[0]);
        CHECK_EQUAL(memcmp(static_cast<char*>(source.data) + 31 * row, static_cast<char*>(target.data) + 2 * row, row),
                    0);
    }
    close_simulator(first);
    close_simulator(second);
}

void every_damaged_byte_is_noticed_and_nothing_changes() {
    const ds_simulator simulator = stepped_simulator(default_config(3), 4);
    const Bytes good = save_of(simulator);
    step_once(simulator, 4);
    const uint64_t before = hash_of(simulator);
    for (size_t at = 0; at < good.size(); ++at) {
        Bytes bad = good;
        bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
        CHECK_EQUAL(restore(simulator, bad), DS_STATUS_INVALID_STATE);
    }
    CHECK(hash_of(simulator) == before);
    CHECK_EQUAL(restore(simulator, good), DS_STATUS_OK);
    CHECK(hash_of(simulator) != before);
    close_simulator(simulator);
}

void every_truncation_and_extension_is_noticed() {
    const ds_simulator simulator = stepped_simulator(default_config(2), 4);
    const Bytes good = save_of(simulator);
    const uint64_t before = hash_of(simulator);
    for (size_t size = 0; size < good.size() + 40; ++size) {
        if (size == good.size()) continue;
        Bytes bad = good;
        bad.resize(size);
        if (bad.empty()) bad.reserve(1);
        CHECK_EQUAL(restore(simulator, bad), DS_STATUS_INVALID_STATE);
    }
    CHECK(hash_of(simulator) == before);
    close_simulator(simulator);
}

// Changes a header field and corrects the checksum: a save of another kind of simulator.
template <class Change>
Bytes forged(const Bytes& good, const Change& change) {
    Bytes bytes = good;
    doorstep::SaveHeader header;
    memcpy(&header, bytes.data(), sizeof header);
    change(header);
    header.checksum = doorstep::save_checksum(header, bytes.data() + sizeof header);
    memcpy(bytes.data(), &header, sizeof header);
    return bytes;
}

void saves_of_other_rules_are_refused_by_name() {
    const ds_simulator simulator = stepped_simulator(default_config(2), 1);
    const Bytes good = save_of(simulator);
    struct {
        const char* name;
        void (*change)(doorstep::SaveHeader&);
    } const rows[] = {
        {"num_agents", [](doorstep::SaveHeader& header) { header.num_agents = 5; }},
        {"num_bodies", [](doorstep::SaveHeader& header) { header.num_bodies = 99; }},
        {"num_statics", [](doorstep::SaveHeader& header) { header.num_statics = 99; }},
        {"num_buttons", [](doorstep::SaveHeader& header) { header.num_buttons = 99; }},
        {"num_doors", [](doorstep::SaveHeader& header) { header.num_doors = 99; }},
        {"episode_length", [](doorstep::SaveHeader& header) { header.episode_length = 201; }},
        {"auto_reset", [](doorstep::SaveHeader& header) { header.auto_reset = 0; }},
        {"world_bytes", [](doorstep::SaveHeader& header) { header.world_bytes += 64; }},
        {"9.9.9", [](doorstep::SaveHeader& header) { memcpy(header.library_version, "9.9.9", 6); }},
        {"format version 99", [](doorstep::SaveHeader& header) { header.format_version = 99; }},
        {"not a save", [](doorstep::SaveHeader& header) { header.magic[0] = 'X'; }},
    };
    for (const auto& row : rows) {
        CHECK_EQUAL(restore(simulator, forged(good, row.change)), DS_STATUS_INVALID_STATE);
        CHECK(last_message_has(row.name));
        CHECK(last_error_names("data"));
    }
    ds_simulator_config config = default_config(2);
    config.episode_length = 100;
    const ds_simulator other = make_simulator(config);
    CHECK_EQUAL(restore(other, good), DS_STATUS_INVALID_STATE);
    CHECK(last_message_has("episode_length is 200 in the save and 100 in this simulator"));
    close_simulator(simulator);
    close_simulator(other);
}

// Levels are checked before they are played, so no save that doorstep wrote has such cubes.
void a_level_of_impossible_cubes_is_refused() {
    ds_simulator_config config = default_config(1);
    config.max_levels = 1;
    const ds_simulator simulator = stepped_simulator(config, 1);
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
            const Bytes damaged = forged(bytes, [](doorstep::SaveHeader&) {});
            CHECK_EQUAL(restore(simulator, damaged), DS_STATUS_INVALID_STATE);
            CHECK(last_message_has("a mass outside its range"));
            ds_saved_state state;
            CHECK_EQUAL(ds_saved_state_create(damaged.data(), damaged.size(), &state), DS_STATUS_INVALID_STATE);
        }
    }
    CHECK(hash_of(simulator) == before);
    CHECK_EQUAL(restore(simulator, forged(good, [](doorstep::SaveHeader&) {})), DS_STATUS_OK);
    close_simulator(simulator);
}

void counts_that_overflow_are_damage() {
    const ds_simulator simulator = stepped_simulator(default_config(2), 1);
    Bytes bytes = save_of(simulator);
    doorstep::SaveHeader header;
    for (const uint64_t each : {uint64_t{0}, uint64_t{1} << 63, ~uint64_t{0}}) {
        memcpy(&header, bytes.data(), sizeof header);
        header.saved_world_bytes = each;
        header.count = 2;
        Bytes bad = bytes;
        memcpy(bad.data(), &header, sizeof header);
        CHECK_EQUAL(restore(simulator, bad), DS_STATUS_INVALID_STATE);
    }
    close_simulator(simulator);
}

void slots_must_match_the_save() {
    const ds_simulator simulator = stepped_simulator(default_config(4), 1);
    const Bytes bytes = save_of(simulator, {0, 1});
    const uint64_t before = hash_of(simulator);
    CHECK_EQUAL(restore(simulator, bytes, {2}), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("worlds"));
    CHECK_EQUAL(restore(simulator, bytes, {2, 4}), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(restore(simulator, bytes, {2, 2}), DS_STATUS_INVALID_ARGUMENT);
    const ds_simulator smaller = make_simulator(1, 1);
    CHECK_EQUAL(restore(smaller, bytes), DS_STATUS_INVALID_STATE);
    CHECK(last_message_has("the save holds 2 worlds; this simulator has 1"));
    CHECK(hash_of(simulator) == before);
    close_simulator(simulator);
    close_simulator(smaller);
}

void the_hash_tells_apart_bytes_lengths_and_places() {
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

int main() {
    RUN(a_restored_simulator_continues_bit_for_bit);
    RUN(worlds_move_to_other_slots_with_their_tensors);
    RUN(every_damaged_byte_is_noticed_and_nothing_changes);
    RUN(every_truncation_and_extension_is_noticed);
    RUN(saves_of_other_rules_are_refused_by_name);
    RUN(a_level_of_impossible_cubes_is_refused);
    RUN(counts_that_overflow_are_damage);
    RUN(slots_must_match_the_save);
    RUN(the_hash_tells_apart_bytes_lengths_and_places);
    check_nothing_lives();
}
