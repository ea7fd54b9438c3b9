// The leaves of a step on the CPU: the stages that take most of its time and gain from sixteen lanes. They are compiled
// for AVX2 and for AVX-512, and called through a table, which is chosen with the model of a world.
#pragma once

#include "sim/step.h"

namespace doorstep {

template <class W>
struct Leaves {
    using TileT = TileInPlace<W, WideFloat>;
    void (*classify_agents)(TileT& tile);
    void (*slide_agents)(TileT& tile);
    void (*cast_lidar)(TileT& tile);
};

// The thread that steps a tile.
template <class W>
struct StepThread : LoneThread {
    const Leaves<W>& leaves;
    explicit StepThread(const Leaves<W>& table) : leaves(table) {}
};

// Scratch memory of a leaf.
template <class W, FloatLanes Wide>
struct LeafWorkspace {
    using Solver = CoupledGroup<W, 1>;
    using Crew = LoneThread;
    SlideBatch<Wide> slides[1];
    LoneThread crew;
};

// Wide: the lanes of lidar lines, of statics, and of agents that slide.
template <class W, FloatLanes Wide>
struct LeavesWith {
    using TileT = TileInPlace<W, WideFloat>;
    using LeafTile = Tile<W, WideFloat, Wide, TileT::kWorlds, kBlockBytes<W>, LeafWorkspace<W, Wide>>;

    template <class Items, auto stage>
    static void run(TileT& tile) {
        LeafWorkspace<W, Wide> workspace;
        LeafTile leaf{tile.simulation, tile.flights, tile.blocks, tile.records, workspace, tile.first, tile.count};
        leaf.next = tile.next;
        run_stage<Items, stage>(leaf, WholeShare{});
    }
    static constexpr Leaves<W> kTable{run<over::AgentsAtWalls, Stages<LeafTile>::classify_agents>,
                                      run<over::SlidingBatches, Stages<LeafTile>::slide_agents>,
                                      run<over::Lines, Stages<LeafTile>::cast_lidar>};
};

// Those of the kind of worlds with this number; leaves_with_avx512.cpp defines them.
template <int number>
const Leaves<typename CompiledWorld<number>::W>& leaves_with_avx512();
#define DS_DECLARE_LEAVES(number, ...) \
    template <>                        \
    const Leaves<CompiledWorld<number>::W>& leaves_with_avx512<number>();
DS_WORLD_KIND_TABLE(DS_DECLARE_LEAVES)
#undef DS_DECLARE_LEAVES

}  // namespace doorstep
