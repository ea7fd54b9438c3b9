// Polling, where the driver can only wait without limit: without pause at first, as a pause takes at least 50 us, then at
// growing intervals.
#pragma once

#include <stdint.h>
#include <time.h>

#include <algorithm>

#include "runtime/futex.h"

namespace doorstep {

constexpr int64_t kSpinTime = 50'000;       // nanoseconds
constexpr int64_t kShortestPause = 10'000;  // between two polls, doubled up to
constexpr int64_t kLongestPause = 1'000'000;

// Polls until the result differs from `pending`, at least once and at most for timeout_ns; returns the last result.
template <class Answer, class Question>
Answer poll(Answer pending, int64_t timeout_ns, const Question& question) {
    const int64_t begin = monotonic_ns();
    int64_t pause = kShortestPause;
    while (true) {
        const Answer answer = question();
        const int64_t waited = monotonic_ns() - begin, left = timeout_ns - waited;
        if (answer != pending || left <= 0) return answer;
        if (waited < kSpinTime) continue;
        const timespec duration{0, static_cast<long>(std::min(pause, left))};
        nanosleep(&duration, nullptr);
        pause = std::min(2 * pause, kLongestPause);
    }
}

// How long a released object waits for the work that uses it before it is leaked: that work may itself wait for another
// API, without end.
constexpr int64_t kReleasePatience = 3'000'000'000;

}  // namespace doorstep
