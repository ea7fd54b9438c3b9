// The step: a block of worlds in, the same block one step later, by an ordered list of stages.
//
// A tile of worlds goes through the stages together. Inside a stage the lanes run over the items named in the
// table; on the CPU eight lanes are one vector and a stage is a loop, on CUDA a lane is a thread and a barrier ends
// each stage. A stage reads and writes the blocks and the tile only, and calls no other stage. No result depends on
// which worlds share a tile. Doors move before bodies, by the flag of the last step; buttons are looked at after
// bodies have moved; a world that ends is observed, regenerated, and observed again.
#pragma once

#include "sim/edits.h"
#include "sim/flight.h"
#include "sim/level.h"
#include "sim/observe.h"
#include "sim/score.h"
#include "sim/stages.h"

namespace doorstep {

// Each stage is Stages<Float, W>::name(tile).
template <class Float, class W>
struct Stages {
    using TileT = Tile<W>;
    static constexpr int A = W::kAgents;

    static DS_METHOD void absorb_edits(TileT& tile) {
        if (!tile.simulation.look_for_edits) return;
        for (int i = 0; i < tile.count; i++) tile.trouble |= doorstep::absorb_edits<Float>(tile.worlds[i]);
    }

    static DS_METHOD void load_actions(TileT& tile) {
        for (int slot = 0; slot < tile.count * A; slot++) {
            W& world = tile.worlds[slot / A];
            const int a = slot % A;
            Action action;
            world.clamped_actions += static_cast<uint32_t>(
                read_action(tile.simulation.tensors.actions + (tile.first * A + slot) * kActionComponents,
                            tile.simulation.action_check, action));
            tile.actions[slot] = action;
            const int flight = flight_of(action);
            tile.motion[slot] = flight < 0 ? kCoupled : kFree;
            if (flight < 0) bound_any_path(tile, world, a, slot);
            else fly(tile, world, a, slot, tile.flights.flights[flight]);
        }
    }

    static DS_METHOD void move_doors(TileT& tile) {
        for (int i = 0; i < tile.count; i++) doorstep::move_doors(tile.worlds[i]);
    }

    static DS_METHOD void toggle_grabs(TileT& tile) {
        for (int slot = 0; slot < tile.count * A; slot++)
            if (tile.actions[slot].grab == 1) toggle_grab<Float>(tile.worlds[slot / A], slot % A);
    }

    static DS_METHOD void classify_agents(TileT& tile) {
        for (int i = 0; i < tile.count; i++) classify_world<Float>(tile, tile.worlds[i], i * A);
    }

    static DS_METHOD void fly_agents(TileT& tile) {
        for (int slot = 0; slot < tile.count * A; slot++)
            if (tile.motion[slot] == kFree)
                settle_agent(tile.worlds[slot / A], slot % A, tile.flown_x[slot], tile.flown_y[slot],
                             tile.flown_w[slot], tile.flown_z[slot]);
    }

    // Agents with one wall in reach and agents with more wait apart, so that the first need not look at empty slots
    static DS_METHOD void slide_agents(TileT& tile) {
        int slots[2][kLanes], waiting[2] = {0, 0};
        for (int slot = 0; slot < tile.count * A; slot++) {
            if (tile.motion[slot] != kSliding) continue;
            const int queue = (tile.walls[slot] & (tile.walls[slot] - 1)) != 0;
            slots[queue][waiting[queue]++] = slot;
            if (waiting[queue] < kLanes) continue;
            slide_batch<Float>(tile, slots[queue], kLanes);
            waiting[queue] = 0;
        }
        for (int queue = 0; queue < 2; queue++)
            if (waiting[queue] > 0) slide_batch<Float>(tile, slots[queue], waiting[queue]);
    }

    static DS_METHOD void solve_bodies(TileT& tile) {
        for (int i = 0; i < tile.count; i++)
            if (needs_solving(tile, tile.worlds[i], i * A))
                tile.trouble |= solve_world<Float>(tile, tile.worlds[i], i * A);
    }

