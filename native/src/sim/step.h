// The step: advances a tile of worlds by one step, as an ordered list of stages.
//
// Within a stage, lanes run over the items named in the table. On the CPU eight lanes are one vector and a thread
// processes all items of its tile. On CUDA a lane is a thread, the threads of a block share the items, and a barrier
// ends each stage. A stage reads and writes only the blocks and the records of the tile, and calls no other stage.
// Results do not depend on which worlds share a tile. Doors move before bodies, by the flag of the last step; buttons
// are evaluated after bodies have moved; a world whose episode ends is observed, regenerated, and observed again.
#pragma once

#include "sim/edits.h"
#include "sim/episode.h"
#include "sim/flight.h"
#include "sim/observe.h"
#include "sim/stages.h"

namespace doorstep {

// Each stage is Stages<Float, Tile>::name(tile, share).
template <class Float, class TileT>
struct Stages {
    using W = typename TileT::W;
    static constexpr int A = W::kAgents;

    template <class Share>
    static DS_METHOD void absorb_edits(TileT& tile, Share share) {
        for (int i = share.first; i < tile.count; i += share.stride)
            tile.records.trouble[i] = tile.simulation.look_for_edits
                                          ? doorstep::absorb_edits<Float>(tile.world(i))
                                          : static_cast<uint32_t>(kTroubleNone);
    }

    template <class Share>
    static DS_METHOD void load_actions(TileT& tile, Share share) {
        for (int slot = share.first; slot < tile.count * A; slot += share.stride) {
            const W& world = tile.world_of(slot);
            Action action;
            const int32_t* row = tile.simulation.tensors.actions + (tile.first * A + slot) * kActionComponents;
            const int clamped = read_action(row, tile.simulation.action_check, action);
            tile.records.clamped[slot] = static_cast<uint8_t>(clamped);
            tile.records.actions[slot] = action;
            const int flight = flight_of(action);
            tile.records.motion[slot] = flight < 0 ? kCoupled : kFree;
            if (flight < 0) bound_any_path(tile, world, slot % A, slot);
            else fly(tile, world, slot % A, slot, tile.flights.flights[flight]);
        }
    }

    template <class Share>
    static DS_METHOD void move_doors(TileT& tile, Share share) {
        for (int i = share.first; i < tile.count; i += share.stride) doorstep::move_doors(tile.world(i));
    }

    template <class Share>
    static DS_METHOD void toggle_grabs(TileT& tile, Share share) {
        for (int slot = share.first; slot < tile.count * A; slot += share.stride)
            if (tile.records.actions[slot].grab == 1) toggle_grab<Float>(tile.world_of(slot), slot % A);
    }

    template <class Share>
    static DS_METHOD void classify_agents(TileT& tile, Share share) {
        for (int slot = share.first; slot < tile.count * A; slot += share.stride)
            tile.records.motion[slot] = motion_alone<Float>(tile, tile.world_of(slot), slot % A, slot);
    }

    template <class Share>
    static DS_METHOD void couple_agents(TileT& tile, Share share) {
        for (int i = share.first; i < tile.count; i += share.stride) {
            doorstep::couple_agents<Float>(tile, tile.world(i), i * A);
            tile.records.coupled[i] = needs_solving(tile, tile.world(i), i * A);
        }
    }

    template <class Share>
    static DS_METHOD void fly_agents(TileT& tile, Share share) {
        const auto& flown = tile.records;
        for (int slot = share.first; slot < tile.count * A; slot += share.stride)
            if (flown.motion[slot] == kFree)
                settle_agent(tile.world_of(slot), slot % A, flown.flown_x[slot], flown.flown_y[slot],
                             flown.flown_w[slot], flown.flown_z[slot]);
    }

