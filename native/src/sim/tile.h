// A tile: the worlds that go through the stages of a step together, with what the stages hand on to one another.
#pragma once

#include "sim/actions.h"
#include "sim/world.h"
#include "sim/world_model.h"

namespace doorstep {

struct FlightTable;

// How an agent moves in this step. The choice is part of the result (the last bits differ between the ways), so it
// follows from the world alone.
enum Motion : uint8_t {
    kFree,     // touches nothing but the floor
    kSliding,  // touches upright statics only
    kCoupled,  // may touch something that moves, or is not at rest on the floor
};

template <class W>
struct Tile {
    static constexpr int kAgentSlots = kTileWorlds * W::kAgents;

    const Simulation& simulation;
    const FlightTable& flights;
    W* worlds;
    int64_t first;  // slot of worlds[0]
    int count;      // worlds in this tile
    uint32_t trouble = kTroubleNone;

    // What the stages fill in is left as it is until they do
    DS_METHOD Tile(const Simulation& s, const FlightTable& f, W* w, int64_t slot, int64_t worlds_in_tile)
        : simulation(s), flights(f), worlds(w), first(slot), count(static_cast<int>(worlds_in_tile)) {}

    // Per world
    bool ends[kTileWorlds];         // its episode ends in this step
    bool regenerates[kTileWorlds];  // and a new level follows

    // Per agent: world * kAgents + agent
    Action actions[kAgentSlots];
    float rewards[kAgentSlots];
    Motion motion[kAgentSlots];
    uint32_t walls[kAgentSlots];  // statics in reach of a sliding agent
    // Pose after free flight, and bounds of the whole path
    float flown_x[kAgentSlots], flown_y[kAgentSlots], flown_w[kAgentSlots], flown_z[kAgentSlots];
    float path_min_x[kAgentSlots], path_max_x[kAgentSlots], path_min_y[kAgentSlots], path_max_y[kAgentSlots];

    // The force is held over the whole step, so it is asked for before the agent moves
    DS_METHOD Vec3 force(int slot) const {
        return force_of(actions[slot], worlds[slot / W::kAgents].agent_heading(slot % W::kAgents));
    }
    DS_METHOD float torque(int slot) const { return torque_of(actions[slot]); }
};

}  // namespace doorstep
