// A kernel's work on its tiles, as a template over a Block: CUDA's, or one that the tests emulate on the host.
//
// A Block has index(), count() (blocks of the grid) and each(stage), which calls stage(share) for the share of every
// thread and returns when all are done: CUDA's threads wait at a barrier, an emulation runs them one after the other.
// Variables set between two calls of each() are set to the same values by every thread.
#pragma once

#include "exec/cuda/kernels.h"
#include "sim/step.h"

namespace doorstep {

constexpr int kBlockThreads = 64;

// Worlds are copied 16 bytes at a time, without the padding between them.
struct alignas(16) Chunk {
    uint32_t words[4];
};
template <class W>
constexpr int kChunks = static_cast<int>((sizeof(W) + sizeof(Chunk) - 1) / sizeof(Chunk));

// The stride of worlds in shared memory is an odd number of words, so that threads that read the same field of
// neighbouring worlds access different banks.
template <class W>
constexpr int kSharedPitch = kChunks<W> * static_cast<int>(sizeof(Chunk)) + 4;

// Small tiles: a block takes as long as the slowest of its worlds, and eight blocks fit the shared memory of a
// multiprocessor of compute capability 9.0 (227 KiB), three that of 8.6 (100 KiB).
template <class W>
constexpr int kSharedWorlds = W::kAgents <= 3 && !W::kPlaysLevels ? 16 : 8;

// Scratch memory of a block: of each solver, or of each thread that moves sliding agents, which is done before.
template <class W>
struct BlockWorkspace {
    using Solver = CoupledGroup<W, 1>;
    Solver* coupled;
    SlideBatch<NarrowFloat>* slides;

