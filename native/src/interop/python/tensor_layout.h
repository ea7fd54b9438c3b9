// How the elements of a tensor lie in memory, in as few dimensions as possible: what copying goes over.
#pragma once

#include "interop/python/tensor_bridge.h"

namespace doorstep {

struct TensorRuns {
    int64_t run_bytes;  // side by side
    int rank;           // of the runs
    int64_t extents[kMaxRank];
    int64_t strides[kMaxRank];  // bytes from run to run; any sign
};

// Extents of 1 are left out and dimensions that follow each other are joined. There is at least one element.
TensorRuns find_runs(const TensorView& view);

// Whether two elements share memory, as far as one dimension alone shows it.
bool is_expanded(const TensorView& view);

}  // namespace doorstep
