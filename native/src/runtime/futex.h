// Sleeping and waking on 32-bit words, and two locks built on it.
//
// The standard mutex and condition variable are not used: a process that exits while a thread sleeps on a static one
// may hang, and after a fork neither can be reset to a known state. A futex word is plain data: it needs no constructor
// and no destructor, and a forked child simply stores the state it needs.
#pragma once

#include <stdint.h>

#include <atomic>

namespace doorstep {

// Sleeps while `word` equals `expected`, at most timeout_ns (negative: without limit). May return early.
void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ns = -1);
void futex_wake(std::atomic<uint32_t>& word, int count);

// Returns when `word` no longer equals `value`: spins for some 20 microseconds, then sleeps.
void wait_for_change(std::atomic<uint32_t>& word, uint32_t value);

// Nanoseconds of a monotonic clock.
int64_t monotonic_ns();

// A mutex for short critical sections.
class Mutex {
public:
    void lock();
    void unlock();
    // In a forked child, where the thread that held it may not exist.
    void reset() { state_.store(0, std::memory_order_relaxed); }

private:
    std::atomic<uint32_t> state_{0};  // 0 free, 1 held, 2 held and a thread may sleep
};

class MutexGuard {
public:
    explicit MutexGuard(Mutex& mutex) : mutex_(mutex) { mutex_.lock(); }
    ~MutexGuard() { mutex_.unlock(); }
    MutexGuard(const MutexGuard&) = delete;
    MutexGuard& operator=(const MutexGuard&) = delete;

private:
    Mutex& mutex_;
};

// A lock that is granted in the order of arrival and may be released by another thread.
class TurnLock {
public:
    void lock();
    void unlock();
    // In a forked child: frees the lock and discards the tickets of threads that do not exist there.
    void reset();

private:
    std::atomic<uint32_t> next_ticket_{0};
    std::atomic<uint32_t> now_serving_{0};
};

}  // namespace doorstep