    static DS_METHOD void press_buttons(TileT& tile) {
        for (int i = 0; i < tile.count; i++) doorstep::press_buttons<Float>(tile.worlds[i]);
    }

    static DS_METHOD void open_doors(TileT& tile) {
        for (int i = 0; i < tile.count; i++) doorstep::open_doors(tile.worlds[i]);
    }

    static DS_METHOD void score_progress(TileT& tile) {
        for (int i = 0; i < tile.count; i++) {
            doorstep::score_progress(tile.worlds[i], tile.rewards + i * A);
            share_bonus(tile.worlds[i], tile.rewards + i * A);
        }
    }

    static DS_METHOD void count_step(TileT& tile) {
        const Simulation& simulation = tile.simulation;
        for (int i = 0; i < tile.count; i++) {
            W& world = tile.worlds[i];
            const float* rewards = tile.rewards + i * A;
            int32_t& reset = simulation.tensors.resets[tile.first + i];
            const bool truncated = doorstep::count_step(world, rewards, simulation.episode_length);
            tile.ends[i] = truncated || reset != 0;
            tile.regenerates[i] = reset != 0 || (world.done && simulation.auto_reset);
            reset = 0;
            write_score(simulation.tensors, tile.first + i, world, rewards, truncated);
        }
    }

    static DS_METHOD void record_final(TileT& tile) {
        const Simulation& simulation = tile.simulation;
        for (int i = 0; i < tile.count; i++) {
            if (!tile.ends[i]) continue;
            write_episode(simulation.tensors, tile.first + i, tile.worlds[i], simulation.episode_length);
            observe_whole_world<Float>(tile.worlds[i], final_observations(simulation.tensors), tile.first + i,
                                       simulation.episode_length);
        }
    }

    static DS_METHOD void reset_levels(TileT& tile) {
        for (int i = 0; i < tile.count; i++)
            if (tile.regenerates[i]) regenerate(tile, i);
    }

    static DS_METHOD void observe(TileT& tile) {
        const ObservationTensors to = current_observations(tile.simulation.tensors);
        alignas(32) float yaws[TileT::kAgentSlots];
        measure_yaws<Float>(tile.worlds, tile.count, yaws);
        for (int i = 0; i < tile.count; i++) observe_world<Float>(tile.worlds[i], yaws + i * A, to, tile.first + i);
    }

    static DS_METHOD void cast_lidar(TileT& tile) {
        const ObservationTensors to = current_observations(tile.simulation.tensors);
        for (int i = 0; i < tile.count; i++) {
            const int64_t slot = tile.first + i;
            doorstep::cast_lidar<Float>(tile.worlds[i], to.lidar + slot * A * kLidarSize);
            if (to.flat) flatten(tile.worlds[i], to, slot, tile.simulation.episode_length);
        }
    }

    // The next level, and the neutral action.
    static DS_METHOD void regenerate(TileT& tile, int i) {
        tile.worlds[i].episode_index++;
        generate_level(tile.worlds[i], tile.simulation.episode_length);
        neutral_actions<W>(tile.simulation.tensors.actions + (tile.first + i) * A * kActionComponents);
    }
};

DS_INLINE uint64_t time_stamp() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

// ticks: a counter per stage, or null.
template <class Float, class W>
DS_INLINE void step_tile(Tile<W>& tile, uint64_t* ticks) {
    uint64_t before = ticks ? time_stamp() : 0;
#define DS_STAGE_RUN(name, lanes, reads, writes, sentence) \
    Stages<Float, W>::name(tile);                          \
    if (ticks) {                                           \
        const uint64_t now = time_stamp();                 \
        ticks[kStage_##name] += now - before;              \
        before = now;                                      \
    }
    DS_STAGE_TABLE(DS_STAGE_RUN)
#undef DS_STAGE_RUN
}

}  // namespace doorstep
