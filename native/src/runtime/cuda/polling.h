// Polling at growing intervals, where the driver can only wait without limit.
#pragma once

#include <stdint.h>
#include <time.h>

#include <algorithm>

#include "runtime/futex.h"

namespace doorstep {

constexpr int64_t kShortestPause = 10'000;  // nanoseconds between two polls, doubled up to
constexpr int64_t kLongestPause = 1'000'000;

// Polls until the result differs from `pending`, at least once and at most for timeout_ns; returns the last result.
template <class Answer, class Question>
Answer poll(Answer pending, int64_t timeout_ns, const Question& question) {
    const int64_t begin = monotonic_ns();
    for (int64_t pause = kShortestPause;; pause = std::min(2 * pause, kLongestPause)) {
        const Answer answer = question();
        const int64_t left = timeout_ns - (monotonic_ns() - begin);
        if (answer != pending || left <= 0) return answer;
        const timespec duration{0, static_cast<long>(std::min(pause, left))};
        nanosleep(&duration, nullptr);
    }
}

// How long a released object waits for the work that uses it before it is leaked: that work may itself wait for another
// API, without end.
constexpr int64_t kReleasePatience = 3'000'000'000;

}  // namespace doorstep
