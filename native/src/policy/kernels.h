// The kernels of policies on CUDA: their names, parameters and launch configurations.
#pragma once

#include "policy/network.h"
#include "policy/played_rows.h"

namespace doorstep {

constexpr const char* kActKernel = "doorstep_act";                   // evaluates a network: ActArguments
constexpr const char* kActBf16Kernel = "doorstep_act_bf16";          // the same by tensor cores; in another module
constexpr const char* kPrepareRowsKernel = "doorstep_prepare_rows";  // before networks act: PlayedRows
constexpr const char* kCountStepKernel = "doorstep_count_step";      // adds 1 to a step counter, its parameter

// Threads of a block of doorstep_prepare_rows, each of which takes a row. doorstep_count_step has one thread.
constexpr int kPrepareThreads = 128;

// ---- doorstep_act

// Block b processes the tiles of rows b, b + grid, ..., so that any grid gives the same result.
constexpr int kActThreads = 128;  // of a block
constexpr int kActRows = 32;      // of a tile
static_assert(kActThreads == kScoresPerRow * kActRows);

// The part of the weights that a block multiplies with at a time: inputs by outputs.
constexpr int kStagedInputs = 32;
constexpr int kStagedOutputs = 64;
constexpr int kStagedPitch = kStagedOutputs + 4;  // floats between inputs; threads that write a column use all banks
constexpr int kStagedFloats = kStagedInputs * kStagedPitch;

// A part of the list of rows.
struct RowRange {
    int64_t first, count;
};

// The one parameter, by value. All addresses are the device's.
struct ActArguments {
    Network network;
    ActCall call;
    float* scratch;            // scratch_floats for each block of the grid; null: in shared memory
    int64_t scratch_floats;
    const RowRange* range;     // which rows of the call; null: all
    unsigned long long* nonfinite_rows;  // rows that got the neutral action are added; may be mapped host memory
};

// Scratch memory of a block, in floats.
DS_INLINE int64_t act_scratch_floats(const Network& network) {
    return network.row_floats() * kActRows;
}

}  // namespace doorstep
