// Worlds in the caller's memory: the same bits as a simulator, with any previous contents and no writes beyond.
#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "batches.h"
#include "draws.h"
#include "runtime/hash.h"
#include "simulators.h"

namespace {

#define DS_ACTION_SIZE(name, size, neutral, sentence) size,
constexpr int32_t kActionSizes[] = {DS_ACTION_TABLE(DS_ACTION_SIZE)};
#undef DS_ACTION_SIZE
constexpr size_t kButtonLanes = 8;
constexpr uint32_t kAllAsleep = 0x7C;  // bits of the five cubes, after two agents

void draw_inputs(const HostBatch& batch, Draws& draws, ds_simulator simulator) {
    const int64_t rows = batch.batch.num_worlds * batch.batch.num_agents;
    int32_t* actions = batch.tensor<int32_t>(DS_TENSOR_actions);
    for (int64_t i = 0; i < rows * 4; ++i) actions[i] = static_cast<int32_t>(draws.below(kActionSizes[i % 4] + 2)) - 1;
    int32_t* resets = batch.tensor<int32_t>(DS_TENSOR_resets);
    for (int64_t i = 0; i < batch.batch.num_worlds; ++i) resets[i] = draws.below(20) == 0;
    for (const ds_tensor_id id : {DS_TENSOR_actions, DS_TENSOR_resets})
        memcpy(tensor_of(simulator, id).data, batch.tensors[id], static_cast<size_t>(batch.bytes_of(id)));
}

bool has_tensor(const HostBatch& batch, int tensor) {
    return batch.batch.max_levels > 0 || doorstep::kTensorRows[tensor].presence != doorstep::Presence::LEVELS;
}

void check_same(const HostBatch& batch, ds_simulator simulator) {
    for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
        if (!has_tensor(batch, tensor)) continue;
        const ds_tensor_info info = tensor_of(simulator, static_cast<ds_tensor_id>(tensor));
        CHECK_EQUAL(memcmp(info.data, batch.tensors[tensor], static_cast<size_t>(batch.bytes_of(tensor))), 0);
    }
    std::vector<uint64_t> hashes(static_cast<size_t>(batch.batch.num_worlds));
    CHECK_EQUAL(ds_simulator_world_hashes(simulator, hashes.data(), hashes.size()), DS_STATUS_OK);
    for (int64_t world = 0; world < batch.batch.num_worlds; ++world)
        CHECK(doorstep::hash_bytes(batch.world(world), static_cast<size_t>(batch.info.world_bytes)) ==
              hashes[static_cast<size_t>(world)]);
}

// Level 0 is the reference's generator, 1 has other rooms and physics, 2 is empty.
std::vector<ds_level> some_levels() {
    ds_level level = {};
    level.struct_size = sizeof level;
    CHECK_EQUAL(ds_level_default(&level), DS_STATUS_OK);
    std::vector<ds_level> levels(3, level);
    for (int32_t& type : levels[1].room_types) type = DS_ROOM_ANY;
    levels[1].physics.cube_mass = {5.f, 20.f};
    levels[1].max_episode_length = levels[1].min_episode_length = 4;
    levels[2].source = DS_LEVEL_SOURCE_FIXED;
    levels[2].num_agents = DS_MAX_AGENTS;
    for (int agent = 0; agent < DS_MAX_AGENTS; ++agent) {
        const float x = 4.f * static_cast<float>(agent) - 14.f;
        levels[2].agents[agent] = {{x, x}, {0.f, 5.f}, {-3.f, 3.f}};
    }
    levels[2].num_rooms = 1;
    levels[2].rooms[0] = {0.f, 40.f, -1};
    return levels;
}

void write_weights(const HostBatch& batch, ds_simulator simulator, const std::vector<float>& weights) {
    float* rows = batch.tensor<float>(DS_TENSOR_level_weights);
    for (int64_t i = 0; i < batch.batch.num_worlds * 3; ++i) rows[i] = weights[static_cast<size_t>(i % 3)];
    memcpy(tensor_of(simulator, DS_TENSOR_level_weights).data, rows,
           static_cast<size_t>(batch.bytes_of(DS_TENSOR_level_weights)));
}

