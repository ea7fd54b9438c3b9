// A tile: the worlds that pass through the stages of a step together, and the records that stages pass on.
#pragma once

#include "physics/slide.h"
#include "sim/actions.h"
#include "sim/static_lanes.h"
#include "sim/world_model.h"

namespace doorstep {

struct FlightTable;

// How an agent moves in this step. The choice affects the result (the last bits differ), so it depends on the world
// alone.
enum Motion : uint8_t {
    kFree,     // touches nothing but the floor
    kSliding,  // touches upright statics only
    kCoupled,  // may touch something that moves, or is not at rest on the floor
};

// The items of a stage that a worker processes: first, first + stride, ... A CPU thread has a tile to itself; a CUDA
// block's threads share one. No item of a stage depends on what another item of that stage writes.
struct WholeShare {
    static constexpr int first = 0, stride = 1;
    static constexpr int solvers = 1;
    static DS_METHOD constexpr int solver() { return 0; }
    static DS_METHOD constexpr int slider() { return 0; }
};
struct ThreadShare {
    static constexpr int kWarp = 32;
    static constexpr int solvers = 4;  // worlds that a tile solves at a time
    int first, stride;                 // thread, threads of the block

    // Which of the tile's solvers the thread is, or -1. They are distributed over the warps, because solvers of one
    // warp wait for each other wherever their worlds differ.
    DS_METHOD int solver() const {
        const int warps = stride / kWarp, lane = first % kWarp;
        return lane < solvers / warps ? lane * warps + first / kWarp : -1;
    }
    DS_METHOD int slider() const { return first; }
};

// Bits of the statics that a ray at an agent's height can hit, and of those of them near the agent, tested first.
struct StaticsInSight {
    uint32_t solid, near;
};

template <class W>
using Problem = SolverProblem<W::kBodies, W::kStatics, W::kAgents>;

// The records of a world in the general solver.
template <class W>
struct CoupledWorld {
    Problem<W> problem;
    int body_of[W::kBodies], slot_of[W::kBodies];  // between slots of the problem and bodies of the world
    Rectangle areas[W::kBodies];                   // per slot: the area it may reach in this step
};

// Scratch of a tile's workers, too large for the stack of a CUDA thread.
template <class W, class Float, int Solvers, int Sliders>
struct Workspace {
    CoupledWorld<W> coupled[Solvers];
    SlideBatch<Float> slides[Sliders];
};

// Fields keep their values until the stage that writes them runs.
template <class W, int Worlds>
struct TileRecords {
    static constexpr int kAgentSlots = Worlds * W::kAgents;

    // Per world
    uint32_t trouble[Worlds];  // Trouble bits of this step
    bool chosen[Worlds];       // to be reset or refreshed
    bool coupled[Worlds];      // needs the general solver
    bool ends[Worlds];         // its episode ends in this step
    bool regenerates[Worlds];  // a new level follows

    // Per agent: world * kAgents + agent
    uint8_t clamped[kAgentSlots];  // number of its action components out of range
    Motion motion[kAgentSlots];
    Action actions[kAgentSlots];
    float rewards[kAgentSlots];
    float yaws[kAgentSlots];       // radians
    uint32_t walls[kAgentSlots];   // statics in reach of a sliding agent
    StaticsInSight sights[kAgentSlots];
    // Pose after free flight, and bounds of the whole path
    float flown_x[kAgentSlots], flown_y[kAgentSlots], flown_w[kAgentSlots], flown_z[kAgentSlots];
    float path_min_x[kAgentSlots], path_max_x[kAgentSlots], path_min_y[kAgentSlots], path_max_y[kAgentSlots];
};

// A worker's view of a tile. Pitch: bytes from one world to the next.
template <class World, int Worlds, int Pitch, class Workspace>
struct Tile {
    using W = World;
    using Records = TileRecords<W, Worlds>;
    static constexpr int kWorlds = Worlds;

    const Simulation& simulation;
    const FlightTable& flights;
    char* blocks;
    Records& records;
    Workspace& workspace;
    int64_t first;  // slot of world 0 of the tile
    int count;      // worlds in this tile

    DS_METHOD W& world(int i) const { return *reinterpret_cast<W*>(blocks + i * Pitch); }
    DS_METHOD W& world_of(int agent_slot) const { return world(agent_slot / W::kAgents); }

    // The force is constant over the step, so it is computed before the agent moves
    DS_METHOD Vec3 force(int slot) const {
        return force_of(records.actions[slot], world_of(slot).agent_heading(slot % W::kAgents));
    }
    DS_METHOD float torque(int slot) const { return torque_of(records.actions[slot]); }
};

// A tile of worlds at their place in memory, for the CPU.
template <class W, class Float>
using TileInPlace = Tile<W, kTileWorlds, kBlockBytes<W>, Workspace<W, Float, 1, 1>>;

}  // namespace doorstep
