// Declares the stages as the rows of sim/stage_table.h describe them. Each is defined in the file of its subject.
#pragma once

#include "sim/items.h"

namespace doorstep {

template <WorldTile TileT>
struct Stages {
    using Float = typename TileT::Float;
    using Wide = typename TileT::Wide;
    using World = typename TileT::W;
    using AgentCount = typename World::AgentCount;
    using Bodies = typename World::Bodies;
    using Statics = typename World::Statics;
    using Buttons = typename World::Buttons;
    using Doors = typename World::Doors;
    using Grabs = typename World::Grabs;
    using Progress = typename World::Progress;
    using Terms = typename World::Terms;
    using Solver = typename TileT::Solver;
    using Crew = typename TileT::Crew;
    using CoupledWorlds = doorstep::CoupledWorlds<TileT>;
    using SlideBatch = doorstep::SlideBatch<Wide>;
    using AgentVector = doorstep::AgentVector<TileT>;
    using SlidingAgents = doorstep::SlidingAgents<TileT>;
    using SlidingBodies = doorstep::SlidingBodies<TileT>;

#define DS_STAGE_DECLARATION(name, items, parameters, sentence) static DS_METHOD void name parameters;
    DS_STAGE_TABLE(DS_STAGE_DECLARATION)
    DS_EPISODE_STAGE_TABLE(DS_STAGE_DECLARATION)
#undef DS_STAGE_DECLARATION
};

// Calls a stage with what it takes of an item.
template <auto stage>
struct StageCall;
template <class... Parameters, void (*stage)(Parameters...)>
struct StageCall<stage> {
    template <class Item>
    static DS_METHOD void on(const Item& item) {
        stage(static_cast<Parameters>(item)...);
    }
};

// Runs a stage over the items of a worker's share.
template <class Items, auto stage, WorldTile TileT, WorkerShare Share>
DS_INLINE void run_stage(TileT& tile, Share share) {
    Items::each(tile, share, [](const auto& item) { StageCall<stage>::on(item); });
}

}  // namespace doorstep
