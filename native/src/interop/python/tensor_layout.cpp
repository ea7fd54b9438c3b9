#include "interop/python/tensor_layout.h"

namespace doorstep {

TensorRuns find_runs(const TensorView& view) {
    TensorRuns runs{};
    int64_t extents[kMaxRank], strides[kMaxRank];  // innermost first
    int rank = 0;
    const int64_t bytes = element_bytes(view);
    for (int axis = view.rank - 1; axis >= 0; --axis) {
        const int64_t extent = view.shape[axis], stride = view.strides[axis] * bytes;
        if (extent == 1) continue;
        if (rank > 0 && stride == strides[rank - 1] * extents[rank - 1]) {
            extents[rank - 1] *= extent;
        } else {
            extents[rank] = extent;
            strides[rank++] = stride;
        }
    }
    const int joined = rank > 0 && strides[0] == bytes;
    runs.run_bytes = joined ? bytes * extents[0] : bytes;
    runs.rank = rank - joined;
    for (int i = 0; i < runs.rank; ++i) {
        runs.extents[i] = extents[rank - 1 - i];
        runs.strides[i] = strides[rank - 1 - i];
    }
    return runs;
}

bool is_expanded(const TensorView& view) {
    if (view.count == 0) return false;
    for (int axis = 0; axis < view.rank; ++axis) {
        if (view.shape[axis] > 1 && view.strides[axis] == 0) return true;
    }
    return false;
}

}  // namespace doorstep
