// The order in which the threads of an emulated block run.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace doorstep {

// The order in which the threads of a block execute a stage.
enum class ThreadOrder { kForwards, kBackwards, kShuffled };

inline std::vector<int> threads_in(ThreadOrder order, int count) {
    std::vector<int> threads(static_cast<size_t>(count));
    std::iota(threads.begin(), threads.end(), 0);
    if (order == ThreadOrder::kBackwards) std::reverse(threads.begin(), threads.end());
    if (order == ThreadOrder::kShuffled) {
        uint32_t state = 12345;
        for (size_t i = threads.size() - 1; i > 0; i--) {
            state = state * 1664525u + 1013904223u;
            std::swap(threads[i], threads[(state >> 8) % (i + 1)]);
        }
    }
    return threads;
}

}  // namespace doorstep
