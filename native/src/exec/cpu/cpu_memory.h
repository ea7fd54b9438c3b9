// Memory of a simulator on the CPU: its own, or the caller's.
#pragma once

#include "exec/cpu/step_progress.h"
#include "runtime/memory.h"
#include "runtime/pages.h"

namespace doorstep {

class CpuMemory final : public Memory {
public:
    // Null, with the thread's error set, if `bytes` cannot be allocated.
    // argument: the name in the message.
    static Ref<Memory> take(int64_t bytes, const Ref<StepProgress>& progress, const char* argument);
    static Ref<Memory> borrow(char* data, int64_t bytes, const Ref<StepProgress>& progress);

    ds_status read(const void* start, int64_t bytes, void* host) override;
    ds_status write(void* start, int64_t bytes, const void* host) override;
    ds_status order(uint64_t stream) override;

private:
    CpuMemory(Pages pages, const Ref<StepProgress>& progress);
    CpuMemory(char* data, int64_t bytes, const Ref<StepProgress>& progress);

    Pages pages_;  // empty if the memory is the caller's
    Ref<StepProgress> progress_;
};

// The CPU has no streams: DS_STATUS_INVALID_ARGUMENT unless stream is DS_STREAM_OWN.
ds_status check_cpu_stream(uint64_t stream);

}  // namespace doorstep