    // Agents with one wall in reach are listed apart from those with more, so that they skip the empty slots
    template <class Share>
    static DS_METHOD void slide_agents(TileT& tile, Share share) {
        int slots[2][Float::kLanes], waiting[2] = {0, 0};
        for (int slot = share.first; slot < tile.count * A; slot += share.stride) {
            if (tile.records.motion[slot] != kSliding) continue;
            const int queue = (tile.records.walls[slot] & (tile.records.walls[slot] - 1)) != 0;
            slots[queue][waiting[queue]++] = slot;
            if (waiting[queue] < Float::kLanes) continue;
            slide_batch<Float>(tile, slots[queue], Float::kLanes, share.slider());
            waiting[queue] = 0;
        }
        for (int queue = 0; queue < 2; queue++)
            if (waiting[queue] > 0) slide_batch<Float>(tile, slots[queue], waiting[queue], share.slider());
    }

    // The solvers take turns through the coupled worlds
    template <class Share>
    static DS_METHOD void solve_bodies(TileT& tile, Share share) {
        const int solver = share.solver();
        if (solver < 0) return;
        int turn = 0;
        for (int i = 0; i < tile.count; i++) {
            if (!tile.records.coupled[i]) continue;
            auto& coupled = tile.workspace.coupled[solver];
            if (turn == solver) tile.records.trouble[i] |= solve_world<Float>(tile, tile.world(i), i * A, coupled);
            turn = turn + 1 == Share::solvers ? 0 : turn + 1;
        }
    }

    template <class Share>
    static DS_METHOD void press_buttons(TileT& tile, Share share) {
        constexpr int kVectors = W::kButtonLanes / Float::kLanes;
        for (int item = share.first; item < tile.count * kVectors; item += share.stride)
            doorstep::press_buttons<Float>(tile.world(item / kVectors), item % kVectors * Float::kLanes);
    }

    template <class Share>
    static DS_METHOD void open_doors(TileT& tile, Share share) {
        for (int i = share.first; i < tile.count; i += share.stride) doorstep::open_doors(tile.world(i));
    }

    template <class Share>
    static DS_METHOD void score_progress(TileT& tile, Share share) {
        for (int i = share.first; i < tile.count; i += share.stride) {
            doorstep::score_progress(tile.world(i), tile.records.rewards + i * A);
            share_bonus(tile.world(i), tile.records.rewards + i * A);
        }
    }

    template <class Share>
    static DS_METHOD void count_step(TileT& tile, Share share) {
        const Simulation& simulation = tile.simulation;
        for (int i = share.first; i < tile.count; i += share.stride) {
            W& world = tile.world(i);
            const float* rewards = tile.records.rewards + i * A;
            int32_t& reset = simulation.tensors.resets[tile.first + i];
            for (int a = 0; a < A; a++) world.clamped_actions += tile.records.clamped[i * A + a];
            const bool truncated = doorstep::count_step(world, rewards, simulation.episode_length);
            tile.records.ends[i] = truncated || reset != 0;
            tile.records.regenerates[i] = reset != 0 || (world.done && simulation.auto_reset);
            reset = 0;
            write_score(simulation.tensors, tile.first + i, world, rewards, truncated);
        }
    }

    template <class Share>
    static DS_METHOD void prepare_sights(TileT& tile, Share share) {
        for (int first = share.first * Float::kLanes; first < tile.count * A; first += share.stride * Float::kLanes)
            measure_yaws<Float>(tile, first);
        if constexpr (Float::kLanes == 1)
            for (int slot = share.first; slot < tile.count * A; slot += share.stride)
                tile.records.sights[slot] = statics_in_sight(tile.world_of(slot), slot % A);
    }

    template <class Share>
    static DS_METHOD void record_final(TileT& tile, Share share) {
        const Simulation& simulation = tile.simulation;
        const ObservationTensors to = final_observations(simulation.tensors);
        for (int i = share.first; i < tile.count; i += share.stride)
            if (tile.records.ends[i])
                write_episode(simulation.tensors, tile.first + i, tile.world(i), simulation.episode_length);
        observe_agents(tile, share, to, tile.records.ends);
        cast_rays(tile, share, to, tile.records.ends);
    }

