// Items: over what stages run, and what a stage may take of an item.
//
// An item converts to each thing that a stage over such items may have as a parameter: a part of its world, a record
// of the step, rows of tensors. A stage that asks for anything else does not compile.
#pragma once

#include "sim/tile.h"

namespace doorstep {

// ---- Parameters of stages, beside parts of a world and records

// The records of one kind of all agents of a world, or of all agents of a vector.
template <class Record>
struct Each {
    Record* first;
    DS_METHOD Record& operator[](int agent) const { return first[agent]; }
};

struct WorldIndex {
    int in_tile;
    int64_t slot;  // of the simulation
};
struct AgentIndex {
    int agent;  // of its world
};
struct LineIndex {
    int agent;
    int line;  // the first that the item casts
};
struct ButtonIndex {
    int first;  // of a vector of buttons
};

// A row of a tensor: the world's, or the agent's. kWidth: values of a row.
template <class Value>
Value* first_value(Value* TensorPointers::*tensor);  // for its type only
template <auto tensor, int kWidth>
struct Row {
    decltype(first_value(tensor)) first;
};
using ResetRow = Row<&TensorPointers::resets, 1>;
using ActionRow = Row<&TensorPointers::actions, kActionComponents>;

struct ActionRows {
    int32_t* first;  // of all agents of a world
};
// The levels that a world may draw, its weights for them, and where the one that it drew is written.
struct LevelSource {
    const ds_level* levels;
    const float* weights;
    int32_t* drawn;
    int64_t count;
};
struct ScoreRows {
    float* rewards;
    int32_t* dones;
    uint8_t *terminations, *truncations;
};
struct EpisodeRows {
    float* returns;
    int32_t* length;
};

// The rows to write an observation to.
struct ObservationRow {
    int32_t* steps_remaining;
    float *self, *partners, *room_entities, *doors, *lidar;
    float* flat;  // null without flat observations
};
struct FinalObservationRow {
    ObservationRow row;
};

// ---- Items

template <WorldTile TileT>
struct WorldItem {
    using W = typename TileT::W;
    TileT& tile;
    int index;  // world of the tile

    DS_METHOD W& world() const { return tile.world(index); }
    DS_METHOD int64_t slot() const { return tile.first + index; }
    DS_METHOD int64_t agent_row() const { return slot() * tile.agents.num_agents(); }
    DS_METHOD const TensorPointers& tensors() const { return tile.simulation.tensors; }

    DS_METHOD operator WorldIndex() const { return {index, slot()}; }
    DS_METHOD operator W&() const { return world(); }
    DS_METHOD operator typename W::Bodies&() const { return world().bodies; }
    DS_METHOD operator typename W::Statics&() const { return world().statics; }
    DS_METHOD operator typename W::Buttons&() const { return world().buttons; }
    DS_METHOD operator typename W::Doors&() const { return world().doors; }
    DS_METHOD operator typename W::Grabs&() const { return world().grabs; }
    DS_METHOD operator typename W::Progress&() const { return world().progress; }
    DS_METHOD operator Sleep&() const { return world().sleep; }
    DS_METHOD operator Episode&() const { return world().episode; }
    DS_METHOD operator Identity&() const { return world().identity; }
    DS_METHOD operator WorldHealth&() const { return world().health; }
    DS_METHOD operator const typename W::Terms&() const { return world().terms(); }
    // The simulation's, which nothing that a caller does to blocks changes
    DS_METHOD operator typename W::AgentCount() const { return tile.agents; }

