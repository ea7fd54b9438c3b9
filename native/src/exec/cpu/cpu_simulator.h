// A batch of worlds on the CPU: its memory, its threads, and the operations on them.
//
// Nothing here checks arguments (api/ does) and nothing but create(), start_threads() and start_background() can
// fail. Every operation expects its caller to hold `turn`, unless it says otherwise.
#pragma once

#include <stdint.h>

#include <atomic>

#include "doorstep.h"
#include "exec/cpu/background_thread.h"
#include "exec/cpu/step_progress.h"
#include "exec/cpu/thread_pool.h"
#include "exec/tensor_table.h"
#include "runtime/futex.h"
#include "runtime/memory.h"
#include "runtime/reference.h"
#include "sim/world_model.h"

namespace doorstep {

class CpuSimulator : public RefCounted {
public:
    // Generates the first levels. Null, with the thread's error set, if memory or threads cannot be had.
    static Ref<CpuSimulator> create(const ds_simulator_config& config);

    // Held for the length of every operation, and by an asynchronous step until it has ended.
    TurnLock turn;
    bool closed = false;  // guarded by turn

    // Neighbours in the list of open simulators, see api/fork.cpp.
    CpuSimulator* previous = nullptr;
    CpuSimulator* next = nullptr;

    // ---- Fixed at creation; may be read without the turn ----
    const ds_simulator_config& config() const { return config_; }
    const WorldModel& model() const { return *model_; }
    const Ref<Memory>& memory() const { return memory_; }
    const Ref<StepProgress>& progress() const { return progress_; }
    int64_t allocated_bytes() const;
    int64_t step_count() const { return step_count_.load(std::memory_order_relaxed); }
    bool has_tensor(int tensor) const;
    void describe_tensor(int tensor, ds_tensor_info* info) const;
    void describe_state(int field, ds_tensor_info* info) const;

    // ---- Threads ----
    // Make sure that the threads exist, also after a fork. False, with the error set, if they cannot be had.
    bool start_threads();
    bool start_background();
    void stop_threads();
    void forget_threads();  // in a forked child

    // ---- Operations ----
    void step();
    // Steps on the background thread, which gives the turn back at the end.
    void step_in_background();
    bool find_bad_action(BadAction* bad) const;
    void reset(const uint8_t* mask);    // null: all worlds
    void refresh(const uint8_t* mask);  // null: all worlds
    void look_for_edits() { simulation_.look_for_edits = 1; }

    // Trouble bits since they were last taken.
    uint32_t take_trouble();
    void read_health(ds_health* health) const;
    // The world whose trouble is the latest; false if no world knows of any.
    bool find_latest_culprit(int64_t* world, WorldHealth* health) const;

    // hashes: one per world, or null. Returns the sum over the worlds of the mask (null: all).
    uint64_t hash(const uint8_t* mask, uint64_t* hashes);

    void set_profiling(bool enabled);
    void read_profile(uint64_t* ticks) const;  // kNumStages of them

    // ---- Worlds ----
    char* block(int64_t world) const;
    const TensorPointers& tensors() const { return simulation_.tensors; }
    // One byte per world, all zero between calls.
    uint8_t* mask() const { return mask_; }

private:
    explicit CpuSimulator(const ds_simulator_config& config);

    bool take_memory();
    int64_t lay_out(char* base);
    Dimensions dimensions() const;
    uint64_t* ticks_of(int worker);

    ds_simulator_config config_;
    const WorldModel* model_;
    Ref<Memory> memory_;
    Ref<StepProgress> progress_;
    Simulation simulation_{};
    void* constants_[DS_STATE_COUNT] = {};  // copies, in the memory, of state fields fixed by the model
    void* tensor_data_[DS_TENSOR_COUNT] = {};
    uint8_t* mask_ = nullptr;
    uint64_t* ticks_ = nullptr;  // kNumStages per worker

    ThreadPool pool_;
    BackgroundThread background_;
    bool profiling_ = false;
    uint32_t trouble_ = 0;
    std::atomic<int64_t> step_count_{0};
};

}  // namespace doorstep