    template <class Share>
    static DS_METHOD void flatten_final(TileT& tile, Share share) {
        flatten_agents(tile, share, final_observations(tile.simulation.tensors), tile.records.ends);
    }

    template <class Share>
    static DS_METHOD void reset_levels(TileT& tile, Share share) {
        for (int i = share.first; i < tile.count; i += share.stride) {
            if (!tile.records.regenerates[i]) continue;
            W& world = tile.world(i);
            world.episode_index++;
            generate_level(world, tile.simulation.episode_length);
            neutral_actions<W>(tile.simulation.tensors.actions + (tile.first + i) * A * kActionComponents);
            for (int a = 0; a < A; a++) {
                tile.records.yaws[i * A + a] = measure_yaw(world, a);
                if constexpr (Float::kLanes == 1) tile.records.sights[i * A + a] = statics_in_sight(world, a);
            }
        }
    }

    template <class Share>
    static DS_METHOD void observe(TileT& tile, Share share) {
        observe_agents(tile, share, current_observations(tile.simulation.tensors), nullptr);
    }

    template <class Share>
    static DS_METHOD void cast_lidar(TileT& tile, Share share) {
        cast_rays(tile, share, current_observations(tile.simulation.tensors), nullptr);
    }

    template <class Share>
    static DS_METHOD void flatten(TileT& tile, Share share) {
        flatten_agents(tile, share, current_observations(tile.simulation.tensors), nullptr);
    }

    // ---- Parts of stages. chosen: bytes of the worlds to process, or null for all

    template <class Share>
    static DS_METHOD void observe_agents(TileT& tile, Share share, const ObservationTensors& to, const bool* chosen) {
        for (int slot = share.first; slot < tile.count * A; slot += share.stride) {
            if (chosen && !chosen[slot / A]) continue;
            observe_agent<Float>(tile.world_of(slot), slot % A, tile.records.yaws[slot], to, tile.first + slot / A);
        }
    }

    template <class Share>
    static DS_METHOD void cast_rays(TileT& tile, Share share, const ObservationTensors& to, const bool* chosen) {
        constexpr int kItems = Float::kLanes == 1 ? kLidarLines : 1;  // per agent
        for (int item = share.first; item < tile.count * A * kItems; item += share.stride) {
            const int slot = item / kItems, a = slot % A;
            if (chosen && !chosen[slot / A]) continue;
            float* out = to.lidar + (tile.first * A + slot) * kLidarSize;
            if constexpr (Float::kLanes == 1)
                cast_line(tile.world_of(slot), a, item % kItems, tile.records.sights[slot], out);
            else cast_agent_lidar<Float>(tile.world_of(slot), a, out);
        }
    }

    template <class Share>
    static DS_METHOD void flatten_agents(TileT& tile, Share share, const ObservationTensors& to, const bool* chosen) {
        if (!to.flat) return;
        for (int slot = share.first; slot < tile.count * A; slot += share.stride) {
            if (chosen && !chosen[slot / A]) continue;
            doorstep::flatten(tile.world_of(slot), slot % A, to, tile.first + slot / A, tile.simulation.episode_length);
        }
    }

    // ---- Outside steps

    // Global world of the tile's world 0: first + world_offset.
    template <class Share>
    static DS_METHOD void create_worlds(TileT& tile, Share share, uint32_t seed, uint64_t world_offset) {
        for (int i = share.first; i < tile.count; i += share.stride) {
            tile.records.chosen[i] = true;
            memset(static_cast<void*>(&tile.world(i)), 0, sizeof(W));
            give_identity(tile.world(i), seed, world_offset + static_cast<uint64_t>(tile.first + i));
            // Episode 0 is never observed: like the reference, creation replaces it first
            begin_next_level(tile.simulation, tile.first + i, tile.world(i));
        }
    }

    // mask: a byte per world of the tile, or null for all.
    template <class Share>
    static DS_METHOD void choose_worlds(TileT& tile, Share share, const uint8_t* mask) {
        for (int i = share.first; i < tile.count; i += share.stride) tile.records.chosen[i] = !mask || mask[i];
    }

