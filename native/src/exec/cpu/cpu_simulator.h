// A simulator's worlds on the CPU: their memory, threads and operations. Only operations that start threads can fail.
#pragma once

#include <stdint.h>

#include "exec/cpu/background_thread.h"
#include "exec/cpu/step_progress.h"
#include "exec/cpu/thread_pool.h"
#include "exec/saved_world.h"
#include "exec/simulator.h"

namespace doorstep {

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

    ds_status step() override;
    ds_status make_event(Ref<StepEvent>* event) override;
    // Steps on the background thread, which releases the turn at the end.
    ds_status step_async(StepEvent& event) override;
    ds_status find_bad_action(bool* found, BadAction* bad) override;
    ds_status reset(const uint8_t* mask) override;
    ds_status refresh(const uint8_t* mask) override;
    ds_status set_stream(uint64_t stream) override;
    ds_status borrow(char* data, int64_t bytes, Ref<Memory>* memory) override;
    ds_status copy(void* to, const void* from, int64_t bytes) override;
    ds_status copy_now(void* to, const void* from, int64_t bytes) override { return copy(to, from, bytes); }

    ds_status save(const WorldList& worlds, char* saved) override;
    ds_status restore(const WorldList& worlds, const char* saved) override;
    ds_status hash(const uint8_t* mask, uint64_t* hashes, uint64_t* sum) override;

    ds_status take_trouble(uint32_t* trouble) override;

    ds_status set_profiling(bool enabled) override;
    ds_status read_profile(uint64_t* ticks) override;

private:
    ds_status make_event(uint32_t step, Ref<StepEvent>* event);
    explicit CpuSimulator(const ds_simulator_config& config);

    int64_t own_bytes() const override;
    ds_status take_memory(int64_t bytes, Ref<Memory>* memory) override;
    ds_status update_attachment() override;
    bool take_own_memory();
    char* block(int64_t world) const;
    uint64_t* ticks_of(int worker) { return ticks_ + worker * kTickStride; }
    ds_status visit_blocks(const uint8_t* mask, VisitBlock visit, void* context) override;

    static constexpr int64_t kTickStride = (kNumStages + 7) / 8 * 8;  // so that workers do not share cache lines

    Ref<StepProgress> progress_;
    uint8_t* mask_ = nullptr;
    uint64_t* ticks_ = nullptr;  // kNumStages per worker
    ThreadPool pool_;
    BackgroundThread background_;
    bool profiling_ = false;
    uint32_t trouble_ = 0;
};

}  // namespace doorstep
