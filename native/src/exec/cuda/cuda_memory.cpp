#include "exec/cuda/cuda_memory.h"

#include <new>

#include "runtime/status.h"

namespace doorstep {

Ref<Memory> CudaMemory::take(const Ref<WorkOrder>& order, int64_t bytes) {
    const Ref<Stream> stream = order->stream();
    const Ref<DeviceMemory> device = DeviceMemory::create_on(stream, static_cast<uint64_t>(bytes));
    if (!device || stream->fill(device->address(), 0, device->bytes())) return {};
    char* data = reinterpret_cast<char*>(device->address());
    return check_allocated(new (std::nothrow) CudaMemory(order, device, data, bytes, false));
}

Ref<Memory> CudaMemory::borrow(const Ref<WorkOrder>& order, char* data, int64_t bytes) {
    const Ref<DeviceMemory> device = DeviceMemory::borrow(order->context(), reinterpret_cast<uint64_t>(data),
                                                          static_cast<uint64_t>(bytes), {});
    if (!device) return {};
    return check_allocated(new (std::nothrow) CudaMemory(order, device, data, bytes, true));
}

CudaMemory::CudaMemory(const Ref<WorkOrder>& order, const Ref<DeviceMemory>& device, char* data, int64_t bytes,
                       bool is_callers)
    : Memory(data, bytes, DS_DEVICE_CUDA, device->device_index()),
      order_(order),
      device_(device),
      is_callers_(is_callers) {}

CudaMemory::~CudaMemory() {
    if (is_callers_) {
        if (order_->finish_for_caller()) return;
        device_->abandon();
        abandon_owner();
        return;
    }
    Ref<Stream> stream;
    if (order_->settle(&stream)) {
        device_->set_stream(std::move(stream));
    } else {
        device_->abandon();
    }
}

ds_status CudaMemory::read(const void* start, int64_t bytes, void* host) {
    return order_->copy(reinterpret_cast<uint64_t>(host), reinterpret_cast<uint64_t>(start), bytes,
                        "a copy to the host");
}

ds_status CudaMemory::write(void* start, int64_t bytes, const void* host) {
    return order_->copy(reinterpret_cast<uint64_t>(start), reinterpret_cast<uint64_t>(host), bytes,
                        "a copy from the host");
}

}  // namespace doorstep
