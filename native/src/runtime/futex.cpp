#include "runtime/futex.h"

#include <immintrin.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

namespace doorstep {
namespace {

constexpr uint64_t kSpinTicks = 50'000;  // about 20 microseconds of time stamp counter

}  // namespace

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ns) {
    timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected,
            timeout_ns < 0 ? nullptr : &timeout, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word, int count) {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

void wait_for_change(std::atomic<uint32_t>& word, uint32_t value) {
    const uint64_t start = __rdtsc();
    while (word.load(std::memory_order_acquire) == value) {
        if (__rdtsc() - start < kSpinTicks) {
            _mm_pause();
        } else {
            futex_wait(word, value);
        }
    }
}

int64_t monotonic_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void Mutex::lock() {
    uint32_t free = 0;
    if (state_.compare_exchange_strong(free, 1, std::memory_order_acquire)) return;
    while (state_.exchange(2, std::memory_order_acquire) != 0) futex_wait(state_, 2);
}

void Mutex::unlock() {
    if (state_.exchange(0, std::memory_order_release) == 2) futex_wake(state_, 1);
}

void TurnLock::lock() {
    const uint32_t ticket = next_ticket_.fetch_add(1);
    for (uint32_t serving = now_serving_.load(); serving != ticket; serving = now_serving_.load()) {
        wait_for_change(now_serving_, serving);
    }
}

// Both words are sequentially consistent: either this thread sees the ticket of a thread that is about to sleep, or
// that thread sees the new turn and does not sleep.
void TurnLock::unlock() {
    const uint32_t serving = now_serving_.fetch_add(1) + 1;
    if (next_ticket_.load() != serving) futex_wake(now_serving_, INT_MAX);
}

void TurnLock::reset() {
    next_ticket_.store(0);
    now_serving_.store(0);
}

}  // namespace doorstep
