#include "exec/cpu/cpu_memory.h"

#include <string.h>

#include <new>

#include "runtime/status.h"

namespace doorstep {
namespace {

Ref<Memory> check_allocated(CpuMemory* memory, const char* argument) {
    if (!memory) {
        fail(DS_STATUS_OUT_OF_MEMORY, argument, "close other simulators, or raise the memory limit",
             "no memory is left for a record of %zu bytes", sizeof(CpuMemory));
    }
    return Ref<Memory>::adopt(memory);
}

}  // namespace

Ref<Memory> CpuMemory::take(int64_t bytes, const Ref<StepProgress>& progress, const char* argument) {
    Pages pages = map_pages(bytes, argument);
    if (!pages) return {};
    return check_allocated(new (std::nothrow) CpuMemory(std::move(pages), progress), argument);
}

Ref<Memory> CpuMemory::borrow(char* data, int64_t bytes, const Ref<StepProgress>& progress) {
    return check_allocated(new (std::nothrow) CpuMemory(data, bytes, progress), "bindings");
}

CpuMemory::CpuMemory(Pages pages, const Ref<StepProgress>& progress)
    : Memory(pages.data(), pages.bytes(), DS_DEVICE_CPU, 0), pages_(std::move(pages)), progress_(progress) {}

CpuMemory::CpuMemory(char* data, int64_t bytes, const Ref<StepProgress>& progress)
    : Memory(data, bytes, DS_DEVICE_CPU, 0), progress_(progress) {}

ds_status CpuMemory::read(const void* start, int64_t bytes, void* host) {
    progress_->wait(progress_->latest(), -1);
    memcpy(host, start, static_cast<size_t>(bytes));
    return DS_STATUS_OK;
}

ds_status CpuMemory::write(void* start, int64_t bytes, const void* host) {
    progress_->wait(progress_->latest(), -1);
    memcpy(start, host, static_cast<size_t>(bytes));
    return DS_STATUS_OK;
}

ds_status CpuMemory::order(uint64_t stream) { return check_cpu_stream(stream); }

ds_status check_cpu_stream(uint64_t stream) {
    if (stream == DS_STREAM_OWN) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "stream", "leave stream out on the CPU",
                "stream is 0x%llx; the CPU has no streams", static_cast<unsigned long long>(stream));
}

}  // namespace doorstep
