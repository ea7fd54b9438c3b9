// Threads that sleep until something has changed.
#pragma once

#include <limits.h>

#include "runtime/futex.h"

namespace doorstep {

// Time that a call may take. Negative: any.
class TimeLimit {
public:
    explicit TimeLimit(int64_t timeout_ns) : timeout_ns_(timeout_ns), start_ns_(timeout_ns > 0 ? monotonic_ns() : 0) {}

    // Negative: without limit; 0: it is over.
    int64_t left_ns() const {
        if (timeout_ns_ <= 0) return timeout_ns_;
        const int64_t left = timeout_ns_ - (monotonic_ns() - start_ns_);
        return left > 0 ? left : 0;
    }

private:
    int64_t timeout_ns_, start_ns_;
};

// A waiting thread notes now(), looks at what it waits for, and sleeps unless that may have changed since. A thread
// that changes it calls tell() afterwards, which costs nothing while no thread sleeps.
class Signal {
public:
    uint32_t now() const { return changes_.load(std::memory_order_acquire); }

    // Sleeps until the next tell() after `since`, or the time is over. May return early.
    void wait(uint32_t since, int64_t timeout_ns) {
        sleepers_.fetch_add(1);
        futex_wait(changes_, since, timeout_ns);
        sleepers_.fetch_sub(1);
    }

    // Both words are sequentially consistent: either this thread sees that another one is about to sleep, or that one
    // sees the change and does not sleep.
    void tell() {
        changes_.fetch_add(1);
        if (sleepers_.load() > 0) futex_wake(changes_, INT_MAX);
    }

private:
    std::atomic<uint32_t> changes_{0};
    std::atomic<uint32_t> sleepers_{0};
};

}  // namespace doorstep
