// The kernels: names, parameters and launch configuration.
//
// A module is compiled per kind of worlds. Its kernels process tiles of worlds: block b processes the tiles b, b + grid,
// b + 2 grid, ..., so that any grid and any size of tiles give the same result. A kernel reads and writes only the
// memory that KernelArguments points to, allocates nothing and cannot fail.
#pragma once

#include "sim/flight.h"
#include "sim/world_model.h"

namespace doorstep {

// X(name, sentence). The function in the module is doorstep_<name>.
#define DS_KERNEL_TABLE(X)                                                                              \
    X(create, "Generates episodes 0 and 1 of every world and writes every tensor.")                     \
    X(step, "Steps every world once.")                                                                  \
    X(reset, "Regenerates the worlds of the mask without simulating, as ds_simulator_reset.")           \
    X(refresh, "Recomputes derived data and observations of the worlds of the mask.")

enum KernelId {
#define DS_KERNEL_ENUM(name, sentence) kKernel_##name,
    DS_KERNEL_TABLE(DS_KERNEL_ENUM)
#undef DS_KERNEL_ENUM
    kKernelCount
};
#define DS_KERNEL_NAME(name, sentence) "doorstep_" #name,
constexpr const char* kKernelNames[kKernelCount] = {DS_KERNEL_TABLE(DS_KERNEL_NAME)};
#undef DS_KERNEL_NAME

// The one parameter of every kernel, by value. All addresses are the device's.
struct KernelArguments {
    Simulation simulation;
    const FlightTable* flights;
    void* workspace;        // workspace_bytes() for each block of the grid, 256-byte aligned; need not be zero
    uint32_t* trouble;      // kTroubleKinds words; word k is set to 1 when bit k of Trouble occurs; may be
                            // mapped host memory, because the kernel does not read it
    const uint8_t* mask;    // reset, refresh: one byte per world, or null for all
    const EpisodeStart* starts;  // reset: one per world, or null for the next episodes
    int64_t num_worlds;
    uint64_t world_offset;  // create
    uint32_t seed;          // create
    int32_t tile_worlds;    // worlds that a block takes at a time, 1 to KernelShape::tile_worlds
    const uint32_t* seed_and_offset;  // create: two words used instead of the two numbers; or null
};

// Launch configuration of the kernels of a module, for one kind of worlds.
struct KernelShape {
    int32_t tile_worlds;     // the most worlds that a block takes at a time
    int32_t threads;         // of a block
    uint32_t shared_bytes;   // dynamic shared memory of a block; may exceed 48 KiB
    int64_t bytes_of_solver; // scratch memory for each world that a block solves at a time
};

// The most worlds that a block solves at a time.
constexpr int kSolvers = 8;

// Scratch memory of a block that takes tile_worlds at a time.
constexpr int64_t workspace_bytes(const KernelShape& shape, int32_t tile_worlds) {
    return shape.bytes_of_solver * (tile_worlds < kSolvers ? tile_worlds : kSolvers);
}

// How a launch divides worlds among blocks.
struct TileDivision {
    int64_t blocks;
    int32_t tile_worlds;  // of each at a time
};

// Among as many blocks as the device runs at once (resident_blocks), because a step of few worlds takes as long as the
// tile of a block; with at most `scratch_bytes` of scratch memory, which are enough for a tile of one world.
TileDivision divide_into_tiles(const KernelShape& shape, int64_t num_worlds, int64_t resident_blocks,
                               int64_t scratch_bytes);

constexpr int kTroubleKinds = DS_TROUBLE_KINDS;

const KernelShape& find_kernel_shape(WorldKind kind);

}  // namespace doorstep
