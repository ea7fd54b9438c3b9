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
constexpr int kSharedWorlds = W::kMostAgents <= 3 && !W::kPlaysLevels ? 16 : 8;

// Scratch memory of a block: of its solvers, or of each thread that moves sliding agents, which is done before.
template <class W, class Block>
struct BlockWorkspace {
    using Solver = CoupledGroup<W, kSolvers>;
    using Crew = Block;
    Solver& coupled;  // of which a smaller tile uses the beginning
    SlideBatch<NarrowFloat>* slides;
    Block crew;

    DS_METHOD BlockWorkspace(char* memory, Block block)
        : coupled(*reinterpret_cast<Solver*>(memory)),
          slides(reinterpret_cast<SlideBatch<NarrowFloat>*>(memory)),
          crew(block) {}
};

template <class W, class Block>
using SharedTile =
    Tile<W, NarrowFloat, NarrowFloat, kSharedWorlds<W>, kSharedPitch<W>, BlockWorkspace<W, Block>>;

template <class W>
struct BlockMemory {
    char blocks[kSharedWorlds<W> * kSharedPitch<W>];
    TileRecords<W, kSharedWorlds<W>> records;
};

template <class W>
constexpr KernelShape make_kernel_shape() {
    constexpr int kWorlds = kSharedWorlds<W>;
    static_assert(kWorlds * W::kMostAgents <= kBlockThreads, "a thread moves one sliding agent");
    static_assert(kWorlds / kSolvers * W::kMostAgents * sizeof(SlideBatch<NarrowFloat>) <= sizeof(CoupledWorld<W>));
    return {kWorlds, kBlockThreads, sizeof(BlockMemory<W>), sizeof(CoupledWorld<W>)};
}

// ---- Copies between device and shared memory

static_assert(kBlockBytes<World<AgentCount<1>>> % sizeof(Chunk) == 0, "a block begins with a chunk");
static_assert(kTroubleRepairedIndex == 1u << (kTroubleKinds - 1), "every bit of Trouble has a word");

// Where a thread's next chunk is, in device and in shared memory.
struct ChunkPlace {
    Chunk* chunk;
    uint32_t* words;
};

// A thread's share of the chunks of a tile.
template <WorldTile TileT>
class ChunkWalk {
public:
    using W = typename TileT::W;
    int left;

    DS_METHOD ChunkWalk(const TileT& tile, ThreadShare share)
        : left((tile.count * kChunks<W> - share.first + share.stride - 1) / share.stride),
          byte_(share.first * kChunk),
          step_(share.stride * kChunk),
          chunk_(static_cast<char*>(tile.simulation.worlds) + tile.first * kBlockBytes<W> + byte_),
          words_(tile.blocks + byte_) {}

    DS_METHOD ChunkPlace take() {
        DS_ASSERT(left > 0);
        const ChunkPlace place{reinterpret_cast<Chunk*>(chunk_), reinterpret_cast<uint32_t*>(words_)};
        left--;
        byte_ += step_;
        const bool next = byte_ >= kWorld;
        if (next) byte_ -= kWorld;
        chunk_ += next ? step_ + kBlockBytes<W> - kWorld : step_;
        words_ += next ? step_ + kSharedPitch<W> - kWorld : step_;
        return place;
    }

private:
    static constexpr int kChunk = static_cast<int>(sizeof(Chunk)), kWorld = kChunks<W> * kChunk;
    static_assert(kChunks<W> >= kBlockThreads, "a thread's next chunk is of the same world or the next");
    int byte_;  // of the world
    int step_;
    char *chunk_, *words_;
};

// Copies a thread's share, read(place) and write(place, chunk). Reads wait for each other unless several come first.
template <WorldTile TileT, class Read, class Write>
DS_INLINE void copy_chunks(const TileT& tile, ThreadShare share, const Read& read, const Write& write) {
    constexpr int kAtOnce = 4;
    ChunkWalk<TileT> walk(tile, share);
    DS_ROLLED
    while (walk.left >= kAtOnce) {
        ChunkPlace places[kAtOnce];
        Chunk chunks[kAtOnce];
        for (int k = 0; k < kAtOnce; k++) {
            places[k] = walk.take();
            chunks[k] = read(places[k]);
        }
        for (int k = 0; k < kAtOnce; k++) write(places[k], chunks[k]);
    }
    DS_ROLLED
    while (walk.left > 0) {
        const ChunkPlace place = walk.take();
        write(place, read(place));
    }
}

template <WorldTile TileT>
DS_INLINE void load_worlds(const TileT& tile, ThreadShare share) {
    copy_chunks(tile, share, [](ChunkPlace place) { return *place.chunk; },
                [](ChunkPlace place, const Chunk& chunk) {
                    for (int k = 0; k < 4; k++) place.words[k] = chunk.words[k];
                });
}

template <WorldTile TileT>
DS_INLINE void store_worlds(const TileT& tile, ThreadShare share) {
    copy_chunks(tile, share,
                [](ChunkPlace place) {
                    const uint32_t* words = place.words;
                    return Chunk{{words[0], words[1], words[2], words[3]}};
                },
                [](ChunkPlace place, const Chunk& chunk) { *place.chunk = chunk; });
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
    BlockWorkspace<W, Block> workspace(static_cast<char*>(arguments.workspace) + scratch, block);
    for (int64_t first = int64_t{worlds} * block.index(); first < arguments.num_worlds;
         first += int64_t{worlds} * block.count()) {
        const int64_t left = arguments.num_worlds - first;
        const int count = static_cast<int>(left < worlds ? left : worlds);
        if (!has_any(arguments.mask, first, count)) continue;
        SharedTile<W, Block> tile{arguments.simulation, *arguments.flights, memory.blocks, memory.records, workspace, first, count};
        block.each([&](ThreadShare share) { load_worlds(tile, share); });
        operation(tile);
        block.each([&](ThreadShare share) { store_worlds(tile, share); });
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
