// Runs of worlds on the CPU, a tile at a time, and their step.
#pragma once

#include <string.h>

#include "sim/leaves.h"
#include "sim/validity.h"
#include "sim/world_models.h"

namespace doorstep {

// Measures the stages. Where assertions are on, records are poisoned before a step and worlds are checked after every
// stage.
struct CpuWatch {
    uint64_t* ticks;  // a counter per stage, or null
    uint64_t before = 0;

    template <class TileT>
    DS_METHOD void begin(TileT& tile) {
#if !defined(NDEBUG)
        memset(static_cast<void*>(&tile.records), 0xFF, sizeof tile.records);
#endif
        (void)tile;
        if (ticks) before = __builtin_ia32_rdtsc();
    }
    template <class TileT>
    DS_METHOD void end(TileT& tile, Stage stage) {
        for (int i = 0; i < tile.count; i++) DS_ASSERT(is_valid(tile.world(i), tile.simulation.rules.episode_length));
        if (!ticks) return;
        const uint64_t now = __builtin_ia32_rdtsc();
        ticks[stage] += now - before;
        before = now;
    }
};

// Calls body(tile) for every tile of a run of worlds.
template <class W, class Body>
DS_INLINE void for_each_tile(const Simulation& simulation, int64_t first, int64_t count, const Body& body) {
    using TileT = TileInPlace<W, WideFloat>;
    Workspace<W, WideFloat> workspace;
    typename TileT::Records records;
    for (int64_t slot = first; slot < first + count; slot += TileT::kWorlds) {
        const int64_t left = first + count - slot;
        TileT tile{simulation, flight_table, static_cast<char*>(simulation.worlds) + slot * kBlockBytes<W>, records,
                   workspace, slot, static_cast<int>(left < TileT::kWorlds ? left : TileT::kWorlds)};
        body(tile);
    }
}

template <class W>
DS_NOINLINE uint32_t step_worlds(const Simulation& simulation, const Leaves<W>& leaves, int64_t first, int64_t count,
                                 uint64_t* ticks) {
    StepThread<W> thread(leaves);
    uint32_t trouble = kTroubleNone;
    for_each_tile<W>(simulation, first, count, [&](auto& tile) {
        if (tile.first + tile.count < first + count) tile.next = tile.blocks + tile.count * kBlockBytes<W>;
        step_tile(thread, tile, CpuWatch{ticks});
        trouble |= trouble_of(tile);
    });
    return trouble;
}

}  // namespace doorstep
