// One source, whatever the lanes: the stages of a step give the same bytes with one float per lane, as a CUDA thread
// has it, and with eight, however the worlds are cut into tiles. Compiled once per number of agents (DS_AGENTS), for
// AVX2 like the worlds themselves.
#include <string.h>

#include <vector>

#include "check.h"
#include "draws.h"
#include "exec/cpu/float_environment.h"
#include "exec/tensor_table.h"
#include "sim/step.h"

namespace {

using namespace doorstep;

using W = World<DS_AGENTS>;
using StageFunction = void (*)(Tile<W>&);

#define DS_NAME(name, lanes, reads, writes, sentence) #name,
#define DS_NARROW(name, lanes, reads, writes, sentence) Stages<NarrowFloat, W>::name,
#define DS_WIDE(name, lanes, reads, writes, sentence) Stages<WideFloat, W>::name,
constexpr const char* kNames[kNumStages] = {DS_STAGE_TABLE(DS_NAME)};
constexpr StageFunction kNarrow[kNumStages] = {DS_STAGE_TABLE(DS_NARROW)};
constexpr StageFunction kWide[kNumStages] = {DS_STAGE_TABLE(DS_WIDE)};

constexpr int kWorlds = 70;  // no multiple of any tile or vector
constexpr int kSteps = 200;
constexpr int32_t kEpisodeLength = 90;
constexpr uint32_t kSeed = 11;

// All worlds and tensors, stepped stage by stage in one of the ways.
struct Batch {
    const char* lanes;
    const StageFunction* stages;
    int tile_worlds;
    std::vector<W> worlds;
    std::vector<std::vector<uint8_t>> tensors;
    Simulation simulation;
    std::vector<Tile<W>> tiles;
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
    const Dimensions dimensions{kWorlds, W::kAgents, flat_size(W::kAgents)};
    for (const TensorRow& row : kTensorRows) {
        ds_tensor_info info;
        describe_tensor(row, dimensions, &info);
        tensors.emplace_back(static_cast<size_t>(tensor_bytes(info)));
    }
    TensorPointers pointers;
#define DS_POINT(name, dtype, shape, access, sentence) \
    pointers.name = reinterpret_cast<decltype(pointers.name)>(tensors[DS_TENSOR_##name].data());
    DS_TENSOR_TABLE(DS_POINT)
#undef DS_POINT
    return pointers;
}

void prepare(Batch& batch, const std::vector<W>& start, bool look_for_edits) {
    batch.worlds = start;
    const TensorPointers pointers = allocate_tensors(batch.tensors);
    batch.simulation = {batch.worlds.data(), pointers, kEpisodeLength, 1, DS_ACTION_CHECK_OFF, look_for_edits};
    for (int first = 0; first < kWorlds; first += batch.tile_worlds)
        batch.tiles.emplace_back(batch.simulation, flights(), batch.worlds.data() + first, first,
                                 kWorlds - first < batch.tile_worlds ? kWorlds - first : batch.tile_worlds);
}

// ---- Starts

std::vector<W> first_levels() {
    std::vector<W> worlds(kWorlds);
    memset(static_cast<void*>(worlds.data()), 0, sizeof(W) * worlds.size());
    for (uint32_t i = 0; i < kWorlds; i++) {
        worlds[i].seed = kSeed;
        worlds[i].global_index = i;
        worlds[i].culprit_body = worlds[i].culprit_step = -1;
        generate_level(worlds[i], kEpisodeLength);
    }
    return worlds;
}

// Agents beside or inside cubes, some cubes in the air, tilted and moving: contacts of all kinds, and every lane of
// bodies awake.
std::vector<W> among_cubes() {
    std::vector<W> worlds = first_levels();
    Draws draws{kSeed};
    for (W& world : worlds) {
        for (int a = 0; a < W::kAgents; a++) {
            const int cube = W::kAgents + static_cast<int>(draws.below(W::kCubes));
            const Vec3 near = world.body_position(cube);
            world.set_body_position(a, {near.x + draws.between(-3.5f, 3.5f), near.y + draws.between(-3.5f, 3.5f), 0.f});
            const Heading half_yaw = sine_cosine(draws.between(-0.75f, 0.75f));
            world.set_body_rotation(a, {half_yaw.cosine, 0.f, 0.f, half_yaw.sine});
        }
        for (int cube = W::kAgents; cube < W::kBodies; cube++) {
            if (draws.below(4) != 0) continue;
            const Vec3 p = world.body_position(cube);
            world.set_body_position(cube, {p.x, p.y, p.z + draws.between(0.f, 2.f)});
            world.set_body_rotation(cube, normalize({1.f, draws.between(-0.5f, 0.5f), draws.between(-0.5f, 0.5f),
                                                     draws.between(-0.5f, 0.5f)}));
            world.set_body_velocity(cube, {draws.between(-2.f, 2.f), draws.between(-2.f, 2.f), 0.f});
        }
    }
    return worlds;
}

// ---- Stepping and comparing

// Legal actions, and now and then others, which have no row in the table of flights.
void write_actions(Batch& batch, int step) {
    Draws draws{kSeed + 1000003u * static_cast<uint64_t>(step)};
    int32_t* row = batch.simulation.tensors.actions;
    for (int slot = 0; slot < kWorlds * W::kAgents; slot++, row += kActionComponents) {
        const bool legal = draws.below(40) != 0;
        row[0] = static_cast<int32_t>(draws.below(legal ? 4 : 12));
        row[1] = static_cast<int32_t>(draws.below(8));
        row[2] = static_cast<int32_t>(draws.below(legal ? 5 : 12)) - (legal ? 0 : 4);
        row[3] = draws.below(8) == 0;
    }
    for (int i = 0; i < kWorlds; i++) batch.simulation.tensors.resets[i] = draws.below(200) == 0;
}

// Index of the first byte that differs, or -1.
long long first_difference(const void* left, const void* right, size_t bytes) {
    if (bytes == 0 || memcmp(left, right, bytes) == 0) return -1;
    const uint8_t *a = static_cast<const uint8_t*>(left), *b = static_cast<const uint8_t*>(right);
    long long at = 0;
    while (a[at] == b[at]) at++;
    return at;
}

void fail(const Batch& batch, int step, int stage, const char* where, long long item, long long offset) {
    fprintf(stderr, "%d agents, %s lanes in tiles of %d: first differs in step %d after %s: %s %lld, byte %lld\n",
            W::kAgents, batch.lanes, batch.tile_worlds, step, kNames[stage], where, item, offset);
    abort();
}

void expect_equal_worlds(const Batch& reference, const Batch& batch, int step, int stage) {
    for (size_t i = 0; i < kWorlds; i++) {
        const long long at = first_difference(&reference.worlds[i], &batch.worlds[i], sizeof(W));
        if (at >= 0) fail(batch, step, stage, "world", static_cast<long long>(i), at);
    }
}

void expect_equal_tensors(const Batch& reference, const Batch& batch, int step, int stage) {
    for (size_t i = 0; i < DS_TENSOR_COUNT; i++) {
        const long long at =
            first_difference(reference.tensors[i].data(), batch.tensors[i].data(), reference.tensors[i].size());
        if (at >= 0) fail(batch, step, stage, kTensorRows[i].name, static_cast<long long>(i), at);
    }
}

void step_together(const std::vector<W>& start, bool look_for_edits) {
    const DefaultFloatEnvironment environment;
    Batch batches[] = {{"narrow", kNarrow, 64, {}, {}, {}, {}}, {"narrow", kNarrow, 1, {}, {}, {}, {}},
                       {"wide", kWide, 64, {}, {}, {}, {}},     {"wide", kWide, 7, {}, {}, {}, {}},
                       {"wide", kWide, 1, {}, {}, {}, {}}};
    for (Batch& batch : batches) prepare(batch, start, look_for_edits);
    for (int step = 0; step < kSteps; step++) {
        for (Batch& batch : batches) write_actions(batch, step);
        for (int stage = 0; stage < kNumStages; stage++)
            for (Batch& batch : batches) {
                for (Tile<W>& tile : batch.tiles) batch.stages[stage](tile);
                expect_equal_worlds(batches[0], batch, step, stage);
            }
        for (Batch& batch : batches) expect_equal_tensors(batches[0], batch, step, kNumStages - 1);
    }
    uint32_t moved = 0;
    for (size_t i = 0; i < kWorlds; i++) moved += memcmp(&start[i], &batches[0].worlds[i], sizeof(W)) != 0;
    CHECK_EQUAL(moved, kWorlds);
}

void lanes_and_tiles_do_not_change_a_byte_from_the_normal_start() { step_together(first_levels(), false); }

void lanes_and_tiles_do_not_change_a_byte_among_cubes() { step_together(among_cubes(), true); }

}  // namespace

int main() {
    RUN(lanes_and_tiles_do_not_change_a_byte_from_the_normal_start);
    RUN(lanes_and_tiles_do_not_change_a_byte_among_cubes);
}
