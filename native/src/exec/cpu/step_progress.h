// Counts the asynchronous steps that a simulator began and ended. Events and ds_simulator_wait() wait on it; it
// outlives the simulator as long as an event refers to it.
#pragma once

#include <limits.h>
#include <stdint.h>

#include <algorithm>
#include <atomic>

#include "exec/step_event.h"
#include "runtime/futex.h"
#include "runtime/reference.h"

namespace doorstep {

class StepProgress : public RefCounted {
public:
    // The count of ended steps once the step that begins now has ended.
    uint32_t begin() { return begun_.fetch_add(1) + 1; }
    void end() {
        ended_.fetch_add(1);
        futex_wake(ended_, INT_MAX);
    }
    uint32_t latest() const { return begun_.load(); }

    // False if the step has not ended after timeout_ns (negative: without limit).
    bool wait(uint32_t step, int64_t timeout_ns) {
        const int64_t start = timeout_ns > 0 ? monotonic_ns() : 0;
        for (;;) {
            const uint32_t ended = ended_.load();
            if (static_cast<int32_t>(ended - step) >= 0) return true;
            if (timeout_ns < 0) {
                wait_for_change(ended_, ended);
                continue;
            }
            const int64_t left = timeout_ns > 0 ? timeout_ns - (monotonic_ns() - start) : 0;
            if (left <= 0) return false;
            futex_wait(ended_, ended, left);
        }
    }

private:
    std::atomic<uint32_t> begun_{0};
    std::atomic<uint32_t> ended_{0};
};

class CpuStepEvent final : public StepEvent {
public:
    CpuStepEvent(const Ref<StepProgress>& progress, uint32_t step) : progress_(progress), step_(step) {}

    ds_status wait(int64_t timeout_ns) override {
        return progress_->wait(step_, timeout_ns) ? DS_STATUS_OK : DS_STATUS_PENDING;
    }

private:
    Ref<StepProgress> progress_;
    uint32_t step_;
};

}  // namespace doorstep