// 65 and 130 worlds are more than the calling thread steps alone. A simulator's first levels are the reference's.
void a_batch_is_a_simulator() {
    const std::vector<ds_level> levels = some_levels(), first(3, levels[0]);
    struct {
        int64_t worlds, agents, max_levels;
    } const cases[] = {{1, 2, 0}, {64, 1, 0}, {65, 2, 0}, {130, 3, 0}, {7, 8, 0}, {1, 2, 3}, {130, 3, 3}};
    for (const auto& [worlds, agents, max_levels] : cases) {
        ds_simulator_config config = default_config(worlds);
        config.num_agents = agents;
        config.episode_length = 9;
        config.seed = DS_MAX_SEED;
        config.world_offset = 77;
        config.max_levels = max_levels;
        const ds_simulator simulator = make_simulator(config);
        HostBatch batch(worlds, agents, 9, 0xA5, max_levels);
        for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor)
            if (doorstep::kTensorRows[tensor].outlives_step)
                memset(batch.tensors[tensor], 0, static_cast<size_t>(batch.bytes_of(tensor)));
        if (max_levels) write_weights(batch, simulator, {1.f, 0.f, 0.f});
        batch.batch.levels = first.data();
        CHECK_EQUAL(ds_batch_create(&batch.batch, DS_MAX_SEED, 77), DS_STATUS_OK);
        batch.batch.levels = levels.data();
        if (max_levels)
            CHECK_EQUAL(ds_simulator_set_levels(simulator, levels.data(), levels.size(), nullptr), DS_STATUS_OK);
        Draws draws{static_cast<uint64_t>(worlds)};
        int32_t played[3] = {};
        for (int step = 0; step < 45; ++step) {
            if (max_levels && step % 15 == 0) write_weights(batch, simulator, {1.f, 1.f, static_cast<float>(step)});
            check_same(batch, simulator);
            draw_inputs(batch, draws, simulator);
            CHECK_EQUAL(ds_simulator_step(simulator), DS_STATUS_OK);
            CHECK_EQUAL(ds_batch_step(&batch.batch), DS_STATUS_OK);
            for (int64_t world = 0; world < worlds && max_levels; ++world)
                played[batch.tensor<int32_t>(DS_TENSOR_level_indices)[world]]++;
        }
        check_same(batch, simulator);
        if (max_levels && worlds > 1) CHECK(played[0] && played[1] && played[2]);
        close_simulator(simulator);
    }
}

void what_the_memory_held_before_leaves_no_trace() {
    HostBatch first(70, 2, 200, 0x00), second(70, 2, 200, 0xFF);
    const uint32_t words[2] = {5, 3};
    CHECK_EQUAL(ds_batch_create(&first.batch, 5, 3), DS_STATUS_OK);
    CHECK_EQUAL(ds_batch_create_from(&second.batch, words), DS_STATUS_OK);
    CHECK(first.all_worlds() == second.all_worlds());
    for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
        if (doorstep::kTensorRows[tensor].outlives_step || !has_tensor(first, tensor)) continue;
        const size_t bytes = static_cast<size_t>(first.bytes_of(tensor));
        CHECK_EQUAL(memcmp(first.tensors[tensor], second.tensors[tensor], bytes), 0);
    }
}

void inputs_of_their_own_stay_as_they_are() {
    HostBatch plain(5, 2, 3), from(5, 2, 3);
    CHECK_EQUAL(ds_batch_create(&plain.batch, 1, 0), DS_STATUS_OK);
    CHECK_EQUAL(ds_batch_create(&from.batch, 1, 0), DS_STATUS_OK);
    std::vector<int32_t> actions(5 * 2 * 4, 1), resets = {0, 1, 0, 0, 7};
    const std::vector<int32_t> actions_before = actions, resets_before = resets;
    for (int step = 0; step < 7; ++step) {
        const bool with_resets = step % 2;
        memcpy(plain.tensors[DS_TENSOR_actions], actions.data(), actions.size() * 4);
        memset(plain.tensors[DS_TENSOR_resets], 0, 5 * 4);
        if (with_resets) memcpy(plain.tensors[DS_TENSOR_resets], resets.data(), 5 * 4);
        CHECK_EQUAL(ds_batch_step(&plain.batch), DS_STATUS_OK);
        from.tensor<int32_t>(DS_TENSOR_resets)[2] = 1;  // not taken
        CHECK_EQUAL(ds_batch_step_from(&from.batch, actions.data(), with_resets ? resets.data() : nullptr),
                    DS_STATUS_OK);
        CHECK(plain.all_worlds() == from.all_worlds());
        CHECK(actions == actions_before && resets == resets_before);
    }
}

