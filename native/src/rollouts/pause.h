// How a replica's thread gives up the turn of its simulator: between two passes, and while it sleeps.
#pragma once

#include "runtime/futex.h"
#include "runtime/signal.h"

namespace doorstep {

class Pause {
public:
    // arrivals: ends a sleep, so that its end may be looked for.
    Pause(TurnLock& turn, Signal& arrivals) : turn_(turn), arrivals_(arrivals) {}

    // A sleep ends as soon as its signal is told.
    void close() { closed_.store(true); }
    bool is_closed() const { return closed_.load(); }

    // Until something may be done, it is closed, or the longest sleep is over.
    template <class IsDone>
    void until(const IsDone& is_done) {
        const uint32_t before = arrivals_.now();
        if (is_closed() || is_done()) return;
        turn_.unlock();
        arrivals_.wait(before, kLongestSleep);
        turn_.lock();
    }
    // For a fork, which waits for the turn.
    void briefly() {
        turn_.unlock();
        turn_.lock();
    }

private:
    static constexpr int64_t kLongestSleep = 50'000'000;  // nanoseconds

    TurnLock& turn_;
    Signal& arrivals_;
    std::atomic<bool> closed_{false};
};

}  // namespace doorstep