    template <class Share>
    static DS_METHOD void reset_chosen(TileT& tile, Share share) {
        for (int i = share.first; i < tile.count; i += share.stride)
            if (tile.records.chosen[i]) begin_next_level(tile.simulation, tile.first + i, tile.world(i));
    }

    template <class Share>
    static DS_METHOD void absorb_chosen(TileT& tile, Share share) {
        for (int i = share.first; i < tile.count; i += share.stride)
            tile.records.trouble[i] = tile.records.chosen[i] ? doorstep::absorb_edits<Float>(tile.world(i))
                                                             : static_cast<uint32_t>(kTroubleNone);
    }
};

// ---- Operations on a tile. A block lets its workers execute a stage together: block.each(stage) calls stage(share)
// for every worker's share and returns when all are done.

// The CPU's block: the calling thread.
struct LoneThread {
    template <class Stage>
    DS_METHOD void each(const Stage& stage) {
        stage(WholeShare{});
    }
};

DS_INLINE uint64_t time_stamp() {
#if defined(__x86_64__) && !defined(__CUDACC__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

// ticks: a counter per stage, or null.
template <class Float, class Block, class TileT>
DS_INLINE void step_tile(Block& block, TileT& tile, uint64_t* ticks) {
    using S = Stages<Float, TileT>;
    uint64_t before = ticks ? time_stamp() : 0;
#define DS_STAGE_RUN(name, lanes, reads, writes, sentence)   \
    block.each([&](auto share) { S::name(tile, share); });   \
    if (ticks) {                                             \
        const uint64_t now = time_stamp();                   \
        ticks[kStage_##name] += now - before;                \
        before = now;                                        \
    }
    DS_STAGE_TABLE(DS_STAGE_RUN)
#undef DS_STAGE_RUN
}

template <class Float, class Block, class TileT>
DS_INLINE void observe_chosen(Block& block, TileT& tile) {
    using S = Stages<Float, TileT>;
    const ObservationTensors to = current_observations(tile.simulation.tensors);
    block.each([&](auto share) { S::prepare_sights(tile, share); });
    block.each([&](auto share) {
        S::observe_agents(tile, share, to, tile.records.chosen);
        S::cast_rays(tile, share, to, tile.records.chosen);
    });
    block.each([&](auto share) { S::flatten_agents(tile, share, to, tile.records.chosen); });
}

template <class Float, class Block, class TileT>
DS_INLINE void create_tile(Block& block, TileT& tile, uint32_t seed, uint64_t world_offset) {
    block.each([&](auto share) { Stages<Float, TileT>::create_worlds(tile, share, seed, world_offset); });
    observe_chosen<Float>(block, tile);
}

// As ds_simulator_reset. mask: a byte per world of the tile, or null for all.
template <class Float, class Block, class TileT>
DS_INLINE void reset_tile(Block& block, TileT& tile, const uint8_t* mask) {
    block.each([&](auto share) { Stages<Float, TileT>::choose_worlds(tile, share, mask); });
    block.each([&](auto share) { Stages<Float, TileT>::reset_chosen(tile, share); });
    observe_chosen<Float>(block, tile);
}

// Recomputes derived data and observations, after edits.
template <class Float, class Block, class TileT>
DS_INLINE void refresh_tile(Block& block, TileT& tile, const uint8_t* mask) {
    block.each([&](auto share) { Stages<Float, TileT>::choose_worlds(tile, share, mask); });
    block.each([&](auto share) { Stages<Float, TileT>::absorb_chosen(tile, share); });
    observe_chosen<Float>(block, tile);
}

// Trouble in any world of a tile in the latest operation that checks for it.
template <class TileT>
DS_INLINE uint32_t trouble_of(const TileT& tile) {
    uint32_t trouble = kTroubleNone;
    for (int i = 0; i < tile.count; i++) trouble |= tile.records.trouble[i];
    return trouble;
}

}  // namespace doorstep
