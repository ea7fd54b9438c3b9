// The memory layout of a tensor in as few dimensions as possible, for copies.
#pragma once

#include "interop/python/tensor_bridge.h"

namespace doorstep {

struct TensorRuns {
    int64_t run_bytes;  // contiguous bytes
    int rank;           // of the runs
    int64_t extents[kMaxRank];
    int64_t strides[kMaxRank];  // bytes from run to run; any sign
};

// Drops extents of 1 and merges dimensions that are contiguous. The tensor must have at least one element.
TensorRuns find_runs(const TensorView& view);

// Whether two elements share memory, as far as a single dimension shows it.
bool is_expanded(const TensorView& view);

}  // namespace doorstep
