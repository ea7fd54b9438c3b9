// Numbers of objects alive, for those that no handle registry counts.
#pragma once

#include <stdint.h>

#include <atomic>

namespace doorstep {

struct LiveCounts {
    std::atomic<int64_t> memories{0};  // mapped arenas
    std::atomic<int64_t> exports{0};   // DLPack tensors not yet deleted
    std::atomic<int64_t> threads{0};   // threads started and not yet joined
};

inline constinit LiveCounts live_counts;

}  // namespace doorstep
