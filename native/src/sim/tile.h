// A tile: the worlds that pass through the stages of a step together, and the records that stages pass on.
#pragma once

#include "physics/slide.h"
#include "sim/actions.h"
#include "sim/static_lanes.h"
#include "sim/world_model.h"

namespace doorstep {

// ---- Records of a world in a step

struct TroubleBits {
    uint32_t bits;  // Trouble
};
struct Chosen {
    bool yes;  // to be reset or refreshed
};
struct Coupled {
    bool yes;  // needs the general solver
};
// Metres between cubes and buttons when the step began.
struct CubesAway {
    bool counts;  // is rewarded
    float metres;
};
struct GoalReached {
    bool yes;  // by as many agents as the level asks for
};
struct EpisodeEnd {
    bool ends;         // the episode ends in this step
    bool regenerates;  // a new level follows
};

#define DS_WORLD_RECORDS(X)  \
    X(TroubleBits, trouble)  \
    X(Chosen, chosen)        \
    X(Coupled, coupled)      \
    X(CubesAway, cubes_away) \
    X(GoalReached, reached)  \
    X(EpisodeEnd, ends)

// ---- Records of an agent in a step

// How an agent moves in this step. The choice affects the result (the last bits differ), so it depends on the world
// alone.
enum Motion : uint8_t {
    kFree,     // touches nothing but the floor
    kSliding,  // touches upright statics only
    kCoupled,  // may touch something that moves, or is not at rest on the floor
};

struct ClampedCount {
    uint8_t components;  // of the action, that were out of range
};
struct Reward {
    float value;
};
struct Yaw {
    float radians;
};
struct WallsInReach {
    uint32_t bits;  // statics in reach of a sliding agent
};
// Bits of the statics that a ray at an agent's height can hit, and of those of them near the agent, tested first.
// Computed where threads cast a few lines each.
struct StaticsInSight {
    uint32_t solid, near;
};
// Pose after free flight.
struct alignas(16) FlownPose {
    float x, y, w, z;  // position; rotation (w, 0, 0, z)
};
// Bounds of the agent on its whole path, if nothing is in its way.
struct alignas(16) Path {
    Rectangle area;
};

#define DS_AGENT_RECORDS(X)     \
    X(Action, actions)          \
    X(ClampedCount, clamped)    \
    X(Motion, motions)          \
    X(FlownPose, flown)         \
    X(Path, paths)              \
    X(WallsInReach, walls)      \
    X(Reward, rewards)          \
    X(Yaw, yaws)                \
    X(StaticsInSight, sights)

// Numbers the agents of a tile, world by world.
template <class Agents>
struct AgentSlots : Agents {
    static constexpr int kShift = 16, kMostSlots = 1 << (kShift - 3);
    static_assert(Agents::kMost <= 8, "the quotients of all slots are exact");
    int32_t reciprocal;  // 2^kShift / num_agents(), rounded up

    explicit DS_METHOD AgentSlots(int num_agents) : reciprocal((1 << kShift) / num_agents + 1) {
        this->set_agents(num_agents);
    }
    DS_METHOD int slot(int world, int agent) const { return world * this->num_agents() + agent; }
    DS_METHOD int world_of(int slot) const {
        DS_ASSERT(slot >= 0 && slot < kMostSlots);
        if constexpr (Agents::kIsConstant) return slot / Agents::kMost;
        return slot * reciprocal >> kShift;
    }
    DS_METHOD int agent_of(int slot) const { return slot - world_of(slot) * this->num_agents(); }
};

// Records keep their values until the stage that writes them runs. AgentSlots numbers those of agents.
template <class W, int Worlds>
struct TileRecords {
    static constexpr int kAgentSlots = Worlds * W::kMostAgents;
#define DS_WORLD_RECORD_FIELD(Record, name) Record name[Worlds];
    DS_WORLD_RECORDS(DS_WORLD_RECORD_FIELD)
#undef DS_WORLD_RECORD_FIELD
#define DS_AGENT_RECORD_FIELD(Record, name) Record name[kAgentSlots];
    DS_AGENT_RECORDS(DS_AGENT_RECORD_FIELD)
#undef DS_AGENT_RECORD_FIELD
};

// ---- The workers of a tile

// The items that a worker processes: first, first + stride, ... A CPU thread has a tile to itself; a CUDA block's
// threads share one.
template <class Share>
concept WorkerShare = requires(Share share) {
    { share.first + share.stride } -> SameAs<int>;
    { Share::whole } -> SameAs<const bool&>;
    { share.solver(1) } -> SameAs<int>;
    { share.solvers(1) } -> SameAs<int>;
    { share.slider() } -> SameAs<int>;
};

struct WholeShare {
    static constexpr bool whole = true;
    static constexpr int first = 0, stride = 1;
    static DS_METHOD constexpr int solver(int) { return 0; }
    static DS_METHOD constexpr int solvers(int) { return 1; }
    static DS_METHOD constexpr int slider() { return 0; }
};
struct ThreadShare {
    static constexpr bool whole = false;
    static constexpr int kWarp = 32;
    int first, stride;  // thread, threads of the block