// ---- Invalid worlds

void check_refused(HostBatch& batch, int64_t world) {
    const std::vector<char> before = batch.all_worlds();
    CHECK_EQUAL(ds_batch_step(&batch.batch), DS_STATUS_INVALID_STATE);
    char named[32];
    snprintf(named, sizeof named, "worlds[%lld]", static_cast<long long>(world));
    CHECK(last_error_names("worlds") && last_message_has(named));
    CHECK(batch.all_worlds() == before);
}

void memory_that_holds_no_worlds_is_refused() {
    for (const int64_t worlds : {3, 200}) {
        for (const int filling : {0x00, 0xFF, 0x7F, 0x01}) {
            HostBatch batch(worlds, 2, 200, filling);
            check_refused(batch, 0);
        }
        HostBatch batch(worlds);
        CHECK_EQUAL(ds_batch_create(&batch.batch, 0, 0), DS_STATUS_OK);
        memset(batch.world(worlds - 1), 0, static_cast<size_t>(batch.info.world_bytes));
        check_refused(batch, worlds - 1);
        Draws draws{1};
        for (int64_t i = 0; i < batch.info.world_bytes; ++i) batch.world(1)[i] = static_cast<char>(draws.below(256));
        check_refused(batch, 1);
    }
    HostBatch batch(2);
    CHECK_EQUAL(ds_batch_create(&batch.batch, 0, 0), DS_STATUS_OK);
    batch.batch.episode_length = 50;  // 200 steps remain
    check_refused(batch, 0);
}

// Worlds that pass the check are stepped without memory errors, which a sanitizer detects; other tests check results.
void a_damaged_world_is_refused_or_stepped() {
    Draws draws{7};
    const float floats[] = {0.f, -1.f, 1e9f, -1e30f, 3e38f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(), 1e-40f};
    int refused = 0, stepped = 0;
    for (int trial = 0; trial < 1000; ++trial) {
        HostBatch batch(2, 1 + trial % 3, 30);
        CHECK_EQUAL(ds_batch_create(&batch.batch, trial, 0), DS_STATUS_OK);
        const uint32_t words = static_cast<uint32_t>(batch.info.world_bytes / 4);
        for (uint32_t damage = 1 + draws.below(trial % 2 ? 3 : 60); damage; --damage) {
            char* word = batch.world(0) + draws.below(words) * 4;
            const uint32_t bits = draws.below(UINT32_MAX);
            const float number = floats[draws.below(8)];
            memcpy(word, draws.below(2) ? static_cast<const void*>(&bits) : &number, 4);
        }
        int32_t* actions = batch.tensor<int32_t>(DS_TENSOR_actions);
        for (int step = 0; step < 3; ++step) {
            for (int64_t i = 0; i < 2 * batch.batch.num_agents * 4; ++i)
                actions[i] = static_cast<int32_t>(draws.below(static_cast<uint32_t>(kActionSizes[i % 4])));
            const ds_status status = ds_batch_step(&batch.batch);
            CHECK(status == DS_STATUS_OK || status == DS_STATUS_INVALID_STATE);
            (status ? refused : stepped)++;
        }
    }
    CHECK(refused > 50 && stepped > 50);
}

void trouble_is_told() {
    HostBatch batch(2);
    CHECK_EQUAL(ds_batch_create(&batch.batch, 0, 0), DS_STATUS_OK);
    CHECK_EQUAL(ds_batch_step(&batch.batch), DS_STATUS_OK);
    for (const uint32_t word : batch.trouble) CHECK_EQUAL(word, 0);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    // A block starts with the x of buttons, agents and cubes. One cube's is not finite, and all cubes are awake, so
    // that the world goes through the general solver, which checks
    memcpy(batch.world(0) + (kButtonLanes + 2) * sizeof nan, &nan, sizeof nan);
    uint32_t* words = reinterpret_cast<uint32_t*>(batch.world(0));
    for (int64_t i = 0; i < batch.info.world_bytes / 4; ++i)
        if (words[i] == kAllAsleep) words[i] = 0;
    CHECK_EQUAL(ds_batch_step(&batch.batch), DS_STATUS_OK);
    CHECK_EQUAL(batch.trouble[1], 1);  // a value that is not finite
    batch.batch.trouble = nullptr;     // optional
    CHECK_EQUAL(ds_batch_step(&batch.batch), DS_STATUS_OK);
}

