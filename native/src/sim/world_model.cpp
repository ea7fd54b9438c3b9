// The simulation for one number of agents (DS_AGENTS) and one capacity (DS_CAPACITY), eight lanes wide. Compiled once
// for each, for AVX2.
#include "sim/world_model.h"

#include <string.h>

#include "sim/state_fields.h"
#include "sim/step.h"
#include "sim/validity.h"
#include "sim/world_models.h"

namespace doorstep {
namespace {

using Float = WideFloat;
using W = World<DS_AGENTS, DS_CAPACITY>;
using TileT = TileInPlace<W, Float>;

FlightTable flight_table;

// Measures the stages. Where assertions are on, records are poisoned before a step and worlds are checked after every
// stage.
struct CpuWatch {
    uint64_t* ticks;  // a counter per stage, or null
    uint64_t before = 0;

    DS_METHOD void begin(TileT& tile) {
#if !defined(NDEBUG)
        memset(static_cast<void*>(&tile.records), 0xFF, sizeof tile.records);
#endif
        (void)tile;
        if (ticks) before = __builtin_ia32_rdtsc();
    }
    DS_METHOD void end(TileT& tile, Stage stage) {
        for (int i = 0; i < tile.count; i++) DS_ASSERT(is_valid(tile.world(i), tile.simulation.rules.episode_length));
        if (!ticks) return;
        const uint64_t now = __builtin_ia32_rdtsc();
        ticks[stage] += now - before;
        before = now;
    }
};

// Calls body(block, tile) for every tile of a run of worlds.
template <class Body>
void for_each_tile(const Simulation& simulation, int64_t first, int64_t count, const Body& body) {
    LoneThread block;
    Workspace<W, Float, 1, 1> workspace;
    TileT::Records records;
    for (int64_t slot = first; slot < first + count; slot += kTileWorlds) {
        const int64_t left = first + count - slot;
        TileT tile{simulation, flight_table, static_cast<char*>(simulation.worlds) + slot * kBlockBytes<W>, records,
                   workspace, slot, static_cast<int>(left < kTileWorlds ? left : kTileWorlds)};
        body(block, tile);
    }
}

void create(const Simulation& simulation, int64_t first, int64_t count, uint32_t seed, uint64_t world_offset) {
    for_each_tile(simulation, first, count, [&](auto& block, auto& tile) {
        tile.request = {nullptr, seed, world_offset, nullptr};
        create_tile(block, tile);
    });
}

uint32_t step(const Simulation& simulation, int64_t first, int64_t count, uint64_t* ticks) {
    uint32_t trouble = kTroubleNone;
    for_each_tile(simulation, first, count, [&](auto& block, auto& tile) {
        step_tile(block, tile, CpuWatch{ticks});
        trouble |= trouble_of(tile);
    });
    return trouble;
}

uint32_t reset(const Simulation& simulation, int64_t first, int64_t count, const uint8_t* mask,
               const EpisodeStart* starts) {
    uint32_t trouble = kTroubleNone;
    for_each_tile(simulation, first, count, [&](auto& block, auto& tile) {
        tile.request.mask = mask ? mask + tile.first : nullptr;
        tile.request.starts = starts ? starts + tile.first : nullptr;
        reset_tile(block, tile);
        trouble |= trouble_of(tile);
    });
    return trouble;
}

uint32_t refresh(const Simulation& simulation, int64_t first, int64_t count) {
    uint32_t trouble = kTroubleNone;
    for_each_tile(simulation, first, count, [&](auto& block, auto& tile) {
        refresh_tile(block, tile);
        trouble |= trouble_of(tile);
    });
    return trouble;
}

void read_health(const void* block, WorldHealth* health) {
    *health = static_cast<const W*>(block)->health;
}

void read_progress(const void* block, EpisodeProgress* progress) {
    const W& world = *static_cast<const W*>(block);
    const W::Progress& of_world = world.progress;
    progress->is_over = world.terms().is_over(world.episode);
    for (int a = 0; a < W::kAgents; a++) {
        progress->returns[a] = of_world.episode_return[a];
        progress->max_y[a] = of_world.max_y[a];
    }
}

bool is_valid_block(const void* block, int32_t episode_length) {
    W world;  // a saved block need not be aligned
    memcpy(static_cast<void*>(&world), block, sizeof world);
    return is_valid(world, episode_length);
}

void absorb_block_edits(void* block) { absorb_world_edits<Float>(*static_cast<W*>(block)); }

int64_t count_valid(const void* blocks, int64_t count, int32_t episode_length) {
    const char* block = static_cast<const char*>(blocks);
    for (int64_t i = 0; i < count; i++, block += kBlockBytes<W>)
        if (!is_valid(*reinterpret_cast<const W*>(block), episode_length)) return i;
    return count;
}

constexpr WorldModel make_model() {
    WorldModel model{};
    model.kind = {W::kAgents, W::kPlaysLevels};
    model.num_agents = W::kAgents;
    model.num_bodies = W::kBodies;
    model.num_statics = W::kStatics;
    model.num_buttons = W::kButtons;
    model.num_doors = W::kDoors;
    model.world_bytes = kBlockBytes<W>;
#define DS_STATE_PLACE(name, ...) model.state_fields[DS_STATE_##name] = StateFields<W>::name;
    DS_STATE_TABLE(DS_STATE_PLACE)
#undef DS_STATE_PLACE
    model.create = create;
    model.step = step;
    model.reset = reset;
    model.refresh = refresh;
    model.find_bad_action = [](const Simulation& simulation, int64_t first, int64_t count, BadAction* bad) {
        return find_bad_action<W>(simulation.tensors.actions, first, count, bad);
    };
    model.read_health = read_health;
    model.read_progress = read_progress;
    model.is_valid = is_valid_block;
    model.absorb_edits = absorb_block_edits;
    model.count_valid = count_valid;
    return model;
}

constexpr WorldModel kModel = make_model();

}  // namespace

template <>
const WorldModel& world_model<DS_AGENTS, DS_CAPACITY>() {
    return kModel;
}
template <>
void prepare_world_model<DS_AGENTS, DS_CAPACITY>() {
    make_flight_table(flight_table);
}

}  // namespace doorstep