    // A copy: a reference into the parameters of a CUDA kernel costs a conversion of its address
    DS_METHOD operator Rules() const { return tile.simulation.rules; }
    DS_METHOD operator GivenRewards() const { return tile.simulation.given_rewards; }
    DS_METHOD operator const FlatLayout&() const { return tile.simulation.flat; }
    DS_METHOD operator const WorldRequest&() const { return tile.request; }
    template <auto tensor, int kWidth>
    DS_METHOD operator Row<tensor, kWidth>() const {
        return {tensors().*tensor + slot() * kWidth};
    }
    DS_METHOD operator ActionRows() const { return {tensors().actions + agent_row() * kActionComponents}; }
    DS_METHOD operator LevelSource() const {
        const Simulation& simulation = tile.simulation;
        return {simulation.levels, tensors().level_weights + slot() * simulation.max_levels, tensors().level_indices + slot(),
                simulation.max_levels};
    }
    DS_METHOD operator ScoreRows() const {
        const int64_t row = agent_row();
        return {tensors().rewards + row, tensors().dones + row, tensors().terminations + row,
                tensors().truncations + row};
    }
    DS_METHOD operator EpisodeRows() const {
        return {tensors().episode_returns + agent_row(), tensors().episode_lengths + slot()};
    }

#define DS_WORLD_RECORD(Record, name) \
    DS_METHOD operator Record&() const { return tile.records.name[index]; }
    DS_WORLD_RECORDS(DS_WORLD_RECORD)
#undef DS_WORLD_RECORD
#define DS_AGENT_RECORDS_OF_WORLD(Record, name)                                                        \
    DS_METHOD operator Each<Record>() const { return {tile.records.name + tile.agents.slot(index, 0)}; }       \
    DS_METHOD operator Each<const Record>() const { return {tile.records.name + tile.agents.slot(index, 0)}; }
    DS_AGENT_RECORDS(DS_AGENT_RECORDS_OF_WORLD)
#undef DS_AGENT_RECORDS_OF_WORLD
};

template <WorldTile TileT>
struct AgentItem : WorldItem<TileT> {
    using W = typename TileT::W;
    int agent;

    DS_METHOD AgentItem(TileT& in, int agent_slot)
        : WorldItem<TileT>{in, in.agents.world_of(agent_slot)}, agent(in.agents.agent_of(agent_slot)) {
        DS_ASSERT(agent_slot >= 0 && this->index < in.count);
    }

    DS_METHOD int agent_slot() const { return this->tile.agents.slot(this->index, agent); }
    DS_METHOD int64_t row() const { return this->agent_row() + agent; }

    DS_METHOD operator AgentIndex() const { return {agent}; }
    DS_METHOD operator const FlightTable&() const { return this->tile.flights; }
    template <auto tensor, int kWidth>
    DS_METHOD operator Row<tensor, kWidth>() const {
        return {this->tensors().*tensor + row() * kWidth};
    }
    DS_METHOD operator ObservationRow() const {
        const TensorPointers& t = this->tensors();
        return row_of({t.steps_remaining, t.self_observations, t.partner_observations, t.room_entity_observations,
                       t.door_observations, t.lidar, t.observations});
    }
    DS_METHOD operator FinalObservationRow() const {
        const TensorPointers& t = this->tensors();
        return {row_of({t.final_steps_remaining, t.final_self_observations, t.final_partner_observations,
                        t.final_room_entity_observations, t.final_door_observations, t.final_lidar,
                        t.final_observations})};
    }
#define DS_AGENT_RECORD(Record, name) \
    DS_METHOD operator Record&() const { return this->tile.records.name[agent_slot()]; }
    DS_AGENT_RECORDS(DS_AGENT_RECORD)
#undef DS_AGENT_RECORD

