// Counts of live objects that no handle registry counts.
#pragma once

#include <stdint.h>

#include <atomic>

#include "doorstep.h"

namespace doorstep {

struct LiveCounts {
    std::atomic<int64_t> memories{0};  // memories of simulators
    std::atomic<int64_t> exports{0};   // DLPack tensors not yet deleted
    std::atomic<int64_t> threads{0};   // threads started and not yet joined
    std::atomic<int64_t> resources[DS_RESOURCE_KIND_COUNT]{};
};

inline constinit LiveCounts live_counts;

}  // namespace doorstep
