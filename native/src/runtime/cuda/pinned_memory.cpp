#include "runtime/cuda/pinned_memory.h"

#include <new>

#include "runtime/status.h"

namespace doorstep {

PinnedMemory::PinnedMemory(Ref<Context> context, uint64_t bytes)
    : Resource(kKind, std::move(context)), bytes_(bytes) {}

Ref<PinnedMemory> PinnedMemory::create(Ref<Context> context, uint64_t bytes) {
    const Ref<PinnedMemory> memory = check_allocated(new (std::nothrow) PinnedMemory(context, bytes));
    if (!memory) return {};
    CurrentContext current(*context);
    if (current.status()) return {};
    const unsigned flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    void* data;
    if (const CUresult result = driver().cuMemHostAlloc(&data, bytes, flags)) {
        fail_driver(result, "cuMemHostAlloc");
        add_detail("; requested %llu bytes", static_cast<unsigned long long>(bytes));
        return {};
    }
    CUdeviceptr address;
    if (const CUresult result = driver().cuMemHostGetDevicePointer(&address, data, 0)) {
        fail_driver(result, "cuMemHostGetDevicePointer");
        const DestructionScope scope(*context);
        if (scope.entered()) driver().cuMemFreeHost(data);
        return {};
    }
    memory->data_ = data;
    memory->own(address);
    return current.restore() ? Ref<PinnedMemory>() : memory;
}

PinnedMemory::~PinnedMemory() {
    if (!disown()) return;
    const DestructionScope scope(*context());
    if (scope.entered()) driver().cuMemFreeHost(data_);
}

}  // namespace doorstep