   private:
    DS_METHOD ObservationRow row_of(ObservationRow first) const {
        return {first.steps_remaining + row(),
                first.self + row() * kSelfSize,
                first.partners + row() * kPolarSize * (this->tile.agents.num_agents() - 1),
                first.room_entities + row() * kPolarSize * kEntitySlots,
                first.doors + row() * kPolarSize,
                first.lidar + row() * kLidarSize,
                first.flat ? first.flat + row() * this->tile.simulation.flat.size : nullptr};
    }
};

// CUDA threads that cast the lines of an agent.
constexpr int kLidarThreads = 4;

template <WorldTile TileT>
struct LineItem : AgentItem<TileT> {
    int line;
    DS_METHOD LineItem(TileT& in, int agent_slot, int first_line)
        : AgentItem<TileT>(in, agent_slot), line(first_line) {}
    DS_METHOD operator LineIndex() const { return {this->agent, line}; }
};

template <WorldTile TileT>
struct ButtonItem : WorldItem<TileT> {
    int button;
    DS_METHOD operator ButtonIndex() const { return {button}; }
};

// As many agents of a tile as there are lanes, from any of its worlds.
template <WorldTile TileT>
struct AgentVector {
    using W = typename TileT::W;
    const TileT& tile;
    int first, count;  // agents of the tile

    DS_METHOD const W& world(int lane) const { return tile.world(tile.agents.world_of(first + lane)); }
    DS_METHOD int agent(int lane) const {
        DS_ASSERT(lane >= 0 && lane < count);
        return tile.agents.agent_of(first + lane);
    }

    DS_METHOD operator Each<Yaw>() const { return {tile.records.yaws + first}; }
    DS_METHOD operator Each<StaticsInSight>() const { return {tile.records.sights + first}; }
};

// Agents that slide along walls, one per lane, from any worlds of a tile.
template <WorldTile TileT>
struct SlidingAgents {
    using W = typename TileT::W;
    const TileT& tile;
    const int* slots;  // an agent of the tile per lane
    int count;         // of lanes with an agent of their own; the others repeat the first

    DS_METHOD const W& world(int lane) const { return tile.world(tile.agents.world_of(slots[lane])); }
    DS_METHOD int agent(int lane) const {
        DS_ASSERT(lane >= 0 && lane < TileT::Wide::kLanes);
        return tile.agents.agent_of(slots[lane]);
    }
    DS_METHOD const Action& action(int lane) const { return tile.records.actions[slots[lane]]; }
    DS_METHOD WallsInReach walls(int lane) const { return tile.records.walls[slots[lane]]; }
};

// Where they are moved: the bodies of their worlds.
template <WorldTile TileT>
struct SlidingBodies {
    typename TileT::W::Bodies* of[TileT::Wide::kLanes];
};

template <WorldTile TileT>
struct SlidingItem {
    using Wide = typename TileT::Wide;
    TileT& tile;
    const SlidingAgents<TileT>& agents;
    SlidingBodies<TileT>& bodies;
    int slider;

    DS_METHOD operator const SlidingAgents<TileT>&() const { return agents; }
    DS_METHOD operator SlidingBodies<TileT>&() const { return bodies; }
    DS_METHOD operator SlideBatch<Wide>&() const { return tile.workspace.slides[slider]; }
};

// Worlds that go through the general solver together: so many of the coupled ones, from a world on.
template <WorldTile TileT>
struct CoupledWorlds {
    TileT& tile;
    int first, count;

