// The step: advances a tile of worlds by one step, as an ordered list of stages; and the other operations on tiles.
//
// A row of the table in sim/stage_table.h tells over what a stage runs and what it has access to; that is how it is
// executed here. On the CPU eight lanes are one vector and a thread processes all items of its tile. On CUDA a lane is
// a thread, the threads of a block share the items, and a barrier ends each stage. Results do not depend on which
// worlds share a tile. Doors move before bodies, by the flag of the last step; buttons are evaluated after bodies; a
// world whose episode ends is observed, regenerated, and observed again.
#pragma once

#include "sim/coupled.h"
#include "sim/edits.h"
#include "sim/episode.h"
#include "sim/sliding.h"

namespace doorstep {

// Told about every stage of a step.
template <class Watch, class TileT>
concept StageWatch = requires(Watch watch, TileT& tile) {
    watch.begin(tile);
    watch.end(tile, kNumStages);
};

struct NoWatch {
    template <class TileT>
    DS_METHOD void begin(TileT&) {}
    template <class TileT>
    DS_METHOD void end(TileT&, Stage) {}
};

template <class Items, auto stage, WorkerBlock Block, WorldTile TileT>
DS_INLINE void run_on_block(Block& block, TileT& tile) {
    if constexpr (requires { Items::leaf(block.leaves); }) Items::leaf(block.leaves)(tile);
    else if constexpr (requires { Items::kMeeting; }) run_stage<Items, stage>(tile, WholeShare{});
    else block.each([&](auto share) { run_stage<Items, stage>(tile, share); });
}

template <WorkerBlock Block, WorldTile TileT, StageWatch<TileT> Watch>
DS_INLINE void step_tile(Block& block, TileT& tile, Watch watch) {
    watch.begin(tile);
#define DS_RUN_STAGE(name, items, parameters, sentence)      \
    run_on_block<over::items, Stages<TileT>::name>(block, tile);   \
    watch.end(tile, kStage_##name);
    DS_STAGE_TABLE(DS_RUN_STAGE)
#undef DS_RUN_STAGE
}

// Not inline: creation, reset and refresh share it.
template <WorkerBlock Block, WorldTile TileT>
DS_NOINLINE void observe_chosen(Block& block, TileT& tile) {
    using S = Stages<TileT>;
    run_on_block<over::AgentVectors, S::prepare_sights>(block, tile);
    run_on_block<over::ChosenAgents, S::observe>(block, tile);
    run_on_block<over::ChosenLines, S::cast_lidar>(block, tile);
    run_on_block<over::ChosenFlatAgents, S::flatten>(block, tile);
}

// The tile's request tells seed and world offset.
template <WorkerBlock Block, WorldTile TileT>
DS_INLINE void create_tile(Block& block, TileT& tile) {
    using S = Stages<TileT>;
    run_on_block<over::Worlds, S::create_worlds>(block, tile);
    run_on_block<over::Worlds, S::begin_levels>(block, tile);
    observe_chosen(block, tile);
}

// As ds_simulator_reset, with the mask of the tile's request.
template <WorkerBlock Block, WorldTile TileT>
DS_INLINE void reset_tile(Block& block, TileT& tile) {
    using S = Stages<TileT>;
    run_on_block<over::Worlds, S::choose_worlds>(block, tile);
    run_on_block<over::ChosenWorlds, S::begin_levels>(block, tile);
    observe_chosen(block, tile);
}

// Recomputes derived data and observations, after edits, of the worlds of the request's mask.
template <WorkerBlock Block, WorldTile TileT>
DS_INLINE void refresh_tile(Block& block, TileT& tile) {
    using S = Stages<TileT>;
    run_on_block<over::Worlds, S::choose_worlds>(block, tile);
    run_on_block<over::Worlds, S::absorb_chosen>(block, tile);
    observe_chosen(block, tile);
}

// Trouble in any world of a tile in the latest operation that checks for it.
template <WorldTile TileT>
DS_INLINE uint32_t trouble_of(const TileT& tile) {
    uint32_t trouble = kTroubleNone;
    for (int i = 0; i < tile.count; i++) trouble |= tile.records.trouble[i].bits;
    return trouble;
}

}  // namespace doorstep