    // Which solver of so many worlds the thread is, or -1. They are distributed over the warps, because solvers of one
    // warp wait for each other wherever their worlds differ; but a few worlds share the first warp.
    DS_METHOD int solver(int worlds) const {
        const int of_warp = worlds * kWarp / stride, lane = first % kWarp;
        return lane < of_warp ? first / kWarp * of_warp + lane : -1;
    }
    static DS_METHOD constexpr int solvers(int worlds) { return worlds; }
    DS_METHOD int slider() const { return first; }
};
static_assert(WorkerShare<WholeShare> && WorkerShare<ThreadShare>);

// A block lets its workers execute a stage together: block.each(stage) calls stage(share) for every worker's share and
// returns when all are done.
struct AnyStage {
    template <WorkerShare Share>
    DS_METHOD void operator()(Share) const {}
};
template <class Block>
concept WorkerBlock = requires(Block& block) { block.each(AnyStage{}); };

// The CPU's block: the calling thread.
struct LoneThread {
    template <class Stage>
    DS_METHOD void each(const Stage& stage) {
        stage(WholeShare{});
    }
};

template <class W>
using Problem = SolverProblem<W::kMostBodies, W::kStatics, W::kMostAgents, typename W::Terms::Material>;

// One world in the general solver.
template <class W>
struct CoupledWorld {
    int world;  // of the tile
    Problem<W> problem;
    int body_of[W::kMostBodies], slot_of[W::kMostBodies];  // between slots of the problem and bodies of the world
    Rectangle areas[W::kMostBodies];                   // per slot: the area it may reach in this step
    uint32_t statics_of[W::kMostBodies];               // and bits of the statics there
};

// Worlds that go through the general solver together. More worlds fill lanes better, and take more of the second-level
// cache and of the stack.
constexpr int kGroupBytes = 144 << 10, kMostTogether = 16;
template <class W, int Together>
struct CoupledGroup {
    static constexpr int kTogether = Together;
    CoupledWorld<W> worlds[Together];
};


// Scratch memory of a thread that has a tile to itself: of one solver, and of one vector of sliding agents.
template <class W, FloatLanes Wide>
struct Workspace {
    static constexpr int kFitting = kGroupBytes / static_cast<int>(sizeof(CoupledWorld<W>));
    static constexpr int kTogether = Wide::kLanes == 1 ? 1 : kFitting < kMostTogether ? kFitting : kMostTogether;
    using Solver = CoupledGroup<W, kTogether>;
    using Crew = LoneThread;
    Solver coupled;
    SlideBatch<Wide> slides[1];
    LoneThread crew;
};

// ---- The tile

struct FlightTable;

// The parameters of creation and reset.
struct WorldRequest {
    const uint8_t* mask;         // reset, refresh: a byte per world of the tile, or null for all
    uint32_t seed;               // create
    uint64_t world_offset;       // create: global number of the simulation's world 0
    const EpisodeStart* starts;  // reset: one per world of the tile, or null for the next episodes
};

// A worker's view of a tile. Wide: the lanes of agents that slide, of lidar lines and of statics. Pitch: bytes from one
// world to the next.
template <class World, FloatLanes Lanes, FloatLanes WideLanes, int Worlds, int Pitch, class WorkspaceT>
struct Tile {
    using W = World;
    using Float = Lanes;
    using Wide = WideLanes;
    using Records = TileRecords<W, Worlds>;
    using Solver = typename WorkspaceT::Solver;
    using Crew = typename WorkspaceT::Crew;
    static constexpr int kWorlds = Worlds;

    const Simulation& simulation;
    const FlightTable& flights;
    char* blocks;
    Records& records;
    WorkspaceT& workspace;
    int64_t first;  // slot of world 0 of the tile
    int count;      // worlds in this tile
    WorldRequest request{};
    AgentSlots<typename W::AgentCount> agents{simulation.num_agents};
    const char* next = nullptr;  // blocks of the tile that the worker takes next, where it prefetches them

    DS_METHOD int num_agents() const { return agents.slot(count, 0); }  // of all its worlds
    DS_METHOD W& world(int i) const {
        DS_ASSERT(i >= 0 && i < count);
        return *reinterpret_cast<W*>(blocks + i * Pitch);
    }
    // A share of world i of it, so that the lines that are on their way leave room for others.
    DS_METHOD void prefetch_next(int i, int share, int shares) const {
        constexpr int kCacheLine = 64, kLines = Pitch / kCacheLine;
        if (next)
            for (int line = kLines * share / shares; line < kLines * (share + 1) / shares; line++)
                prefetch(next + i * Pitch + line * kCacheLine);
    }
};

template <class T>
concept WorldTile = requires(const T& tile) {
    typename T::W;
    requires FloatLanes<typename T::Float>;
    { tile.world(0) } -> SameAs<typename T::W&>;
    tile.records;
    tile.workspace;
};

// Worlds of a tile on the CPU. The second-level cache has to hold it, the solver's group, and the next tile, which is
// prefetched. Worlds that play any levels are three times as large as the others.
template <class W>
constexpr int kWorldsInPlace = W::kPlaysLevels ? kTileWorlds / 4 : kTileWorlds;

// A tile of worlds at their place in memory, for the CPU.
template <class W, FloatLanes Float, FloatLanes Wide = Float>
using TileInPlace = Tile<W, Float, Wide, kWorldsInPlace<W>, kBlockBytes<W>, Workspace<W, Wide>>;

}  // namespace doorstep