    DS_METHOD WorldItem<TileT> operator[](int world) const {
        DS_ASSERT(tile.records.coupled[world].yes);
        return {tile, world};
    }
    // The first coupled world from `world` on after some that are skipped, or the tile's count.
    DS_METHOD int find(int world, int skipped) const {
        for (; world < tile.count; world++)
            if (tile.records.coupled[world].yes && skipped-- == 0) break;
        return world;
    }
};

template <WorldTile TileT>
struct CoupledItem {
    CoupledWorlds<TileT>& worlds;
    DS_METHOD operator CoupledWorlds<TileT>&() const { return worlds; }
    DS_METHOD operator typename TileT::Crew() const { return worlds.tile.workspace.crew; }
    DS_METHOD operator typename TileT::Solver&() const { return worlds.tile.workspace.coupled; }
};

// ---- Over what stages run: each() calls call(item) for the items of a worker's share

namespace over {

// The worlds that the filter includes. A worker that has the tile to itself asks first whether there are any.
template <class Filter>
struct WorldsThat {
    template <class TileT, class Share, class Call>
    static DS_METHOD void each(TileT& tile, Share share, const Call& call) {
        if (Share::whole && !Filter::any(tile)) return;
        for (int i = share.first; i < tile.count; i += share.stride)
            if (Filter::includes(tile.records, i)) call(WorldItem<TileT>{tile, i});
    }
};

// Their agents.
template <class Filter>
struct AgentsThat {
    template <class TileT, class Share, class Call>
    static DS_METHOD void each(TileT& tile, Share share, const Call& call) {
        if (Share::whole && !Filter::any(tile)) return;
        for (int slot = share.first; slot < tile.num_agents(); slot += share.stride)
            if (Filter::includes(tile.records, tile.agents.world_of(slot))) call(AgentItem<TileT>(tile, slot));
    }
};

// The same, where the flat observations that the stage writes exist. A batch may have either kind without the other.
template <class Filter, auto flat_observations>
struct FlatAgentsThat {
    template <class TileT, class Share, class Call>
    static DS_METHOD void each(TileT& tile, Share share, const Call& call) {
        if (tile.simulation.tensors.*flat_observations) AgentsThat<Filter>::each(tile, share, call);
    }
};

// Lidar lines: a few together where lanes are threads, otherwise all of an agent at once.
template <class Filter>
struct LinesThat {
    template <class TileT, class Share, class Call>
    static DS_METHOD void each(TileT& tile, Share share, const Call& call) {
        constexpr int kItems = TileT::Float::kLanes == 1 ? kLidarThreads : 1;  // per agent
        const auto& agents = tile.agents;
        if (Share::whole && !Filter::any(tile)) return;
        for (int item = share.first; item < tile.num_agents() * kItems; item += share.stride) {
            const int slot = item / kItems, world = agents.world_of(slot);
            if (Filter::includes(tile.records, world)) call(LineItem<TileT>(tile, slot, item % kItems));
            if (item % kItems == 0) tile.prefetch_next(world, agents.agent_of(slot), agents.num_agents());
        }
    }
};

struct All {
    template <class TileT>
    static DS_METHOD bool any(const TileT&) { return true; }
    template <class Records>
    static DS_METHOD bool includes(const Records&, int) { return true; }
};
// Filter that looks at a record of each world.
template <class Filter>
struct Some {
    template <class TileT>
    static DS_METHOD bool any(const TileT& tile) {
        for (int i = 0; i < tile.count; i++)
            if (Filter::includes(tile.records, i)) return true;
        return false;
    }
};
struct Ending : Some<Ending> {
    template <class Records>
    static DS_METHOD bool includes(const Records& records, int world) { return records.ends[world].ends; }
};
struct Regenerating : Some<Regenerating> {
    template <class Records>
    static DS_METHOD bool includes(const Records& records, int world) { return records.ends[world].regenerates; }
};
struct ChosenOnes : Some<ChosenOnes> {
    template <class Records>
    static DS_METHOD bool includes(const Records& records, int world) { return records.chosen[world].yes; }
};

using Worlds = WorldsThat<All>;
using EndingWorlds = WorldsThat<Ending>;
using RegeneratingWorlds = WorldsThat<Regenerating>;
using ChosenWorlds = WorldsThat<ChosenOnes>;
using Agents = AgentsThat<All>;
using EndingAgents = AgentsThat<Ending>;
using ChosenAgents = AgentsThat<ChosenOnes>;
using FlatAgents = FlatAgentsThat<All, &TensorPointers::observations>;
using EndingFlatAgents = FlatAgentsThat<Ending, &TensorPointers::final_observations>;
using ChosenFlatAgents = FlatAgentsThat<ChosenOnes, &TensorPointers::observations>;
using EndingLines = LinesThat<Ending>;
using ChosenLines = LinesThat<ChosenOnes>;

// The items of the leaves: stages that may be called through a table, because they are compiled for several kinds of
// lanes.
struct AgentsAtWalls : AgentsThat<All> {
    template <class Leaves>
    static DS_METHOD auto leaf(const Leaves& leaves) { return leaves.classify_agents; }
};
struct Lines : LinesThat<All> {
    template <class Leaves>
    static DS_METHOD auto leaf(const Leaves& leaves) { return leaves.cast_lidar; }
};

struct ButtonVectors {
    template <class TileT, class Share, class Call>
    static DS_METHOD void each(TileT& tile, Share share, const Call& call) {
        constexpr int kLanes = TileT::Float::kLanes, kVectors = TileT::W::kButtonLanes / kLanes;
        for (int item = share.first; item < tile.count * kVectors; item += share.stride)
            call(ButtonItem<TileT>{{tile, item / kVectors}, item % kVectors * kLanes});
    }
};

struct AgentVectors {
    template <class TileT, class Share, class Call>
    static DS_METHOD void each(TileT& tile, Share share, const Call& call) {
        constexpr int kLanes = TileT::Float::kLanes;
        const int agents = tile.num_agents();
        for (int first = share.first * kLanes; first < agents; first += share.stride * kLanes)
            call(AgentVector<TileT>{tile, first, agents - first < kLanes ? agents - first : kLanes});
    }
};

// Agents with one wall in reach are collected apart from those with more, so that they skip the empty slots.
struct SlidingBatches {
    template <class Leaves>
    static DS_METHOD auto leaf(const Leaves& leaves) { return leaves.slide_agents; }
    template <class TileT, class Share, class Call>
    static DS_METHOD void each(TileT& tile, Share share, const Call& call) {
        constexpr int kLanes = TileT::Wide::kLanes;
        int slots[2][kLanes], waiting[2] = {0, 0};
        const auto slide = [&](int queue) {
            DS_ASSERT(waiting[queue] > 0 && waiting[queue] <= kLanes);
            SlidingBodies<TileT> bodies;
            for (int lane = 0; lane < kLanes; lane++) {
                if (lane >= waiting[queue]) slots[queue][lane] = slots[queue][0];
                bodies.of[lane] = &tile.world(tile.agents.world_of(slots[queue][lane])).bodies;
            }
            const SlidingAgents<TileT> agents{tile, slots[queue], waiting[queue]};
            call(SlidingItem<TileT>{tile, agents, bodies, share.slider()});
            waiting[queue] = 0;
        };
        for (int slot = share.first; slot < tile.num_agents(); slot += share.stride) {
            if (tile.records.motions[slot] != kSliding) continue;
            const uint32_t walls = tile.records.walls[slot].bits;
            const int queue = (walls & (walls - 1)) != 0;
            slots[queue][waiting[queue]++] = slot;
            if (waiting[queue] == kLanes) slide(queue);
        }
        if constexpr (kLanes > 1)  // otherwise none waits
            for (int queue = 0; queue < 2; queue++)
                if (waiting[queue] > 0) slide(queue);
    }
};

// As many coupled worlds as fit the solver. The workers of a block solve them together and meet within an item, so that
// it is the whole block's.
struct CoupledGroups {
    static constexpr bool kMeeting = true;
    template <class TileT, class Call>
    static DS_METHOD void each(TileT& tile, WholeShare, const Call& call) {
        constexpr int kMost = TileT::Solver::kTogether;
        for (int world = 0; world < tile.count;) {
            CoupledWorlds<TileT> worlds{tile, world, 0};
            for (; world < tile.count && worlds.count < kMost; world++) worlds.count += tile.records.coupled[world].yes;
            if (worlds.count) call(CoupledItem<TileT>{worlds});
        }
    }
};

}  // namespace over
}  // namespace doorstep
