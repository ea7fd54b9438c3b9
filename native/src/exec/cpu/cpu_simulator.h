// A simulator's worlds on the CPU: their memory, threads and operations. Only operations that start threads can fail.
#pragma once

#include <limits.h>
#include <stdint.h>

#include <atomic>

#include "exec/cpu/threads.h"
#include "exec/simulator.h"
#include "runtime/futex.h"
#include "runtime/memory.h"

namespace doorstep {

// Counts the steps, resets and the like that a simulator began and ended. Events and copies of memory wait on it; it
// outlives the simulator as long as an event refers to it.
class WorkProgress : public RefCounted {
public:
    void begin() { begun_.fetch_add(1); }
    void end() {
        DS_ASSERT(ended_.load() != begun_.load());
        ended_.fetch_add(1);
        if (waiting_.load() > 0) futex_wake(ended_, INT_MAX);
    }
    // The number of the work that was begun last.
    uint32_t latest() const { return begun_.load(); }

    // False if it has not ended after timeout_ns (negative: without limit).
    bool wait(uint32_t work, int64_t timeout_ns) {
        if (has_ended(work)) return true;
        if (timeout_ns == 0) return false;
        waiting_.fetch_add(1);  // before the next look at ended_
        const bool ended = sleep(work, timeout_ns);
        waiting_.fetch_sub(1);
        return ended;
    }

private:
    bool has_ended(uint32_t work) const { return static_cast<int32_t>(ended_.load() - work) >= 0; }

    bool sleep(uint32_t work, int64_t timeout_ns) {
        const int64_t start = monotonic_ns();
        for (;;) {
            const uint32_t ended = ended_.load();
            if (has_ended(work)) return true;
            if (timeout_ns < 0) {
                wait_for_change(ended_, ended);
                continue;
            }
            const int64_t left = timeout_ns - (monotonic_ns() - start);
            if (left <= 0) return false;
            futex_wait(ended_, ended, left);
        }
    }

    std::atomic<uint32_t> begun_{0};
    std::atomic<uint32_t> ended_{0};
    std::atomic<uint32_t> waiting_{0};  // threads in sleep()
};

class CpuStepEvent final : public StepEvent {
public:
    CpuStepEvent(const Ref<WorkProgress>& progress, uint32_t work) : progress_(progress), work_(work) {}

    ds_status wait(int64_t timeout_ns) override {
        return progress_->wait(work_, timeout_ns) ? DS_STATUS_OK : DS_STATUS_PENDING;
    }

private:
    Ref<WorkProgress> progress_;
    uint32_t work_;
};

// Memory of a simulator on the CPU: its own, or the caller's.
class CpuMemory final : public Memory {
public:
    // Null, with the thread's error set, if `bytes` cannot be allocated.
    // argument: the name in the message.
    static Ref<Memory> take(int64_t bytes, const Ref<WorkProgress>& progress, const char* argument);
    static Ref<Memory> borrow(char* data, int64_t bytes, const Ref<WorkProgress>& progress);

    ds_status read(const void* start, int64_t bytes, void* host) override;
    ds_status write(void* start, int64_t bytes, const void* host) override;
    ds_status order(uint64_t stream) override;

private:
    CpuMemory(Pages pages, const Ref<WorkProgress>& progress);
    CpuMemory(char* data, int64_t bytes, const Ref<WorkProgress>& progress);

    Pages pages_;  // empty if the memory is the caller's
    Ref<WorkProgress> progress_;
};

class CpuSimulator final : public Simulator {
public:
    // Generates the first levels. OUT_OF_MEMORY if memory or threads cannot be allocated.
    static ds_status create(const ds_simulator_config& config, Ref<Simulator>* simulator);

    uint8_t* mask() const override { return mask_; }
    ds_status find_end(Ref<StepEvent>* event) override;
    uint64_t stream() const override { return 0; }

    ds_status prepare() override;
    bool close() override;
    void enter_forked_child() override;

    void begin_work() override { progress_->begin(); }
    void end_work() override { progress_->end(); }
    ds_status step() override;
    // Steps the worlds of the mask alone, one byte for each world.
    ds_status step_some(const uint8_t* mask);
    ds_status make_event(Ref<StepEvent>* event) override;
    // Steps on the background thread, which releases the turn at the end.
    ds_status step_async(StepEvent& event) override;
    ds_status find_bad_action(bool* found, BadAction* bad) override;
    ds_status reset(const uint8_t* mask) override { return begin(mask, nullptr); }
    ds_status begin(const uint8_t* mask, const EpisodeStart* starts) override;
    ds_status refresh(const uint8_t* mask) override;
    ds_status set_stream(uint64_t stream) override;
    ds_status borrow(char* data, int64_t bytes, Ref<Memory>* memory) override;
    ds_status copy(void* to, const void* from, int64_t bytes) override;
    ds_status copy_now(void* to, const void* from, int64_t bytes) override { return copy(to, from, bytes); }

    ds_status save(const WorldList& worlds, char* saved) override;
    ds_status restore(const WorldList& worlds, const char* saved) override;
    ds_status hash(const uint8_t* mask, uint64_t* hashes, uint64_t* sum) override;

    void run_on_host(int64_t count, int64_t grain, ds_task task, void* context) override {
        pool_.run(count, grain, task, context);
    }
    int num_workers() const override { return pool_.size(); }

    ds_status take_trouble(uint32_t* trouble) override;

    ds_status set_profiling(bool enabled) override;
    ds_status read_profile(uint64_t* ticks) override;

private:
    template <class FindRuns>
    ds_status step_runs(const FindRuns& find_runs);
    explicit CpuSimulator(const ds_simulator_config& config);

    int64_t own_bytes() const override;
    ds_status take_memory(int64_t bytes, Ref<Memory>* memory) override;
    ds_status update_attachment() override;
    bool take_own_memory();
    char* block(int64_t world) const;
    uint64_t* ticks_of(int worker) {
        DS_ASSERT(worker >= 0 && worker < pool_.capacity());
        return ticks_ + worker * kTickStride;
    }
    ds_status visit_blocks(const uint8_t* mask, VisitBlock visit, void* context) override;

    static constexpr int64_t kTickStride = (kNumStages + 7) / 8 * 8;  // so that workers do not share cache lines

    Ref<WorkProgress> progress_;
    uint8_t* mask_ = nullptr;
    uint64_t* ticks_ = nullptr;  // kNumStages per worker
    ThreadPool pool_;
    BackgroundThread background_;
    bool profiling_ = false;
    uint32_t trouble_ = 0;
};

}  // namespace doorstep
