// Worlds stepped by the CPU executor and by kernels that run on the host: both must stay equal to the byte, except for
// the bits of NaN.
#pragma once

#include <math.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "check.h"
#include "draws.h"
#include "exec/cuda/kernels.h"
#include "exec/tensors.h"
#include "math/float_environment.h"
#include "sim/observation_layout.h"
#include "sim/reference_level.h"

namespace doorstep {

// Runs a kernel to its end.
using KernelRunner = void (*)(WorldKind kind, KernelId kernel, const KernelArguments& arguments, uint32_t grid,
                              const char* way);

// A configuration of a run: the number of blocks, the name of the runner's variant, and the worlds of a tile, as many as
// the kernels allow if there are more.
struct KernelLaunch {
    KernelRunner run;
    uint32_t grid;
    const char* way;
    int32_t tile_worlds = INT32_MAX;
};

class KernelBatches {
public:
    KernelBatches(WorldKind kind, int num_worlds, const KernelLaunch& launch)
        : model_(find_world_model(kind, false)), num_worlds_(num_worlds), launch_(launch) {
        make_flight_table(flights_);
        allocate(expected_);
        allocate(batch_);
    }

    void create() {
        model_.create(expected_.simulation, 0, num_worlds_, kSeed, kWorldOffset);
        CHECK_EQUAL(run(kKernel_create, nullptr), 0u);
        expect_equal("creation", 0);
    }

    // Legal actions, sometimes others, and a few manual resets.
    void step(int step) {
        write_actions(expected_, step);
        write_actions(batch_, step);
        CHECK_EQUAL(run(kKernel_step, nullptr), model_.step(expected_.simulation, 0, num_worlds_, nullptr));
        expect_equal("step", step);
    }

    // Places the first agent of some worlds next to a cube, one of them with a speed that is not finite.
    void edit_and_refresh() {
        edit(expected_);
        edit(batch_);
        refresh(static_cast<uint32_t>(kTroubleNonfinite));
    }

    // Places the first agent of each world at a corner of one of its statics, so that its rays are at a distance of +0
    // or -0 from two of the box's sides: a minimum or a maximum of both may be either.
    void stand_at_corners_and_refresh() {
        for (Batch* batch : {&expected_, &batch_})
            for (int64_t world = 0; world < num_worlds_; world++) stand_at_corner(*batch, world);
        refresh(0);
    }

    void refresh(uint32_t expected_trouble) {
        const std::vector<uint8_t> mask(static_cast<size_t>(num_worlds_), 1);
        const uint32_t trouble = model_.refresh(expected_.simulation, 0, num_worlds_);
        CHECK_EQUAL(trouble, expected_trouble);
        CHECK_EQUAL(run(kKernel_refresh, mask.data()), trouble);
        expect_equal("refresh", 0);
    }

    void reset_some() {
        std::vector<uint8_t> mask(static_cast<size_t>(num_worlds_));
        for (size_t i = 1; i < mask.size(); i += 4) mask[i] = 1;
        const uint32_t trouble = model_.reset(expected_.simulation, 0, num_worlds_, mask.data(), nullptr);
        CHECK_EQUAL(run(kKernel_reset, mask.data()), trouble);
        expect_equal("reset", 0);
    }

    // Given episodes: seeds, limits, levels of their own where worlds play any, and a saved world.
    void begin_some() {
        std::vector<uint8_t> mask(static_cast<size_t>(num_worlds_));
        std::vector<EpisodeStart> starts(mask.size());
        const char* const block = static_cast<const char*>(expected_.simulation.worlds);
        const std::vector<char> saved(block, block + model_.world_bytes);
        for (size_t i = 0; i < mask.size(); i += 3) {
            mask[i] = 1;
            const bool has_level = model_.kind.plays_levels && i % 2;
            starts[i] = {has_level ? &levels_[i % levels_.size()] : nullptr, nullptr, static_cast<uint32_t>(1000 * i),
                         static_cast<int32_t>(i % 4 ? i % 20 + 1 : 0)};
            if (i % 6 == 3) starts[i].saved = saved.data();
        }
        const uint32_t trouble = model_.reset(expected_.simulation, 0, num_worlds_, mask.data(), starts.data());
        CHECK_EQUAL(run(kKernel_reset, mask.data(), starts.data()), trouble);
        expect_equal("begin", 0);
    }

private:
    static constexpr int32_t kEpisodeLength = 25;
    static constexpr uint32_t kSeed = 23, kWorldOffset = 1000;
    static constexpr int64_t kNonfiniteWorld = 7;  // after edit_and_refresh()

