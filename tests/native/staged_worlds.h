// Worlds that are stepped stage by stage, for tests that look in between. Each program is compiled for one number of
// agents (DS_AGENTS), for AVX2 like the worlds themselves.
#pragma once

#include <string.h>

#include <vector>

#include "draws.h"
#include "exec/tensors.h"
#include "sim/observation_layout.h"
#include "sim/reference_level.h"
#include "sim/step.h"

namespace {

using namespace doorstep;

constexpr int kAgents = DS_AGENTS;
using W = CompiledWorld<number_of({kAgents, false})>::W;

#define DS_NAME(name, items, parameters, sentence) #name,
constexpr const char* kNames[kNumStages] = {DS_STAGE_TABLE(DS_NAME)};
#undef DS_NAME

constexpr int kWorlds = 70;  // not a multiple of any tile or vector
constexpr int kSteps = 200;
constexpr int32_t kEpisodeLength = 90;
constexpr uint32_t kSeed = 11;

// A world's block and the padding to the next.
struct alignas(64) Block {
    W world;
};
static_assert(sizeof(Block) == kBlockBytes<W>);

// All worlds and tensors, stepped stage by stage with one type of lanes.
struct Batch {
    const char* lanes;
    int tile_worlds;
    std::vector<Block> blocks{};
    std::vector<std::vector<uint8_t>> tensors{};
    Simulation simulation{};

    Batch(const char* name, int worlds) : lanes(name), tile_worlds(worlds) {}
    virtual ~Batch() = default;
    virtual void cut_into_tiles() = 0;
    virtual void run(int stage) = 0;
};

const FlightTable& flights() {
    static const FlightTable table = [] {
        FlightTable made;
        make_flight_table(made);
        return made;
    }();
    return table;
}

TensorPointers allocate_tensors(std::vector<std::vector<uint8_t>>& tensors) {
    const Dimensions dimensions{kWorlds, kAgents, flat_size(kDefaultObservations, kAgents), 0};
    for (const TensorRow& row : kTensorRows) {
        ds_tensor_info info;
        describe_tensor(row, dimensions, &info);
        tensors.emplace_back(static_cast<size_t>(tensor_bytes(info)));
    }
    TensorPointers pointers;
#define DS_POINT(name, ...) \
    pointers.name = reinterpret_cast<decltype(pointers.name)>(tensors[DS_TENSOR_##name].data());
    DS_TENSOR_TABLE(DS_POINT)
#undef DS_POINT
    return pointers;
}

template <class Float, class Wide = Float>
struct LanesBatch : Batch {
    using TileT = TileInPlace<W, Float, Wide>;
    using StageFunction = void (*)(TileT&, WholeShare);
#define DS_FUNCTION(name, items, parameters, sentence) run_stage<over::items, Stages<TileT>::name, TileT, WholeShare>,
    static constexpr StageFunction kStages[kNumStages] = {DS_STAGE_TABLE(DS_FUNCTION)};
#undef DS_FUNCTION

    std::vector<typename TileT::Records> records{};
    std::vector<TileT> tiles{};
    Workspace<W, Wide> workspace{};

    using Batch::Batch;
    void cut_into_tiles() override {
        records.resize(static_cast<size_t>((kWorlds + tile_worlds - 1) / tile_worlds));
        for (int first = 0; first < kWorlds; first += tile_worlds) {
            const int left = kWorlds - first, count = left < tile_worlds ? left : tile_worlds;
            tiles.push_back({simulation, flights(), reinterpret_cast<char*>(blocks.data() + first),
                             records[tiles.size()], workspace, first, count});
        }
    }
    void run(int stage) override {
        for (TileT& tile : tiles) kStages[stage](tile, WholeShare{});
    }
};

void prepare(Batch& batch, const std::vector<Block>& start, bool look_for_edits) {
    batch.blocks.resize(start.size());
    memcpy(static_cast<void*>(batch.blocks.data()), start.data(), sizeof(Block) * start.size());  // padding too
    const TensorPointers pointers = allocate_tensors(batch.tensors);
    const Rules rules{kEpisodeLength, 1, DS_ACTION_CHECK_OFF, look_for_edits};
    batch.simulation = {batch.blocks.data(), pointers, rules, nullptr, 0, given(nullptr),
                        layout_of(kDefaultObservations, kAgents), kAgents};
    batch.cut_into_tiles();
}

// ---- Initial states

std::vector<Block> first_levels() {
    std::vector<Block> blocks(kWorlds);
    memset(static_cast<void*>(blocks.data()), 0, sizeof(Block) * blocks.size());
    for (uint32_t i = 0; i < kWorlds; i++) {
        give_identity(blocks[i].world, AgentSlots<W::AgentCount>(kAgents), kSeed, i);
        begin_episode(blocks[i].world, Rules{kEpisodeLength, 1, DS_ACTION_CHECK_OFF, 0}, LevelSource{});
    }
    return blocks;
}

// Agents next to or inside cubes, some cubes in the air, tilted and moving: contacts of all kinds, and all bodies
// awake.
std::vector<Block> among_cubes() {
    std::vector<Block> blocks = first_levels();
    Draws draws{kSeed};
    for (Block& block : blocks) {
        W& world = block.world;
        for (int a = 0; a < kAgents; a++) {
            const int cube = kAgents + static_cast<int>(draws.below(W::kCubes));
            const Vec3 near = world.bodies.position(cube);
            world.bodies.set_position(a, {near.x + draws.between(-3.5f, 3.5f), near.y + draws.between(-3.5f, 3.5f), 0.f});
            const Heading half_yaw = sine_cosine(draws.between(-0.75f, 0.75f));
            world.bodies.set_rotation(a, {half_yaw.cosine, 0.f, 0.f, half_yaw.sine});
        }
        for (int cube = kAgents; cube < kAgents + W::kCubes; cube++) {
            if (draws.below(4) != 0) continue;
            const Vec3 p = world.bodies.position(cube);
            world.bodies.set_position(cube, {p.x, p.y, p.z + draws.between(0.f, 2.f)});
            world.bodies.set_rotation(cube, normalize({1.f, draws.between(-0.5f, 0.5f), draws.between(-0.5f, 0.5f),
                                                     draws.between(-0.5f, 0.5f)}));
            world.bodies.set_velocity(cube, {draws.between(-2.f, 2.f), draws.between(-2.f, 2.f), 0.f});
        }
    }
    return blocks;
}

// ---- Steps and comparisons

// Legal actions, and sometimes others, which have no row in the flight table.
void write_actions(Batch& batch, int step) {
    Draws draws{kSeed + 1000003u * static_cast<uint64_t>(step)};
    int32_t* row = batch.simulation.tensors.actions;
    for (int slot = 0; slot < kWorlds * kAgents; slot++, row += kActionComponents) {
        const bool legal = draws.below(40) != 0;
        row[0] = static_cast<int32_t>(draws.below(legal ? 4 : 12));
        row[1] = static_cast<int32_t>(draws.below(8));
        row[2] = static_cast<int32_t>(draws.below(legal ? 5 : 12)) - (legal ? 0 : 4);
        row[3] = draws.below(8) == 0;
    }
    for (int i = 0; i < kWorlds; i++) batch.simulation.tensors.resets[i] = draws.below(200) == 0;
}

}  // namespace
