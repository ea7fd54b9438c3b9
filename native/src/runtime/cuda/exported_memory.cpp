#include "runtime/cuda/exported_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <new>

#include "runtime/status.h"

namespace doorstep {
namespace {

ds_status check_can_export(const Context& context) {
    for (const CUdevice_attribute needed : {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                                            CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED}) {
        int supported;
        if (const ds_status status = context.attribute(needed, &supported)) return status;
        if (supported) continue;
        return fail(DS_STATUS_DEVICE, "context", "export memory from the other API and import that",
                    "device %d cannot export memory as file descriptors", context.device_index());
    }
    return DS_STATUS_OK;
}

CUmemAllocationProp exported_memory_of(const Context& context) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, context.device()};
    return properties;
}

}  // namespace

Ref<ExportedMemory> ExportedMemory::create(Ref<Stream> stream, uint64_t bytes) {
    const Ref<Context> context = stream->context();
    if (check_can_export(*context)) return {};
    const Ref<ExportedMemory> memory = check_allocated(new (std::nothrow) ExportedMemory(std::move(stream)));
    if (!memory) return {};
    CurrentContext current(*context);
    if (current.status()) return {};
    if (memory->take(bytes)) {
        const DestructionScope scope(*context);
        if (scope.entered()) memory->give_back();
        return {};
    }
    memory->own(memory->address_);
    return current.restore() ? Ref<ExportedMemory>() : memory;
}

// The context is current.
ds_status ExportedMemory::take(uint64_t bytes) {
    const CUmemAllocationProp properties = exported_memory_of(*context());
    size_t granularity;
    CUresult result =
        driver().cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (result) return fail_driver(result, "cuMemGetAllocationGranularity");
    if (bytes > UINT64_MAX - granularity) {
        return context()->fail_allocation(CUDA_ERROR_OUT_OF_MEMORY, "cuMemCreate", bytes);
    }
    bytes_ = (bytes + granularity - 1) / granularity * granularity;
    result = driver().cuMemCreate(&allocation_, bytes_, &properties, 0);
    if (result) return context()->fail_allocation(result, "cuMemCreate", bytes_);
    result = driver().cuMemAddressReserve(&address_, bytes_, 0, 0, 0);
    if (result) return context()->fail_allocation(result, "cuMemAddressReserve", bytes_);
    result = driver().cuMemMap(address_, bytes_, 0, allocation_, 0);
    if (result) return fail_driver(result, "cuMemMap");
    mapped_ = true;
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    result = driver().cuMemSetAccess(address_, bytes_, &access, 1);
    return result ? fail_driver(result, "cuMemSetAccess") : DS_STATUS_OK;
}

// Undoes a partial construction. An address that cannot be unmapped stays reserved.
void ExportedMemory::give_back() {
    if (mapped_ && driver().cuMemUnmap(address_, bytes_)) return;
    if (address_) driver().cuMemAddressFree(address_, bytes_);
    if (allocation_) driver().cuMemRelease(allocation_);
}

ExportedMemory::~ExportedMemory() {
    if (!disown()) return;
    const DestructionScope scope(*context());
    if (scope.entered() && stream_->finish()) give_back();
}

ds_status ExportedMemory::export_descriptor(int* descriptor) const {
    CurrentContext current(*context());
    if (const ds_status status = current.status()) return status;
    int exported;
    const CUresult result = driver().cuMemExportToShareableHandle(&exported, allocation_,
                                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result) return fail_driver(result, "cuMemExportToShareableHandle");
    if (const ds_status status = current.restore()) {
        close(exported);
        return status;
    }
    fcntl(exported, F_SETFD, FD_CLOEXEC);
    *descriptor = exported;
    return DS_STATUS_OK;
}

}  // namespace doorstep