    DS_METHOD explicit BlockWorkspace(char* memory)
        : coupled(reinterpret_cast<Solver*>(memory)),
          slides(reinterpret_cast<SlideBatch<NarrowFloat>*>(memory)) {}
};

template <class W>
using SharedTile = Tile<W, NarrowFloat, NarrowFloat, kSharedWorlds<W>, kSharedPitch<W>, BlockWorkspace<W>>;

template <class W>
struct BlockMemory {
    char blocks[kSharedWorlds<W> * kSharedPitch<W>];
    typename SharedTile<W>::Records records;
};

template <class W>
constexpr KernelShape make_kernel_shape() {
    constexpr int kWorlds = kSharedWorlds<W>;
    constexpr int kSolvers = kWorlds < ThreadShare::solvers ? kWorlds : ThreadShare::solvers;
    static_assert(kWorlds * W::kAgents <= kBlockThreads, "a thread moves one sliding agent");
    static_assert(kWorlds / kSolvers * W::kAgents * sizeof(SlideBatch<NarrowFloat>) <= sizeof(CoupledWorld<W>));
    return {kWorlds, kBlockThreads, sizeof(BlockMemory<W>), kSolvers, sizeof(CoupledWorld<W>)};
}

// ---- Copies between device and shared memory

static_assert(kBlockBytes<World<1>> % sizeof(Chunk) == 0, "a block begins with a chunk");
static_assert(kTroubleRepairedIndex == 1u << (kTroubleKinds - 1), "every bit of Trouble has a word");

// Bytes from the first chunk of a tile to another one, where worlds have this stride.
template <class W>
DS_INLINE int place_of(int chunk, int stride) {
    constexpr int kChunk = static_cast<int>(sizeof(Chunk));
    return chunk * kChunk + chunk / kChunks<W> * (stride - kChunks<W> * kChunk);
}

template <class W>
DS_INLINE Chunk* chunk_of(const SharedTile<W>& tile, int chunk) {
    char* const first = static_cast<char*>(tile.simulation.worlds) + tile.first * kBlockBytes<W>;
    return reinterpret_cast<Chunk*>(first + place_of<W>(chunk, kBlockBytes<W>));
}

template <class W>
DS_INLINE uint32_t* words_of(const SharedTile<W>& tile, int chunk) {
    return reinterpret_cast<uint32_t*>(tile.blocks + place_of<W>(chunk, kSharedPitch<W>));
}

template <class W>
DS_INLINE void load_worlds(const SharedTile<W>& tile, ThreadShare share) {
    for (int i = share.first; i < tile.count * kChunks<W>; i += share.stride) {
        const Chunk chunk = *chunk_of<W>(tile, i);
        uint32_t* to = words_of<W>(tile, i);
        for (int k = 0; k < 4; k++) to[k] = chunk.words[k];
    }
}

template <class W>
DS_INLINE void store_worlds(const SharedTile<W>& tile, ThreadShare share) {
    for (int i = share.first; i < tile.count * kChunks<W>; i += share.stride) {
        const uint32_t* from = words_of<W>(tile, i);
        *chunk_of<W>(tile, i) = {{from[0], from[1], from[2], from[3]}};
    }
}

template <class TileT>
DS_INLINE void report_trouble(const TileT& tile, ThreadShare share, uint32_t* trouble) {
    for (int i = share.first; i < tile.count; i += share.stride)
        for (uint32_t bits = tile.records.trouble[i].bits; bits;) trouble[take_lowest_bit(bits)] = 1;
}

// ---- The kernels

// Whether a mask, null for all, has some of these worlds.
DS_INLINE bool has_any(const uint8_t* mask, int64_t first, int count) {
    bool found = !mask;
    for (int i = 0; i < count && !found; i++) found = mask[first + i] != 0;
    return found;
}

// Calls operation(tile) for every tile of this block that has worlds of the mask, with its worlds in shared memory.
template <class W, class Block, class Operation>
DS_INLINE void for_each_tile(Block& block, const KernelArguments& arguments, BlockMemory<W>& memory,
                             const Operation& operation) {
    constexpr KernelShape kShape = make_kernel_shape<W>();
    const int worlds = arguments.tile_worlds;
    DS_ASSERT(worlds >= 1 && worlds <= kShape.tile_worlds);
    const int64_t scratch = workspace_bytes(kShape, worlds) * block.index();
    BlockWorkspace<W> workspace(static_cast<char*>(arguments.workspace) + scratch);
    for (int64_t first = int64_t{worlds} * block.index(); first < arguments.num_worlds;
         first += int64_t{worlds} * block.count()) {
        const int64_t left = arguments.num_worlds - first;
        const int count = static_cast<int>(left < worlds ? left : worlds);
        if (!has_any(arguments.mask, first, count)) continue;
        SharedTile<W> tile{arguments.simulation, *arguments.flights, memory.blocks, memory.records, workspace, first, count};
        block.each([&](ThreadShare share) { load_worlds<W>(tile, share); });
        operation(tile);
        block.each([&](ThreadShare share) { store_worlds<W>(tile, share); });
    }
}

// One function per row of the kernel table.
template <class W>
struct Kernels {
    template <WorkerBlock Block>
    static DS_METHOD void create(Block& block, const KernelArguments& arguments, BlockMemory<W>& memory) {
        const uint32_t* words = arguments.seed_and_offset;
        const uint32_t seed = words ? words[0] : arguments.seed;
        const uint64_t world_offset = words ? words[1] : arguments.world_offset;
        for_each_tile<W>(block, arguments, memory, [&](auto& tile) {
            tile.request = {nullptr, seed, world_offset, nullptr};
            create_tile(block, tile);
        });
    }

    template <WorkerBlock Block>
    static DS_METHOD void step(Block& block, const KernelArguments& arguments, BlockMemory<W>& memory) {
        for_each_tile<W>(block, arguments, memory, [&](auto& tile) {
            step_tile(block, tile, NoWatch{});
            block.each([&](ThreadShare share) { report_trouble(tile, share, arguments.trouble); });
        });
    }

    template <WorkerBlock Block>
    static DS_METHOD void reset(Block& block, const KernelArguments& arguments, BlockMemory<W>& memory) {
        for_each_tile<W>(block, arguments, memory, [&](auto& tile) {
            tile.request.mask = mask_of(arguments, tile.first);
            tile.request.starts = arguments.starts ? arguments.starts + tile.first : nullptr;
            reset_tile(block, tile);
            block.each([&](ThreadShare share) { report_trouble(tile, share, arguments.trouble); });
        });
    }

    template <WorkerBlock Block>
    static DS_METHOD void refresh(Block& block, const KernelArguments& arguments, BlockMemory<W>& memory) {
        for_each_tile<W>(block, arguments, memory, [&](auto& tile) {
            tile.request.mask = mask_of(arguments, tile.first);
            refresh_tile(block, tile);
            block.each([&](ThreadShare share) { report_trouble(tile, share, arguments.trouble); });
        });
    }

    static DS_METHOD const uint8_t* mask_of(const KernelArguments& arguments, int64_t first) {
        return arguments.mask ? arguments.mask + first : nullptr;
    }
};

}  // namespace doorstep
