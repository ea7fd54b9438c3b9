// Memory of a simulator on a CUDA device: its own, or the caller's.
#pragma once

#include "exec/cuda/work_order.h"
#include "runtime/cuda/device_memory.h"
#include "runtime/memory.h"

namespace doorstep {

class CudaMemory final : public Memory {
public:
    // Zeroed. Null, with the thread's error set, if `bytes` cannot be allocated.
    static Ref<Memory> take(const Ref<WorkOrder>& order, int64_t bytes);
    // Null, with the thread's error set, if the memory is not on the device.
    static Ref<Memory> borrow(const Ref<WorkOrder>& order, char* data, int64_t bytes);
    // Own memory is freed in the order of the work, without waiting for it. The caller's is released after the work.
    ~CudaMemory() override;

    ds_status read(const void* start, int64_t bytes, void* host) override;
    ds_status write(void* start, int64_t bytes, const void* host) override;
    ds_status order(uint64_t stream) override { return order_->order(stream); }

private:
    CudaMemory(const Ref<WorkOrder>& order, const Ref<DeviceMemory>& device, char* data, int64_t bytes,
               bool is_callers);

    Ref<WorkOrder> order_;
    Ref<DeviceMemory> device_;
    bool is_callers_;
};

}  // namespace doorstep