// ---- Arguments

void bad_arguments_are_named_and_change_nothing() {
    HostBatch good(3);
    CHECK_EQUAL(ds_batch_create(&good.batch, 0, 0), DS_STATUS_OK);
    const std::vector<char> before = good.all_worlds();
    void* tensors[DS_TENSOR_COUNT];
    struct {
        const char* argument;
        void (*spoil)(ds_batch&);
    } const cases[] = {
        {"batch", [](ds_batch& b) { b.struct_size--; }},
        {"device_kind", [](ds_batch& b) { b.device_kind = DS_DEVICE_AUTO; }},
        {"device_index", [](ds_batch& b) { b.device_index = 1; }},
        {"num_worlds", [](ds_batch& b) { b.num_worlds = 0; }},
        {"num_agents", [](ds_batch& b) { b.num_agents = 9; }},
        {"episode_length", [](ds_batch& b) { b.episode_length = 0; }},
        {"auto_reset", [](ds_batch& b) { b.auto_reset = 2; }},
        {"action_check", [](ds_batch& b) { b.action_check = DS_ACTION_CHECK_RAISE; }},
        {"worlds", [](ds_batch& b) { b.worlds = nullptr; }},
        {"worlds", [](ds_batch& b) { b.worlds = static_cast<char*>(b.worlds) + 4; }},
        {"tensors", [](ds_batch& b) { b.tensors = nullptr; }},
        {"lidar", [](ds_batch& b) { b.tensors[DS_TENSOR_lidar] = nullptr; }},
        {"rewards",
         [](ds_batch& b) { b.tensors[DS_TENSOR_rewards] = static_cast<char*>(b.tensors[DS_TENSOR_rewards]) + 2; }},
        {"max_levels", [](ds_batch& b) { b.max_levels = DS_MAX_LEVELS + 1; }},
        {"levels", [](ds_batch& b) { b.max_levels = 1; }},
    };
    for (const auto& row : cases) {
        ds_batch bad = good.batch;
        memcpy(tensors, good.tensors, sizeof tensors);
        bad.tensors = tensors;
        row.spoil(bad);
        CHECK_EQUAL(ds_batch_step(&bad), DS_STATUS_INVALID_ARGUMENT);
        CHECK(last_error_names(row.argument));
        CHECK_EQUAL(ds_batch_create(&bad, 0, 0), DS_STATUS_INVALID_ARGUMENT);
    }
    CHECK_EQUAL(ds_batch_step(nullptr), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_batch_create(&good.batch, -1, 0), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("seed"));
    CHECK_EQUAL(ds_batch_create(&good.batch, 0, (int64_t{1} << 32) - 2), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("world_offset"));
    CHECK_EQUAL(ds_batch_create_from(&good.batch, nullptr), DS_STATUS_INVALID_ARGUMENT);
    CHECK_EQUAL(ds_batch_step_from(&good.batch, nullptr, nullptr), DS_STATUS_INVALID_ARGUMENT);
    CHECK(last_error_names("actions"));
    CHECK(good.all_worlds() == before);
}

// ---- Threads and processes

void batches_of_several_threads_take_turns() {
    HostBatch alone(300, 2, 6);
    CHECK_EQUAL(ds_batch_create(&alone.batch, 3, 0), DS_STATUS_OK);
    for (int step = 0; step < 20; ++step) CHECK_EQUAL(ds_batch_step(&alone.batch), DS_STATUS_OK);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&alone] {
            HostBatch mine(300, 2, 6);
            CHECK_EQUAL(ds_batch_create(&mine.batch, 3, 0), DS_STATUS_OK);
            for (int step = 0; step < 20; ++step) CHECK_EQUAL(ds_batch_step(&mine.batch), DS_STATUS_OK);
            CHECK(mine.all_worlds() == alone.all_worlds());
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main() {
    RUN(a_batch_is_a_simulator);
    RUN(what_the_memory_held_before_leaves_no_trace);
    RUN(inputs_of_their_own_stay_as_they_are);
    RUN(memory_that_holds_no_worlds_is_refused);
    RUN(a_damaged_world_is_refused_or_stepped);
    RUN(trouble_is_told);
    RUN(bad_arguments_are_named_and_change_nothing);
    RUN(batches_of_several_threads_take_turns);
    check_nothing_lives();
}