    struct Batch {
        std::vector<char> blocks;
        std::vector<std::vector<uint8_t>> tensors;
        Simulation simulation;
    };

    void allocate(Batch& batch) {
        batch.blocks.resize(world_bytes() * static_cast<size_t>(num_worlds_) + 64);  // kernels copy 16 bytes at a time
        char* aligned = batch.blocks.data() + (64 - reinterpret_cast<uintptr_t>(batch.blocks.data()) % 64);
        TensorPointers pointers;
        const int64_t max_levels = model_.kind.plays_levels ? static_cast<int64_t>(levels_.size()) : 0;
        const FlatLayout layout = layout_of(first_parts(DS_OBSERVATION_PART_COUNT), model_.num_agents);
        const Dimensions dimensions{num_worlds_, model_.num_agents, layout.size, max_levels};
        for (const TensorRow& row : kTensorRows) {
            ds_tensor_info info;
            describe_tensor(row, dimensions, &info);
            batch.tensors.emplace_back(static_cast<size_t>(tensor_bytes(info)));
        }
#define DS_POINT(name, ...) \
    pointers.name = reinterpret_cast<decltype(pointers.name)>(batch.tensors[DS_TENSOR_##name].data());
        DS_TENSOR_TABLE(DS_POINT)
#undef DS_POINT
        batch.simulation = {aligned, pointers, {kEpisodeLength, 1, DS_ACTION_CHECK_CLAMP, 0}, levels_.data(), max_levels,
                            max_levels ? given(nullptr) : given(&levels_.back().rewards), layout,
                            model_.num_agents};
        for (int64_t i = 0; i < num_worlds_ * max_levels; i++) pointers.level_weights[i] = weight(i / max_levels, i % 3);
    }

    size_t world_bytes() const { return model_.world_bytes; }

    // Of every world; some have sums beyond float32, none that can be used, or one that is not finite.
    static float weight(int64_t world, int64_t level) {
        constexpr float kRows[4][3] = {{0.f, 1.f, 2.f}, {3e38f, 2e38f, 3e38f}, {-1.f, 0.f, -3e38f}, {1.f, INFINITY, 2.f}};
        return kRows[world % 4][level];
    }

    // Generated rooms of any type with drawn physics and lengths; and a fixed level with all kinds of parts and a goal.
    static std::vector<ds_level> make_levels() {
        ds_level generated = reference_level();
        for (int32_t& type : generated.room_types) type = DS_ROOM_ANY;
        generated.first_room = 1;
        generated.cubes_near_buttons = 0.75f;
        generated.physics.cube_mass = {5.f, 30.f};
        generated.physics.friction = {0.5f, 1.5f};
        generated.physics.walking_force = {500.f, 1500.f};
        generated.min_episode_length = 5, generated.max_episode_length = 20;
        ds_level fixed = reference_level();
        fixed.source = DS_LEVEL_SOURCE_FIXED;
        fixed.num_walls = 20, fixed.num_doors = 8, fixed.num_buttons = 12, fixed.num_cubes = 24;
        fixed.num_agents = DS_MAX_AGENTS, fixed.num_rooms = 2;
        for (int i = 0; i < fixed.num_walls; i++) fixed.walls[i] = {i * 2.f - 20.f, i % 3 * 12.f - 3.f, 0.f, 2.f, 1.f, 3.f};
        for (int i = 0; i < 8; i++) fixed.doors[i] = {{i * 4.f - 14.f, 30.f, 0.f, 3.f, 1.f, 2.5f}, i % 2};
        for (int i = 0; i < 12; i++) fixed.buttons[i] = {i * 3.f - 16.f, 6.f, i % 8};
        for (int i = 0; i < 24; i++) fixed.cubes[i] = {i % 6 * 4.f - 10.f, 12.f + i / 6 * 4.f, 0.1f * i};
        for (int i = 0; i < 8; i++) fixed.agents[i] = {{i * 4.f - 14.f, i * 4.f - 13.f}, {1.f, 2.f}, {-1.f, 1.f}};
        fixed.rooms[0] = {0.f, 10.f, 3}, fixed.rooms[1] = {10.f, 25.f, -1};
        fixed.goal = {DS_GOAL_ANY, -20.f, 20.f, 6.f, 30.f};
        fixed.rewards.goal = 5.f, fixed.rewards.room = 0.5f;
        fixed.rewards.exit = 2.f, fixed.rewards.cube_approach = 0.25f;
        return {reference_level(), generated, fixed};
    }

    uint32_t run(KernelId kernel, const uint8_t* mask, const EpisodeStart* starts = nullptr) {
        const KernelShape& shape = find_kernel_shape(model_.kind);
        const int32_t tile = std::min(launch_.tile_worlds, shape.tile_worlds);
        std::vector<uint64_t> workspace(static_cast<size_t>(workspace_bytes(shape, tile)) * launch_.grid / 8 + 1);
        uint32_t trouble[kTroubleKinds] = {};
        const KernelArguments arguments{batch_.simulation, &flights_,    workspace.data(), trouble, mask,   starts,
                                        num_worlds_,       kWorldOffset, kSeed,            tile,    nullptr};
        launch_.run(model_.kind, kernel, arguments, launch_.grid, launch_.way);
        uint32_t bits = 0;
        for (int kind = 0; kind < kTroubleKinds; kind++) bits |= trouble[kind] << kind;
        return bits;
    }

    void write_actions(Batch& batch, int step) const {
        Draws draws{kSeed + 1000003u * static_cast<uint64_t>(step)};
        int32_t* row = batch.simulation.tensors.actions;
        for (int slot = 0; slot < num_worlds_ * model_.num_agents; slot++, row += 4) {
            row[0] = static_cast<int32_t>(draws.below(draws.below(30) == 0 ? 9 : 4));
            row[1] = static_cast<int32_t>(draws.below(8));
            row[2] = static_cast<int32_t>(draws.below(5));
            row[3] = draws.below(8) == 0;
        }
        for (int i = 0; i < num_worlds_; i++) batch.simulation.tensors.resets[i] = draws.below(100) == 0;
    }

    float& element(Batch& batch, int field, int64_t world, int64_t item, int64_t coordinate) const {
        const StateField& row = model_.state_fields[field];
        return *reinterpret_cast<float*>(static_cast<char*>(batch.simulation.worlds) +
                                         world * static_cast<int64_t>(world_bytes()) + row.offset +
                                         item * row.strides[0] + coordinate * row.strides[1]);
    }

    // Statics and corners take turns.
    void stand_at_corner(Batch& batch, int64_t world) const {
        const int64_t item = world % model_.state_fields[DS_STATE_static_positions].shape[0];
        for (int64_t k = 0; k < 2; k++) {
            const float center = element(batch, DS_STATE_static_positions, world, item, k);
            const float half = 0.5f * element(batch, DS_STATE_static_sizes, world, item, k);
            element(batch, DS_STATE_body_positions, world, 0, k) = world >> k & 1 ? center + half : center - half;
        }
    }

    void edit(Batch& batch) const {
        const auto element = [&](int field, int64_t world, int64_t item, int64_t coordinate) -> float& {
            return this->element(batch, field, world, item, coordinate);
        };
        for (int64_t world = 0; world < num_worlds_; world += 3) {
            const int64_t cube = model_.num_agents + world % 5;
            for (int64_t k = 0; k < 2; k++)
                element(DS_STATE_body_positions, world, 0, k) =
                    element(DS_STATE_body_positions, world, cube, k) - (k == 1 ? 2.4f : 0.2f);
        }
        element(DS_STATE_body_linear_velocities, kNonfiniteWorld, 0, 0) = __builtin_nanf("");
        batch.simulation.rules.look_for_edits = 1;
    }

    // Every bit is equal, and no value of a world is a NaN. The world that was edited is excepted: there the same values
    // are NaN, but a GPU's NaN has other bits than a CPU's.
    void expect_equal(const char* after, int step) const {
        for (int64_t world = 0; world < num_worlds_; world++) {
            const char* what = "worlds";
            bool equal = equal_words(block(expected_, world), block(batch_, world), world_bytes(), world);
            for (size_t i = 0; i < DS_TENSOR_COUNT && equal; i++) {
                const size_t row = expected_.tensors[i].size() / static_cast<size_t>(num_worlds_);
                const size_t begin = static_cast<size_t>(world) * row;
                const uint8_t *values = expected_.tensors[i].data() + begin, *others = batch_.tensors[i].data() + begin;
                equal = kTensorRows[i].dtype == DS_DTYPE_FLOAT32 ? equal_words(values, others, row, world)
                                                                 : memcmp(values, others, row) == 0;
                what = kTensorRows[i].name;
            }
            if (equal && (world == kNonfiniteWorld || !has_nan(world))) continue;
            fprintf(stderr, "%d agents, grid of %u, %s: %s of world %d %s after %s %d\n", model_.num_agents,
                    launch_.grid, launch_.way, what, static_cast<int>(world), equal ? "have a NaN" : "differ", after,
                    step);
            abort();
        }
    }

    const void* block(const Batch& batch, int64_t world) const {
        return static_cast<const char*>(batch.simulation.worlds) + world * static_cast<int64_t>(world_bytes());
    }

    static bool equal_words(const void* values, const void* others, size_t bytes, int64_t world) {
        if (bytes == 0 || memcmp(values, others, bytes) == 0) return true;  // without elements there is no address
        const auto *a = static_cast<const float*>(values), *b = static_cast<const float*>(others);
        const auto differ = [&](size_t i) { return memcmp(a + i, b + i, 4) != 0 && !(isnan(a[i]) && isnan(b[i])); };
        for (size_t i = 0; i < bytes / 4; i++)
            if (differ(i)) return false;
        return world == kNonfiniteWorld;
    }

    // In a state field or a tensor of the world.
    bool has_nan(int64_t world) const {
        bool found = false;
        const auto look_at = [&](const void* value) { found |= isnan(*static_cast<const float*>(value)); };
        for (size_t i = 0; i < DS_STATE_COUNT; i++) {
            const StateField& field = model_.state_fields[i];
            if (kStateRows[i].dtype != DS_DTYPE_FLOAT32 || field.offset < 0) continue;
            const char* first = static_cast<const char*>(block(batch_, world)) + field.offset;
            for (int64_t j = 0; j < (field.rank > 0 ? field.shape[0] : 1); j++)
                for (int64_t k = 0; k < (field.rank > 1 ? field.shape[1] : 1); k++)
                    look_at(first + j * field.strides[0] + k * field.strides[1]);
        }
        for (size_t i = 0; i < DS_TENSOR_COUNT; i++) {
            const size_t row = batch_.tensors[i].size() / static_cast<size_t>(num_worlds_);
            if (kTensorRows[i].dtype != DS_DTYPE_FLOAT32) continue;
            for (size_t at = 0; at < row; at += 4) look_at(&batch_.tensors[i][static_cast<size_t>(world) * row + at]);
        }
        return found;
    }

    const DefaultFloatEnvironment environment_;
    const WorldModel& model_;
    const int num_worlds_;
    const KernelLaunch launch_;
    const std::vector<ds_level> levels_ = make_levels();
    FlightTable flights_;
    Batch expected_, batch_;
};

}  // namespace doorstep
