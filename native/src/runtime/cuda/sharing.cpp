#include "runtime/cuda/sharing.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <new>

#include "runtime/cuda/stream.h"
#include "runtime/status.h"

namespace doorstep {

// ---- File descriptors ----

FileDescriptorCopy::FileDescriptorCopy(int original) : descriptor_(fcntl(original, F_DUPFD_CLOEXEC, 0)) {
    if (descriptor_ >= 0) return;
    const int reason = errno;
    status_ = fail(DS_STATUS_INVALID_ARGUMENT, "fd",
                   reason == EBADF ? "pass a descriptor that the other API has exported, and only once"
                                   : "close files that are no longer needed, or raise the limit (ulimit -n)",
                   "file descriptor %d cannot be used: %s", original, strerror(reason));
}

FileDescriptorCopy::~FileDescriptorCopy() {
    if (descriptor_ >= 0) close(descriptor_);
}

// ---- Exported memory ----

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
    return create_with(new (std::nothrow) ExportedMemory(std::move(stream)), [&](ExportedMemory& memory) {
        if (const ds_status status = memory.take(bytes)) {
            memory.give_back();
            return status;
        }
        memory.own(memory.address_);
        return DS_STATUS_OK;
    });
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
    destroy([this](const Driver&) {
        if (stream_->finish()) give_back();
    });
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

// ---- Imported memory ----

Ref<ImportedMemory> ImportedMemory::create(Ref<Stream> stream, int descriptor, uint64_t bytes, bool dedicated) {
    return create_with(new (std::nothrow) ImportedMemory(std::move(stream), bytes), [&](ImportedMemory& memory) {
        ds_status status = memory.import(descriptor, dedicated);
        if (!status) status = memory.map();
        if (status) {
            memory.give_back();
            return status;
        }
        memory.own(memory.address_);
        return DS_STATUS_OK;
    });
}

ds_status ImportedMemory::import(int descriptor, bool dedicated) {
    FileDescriptorCopy copy(descriptor);
    if (copy.status()) return copy.status();
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC description{};
    description.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    description.handle.fd = copy.get();
    description.size = bytes_;
    description.flags = dedicated ? CUDA_EXTERNAL_MEMORY_DEDICATED : 0;
    if (const CUresult result = driver().cuImportExternalMemory(&memory_, &description)) {
        return fail_driver(result, "cuImportExternalMemory", "fd");
    }
    copy.give_away();
    return DS_STATUS_OK;
}

ds_status ImportedMemory::map() {
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer{};
    buffer.size = bytes_;
    const CUresult result = driver().cuExternalMemoryGetMappedBuffer(&address_, memory_, &buffer);
    return result ? fail_driver(result, "cuExternalMemoryGetMappedBuffer", "bytes") : DS_STATUS_OK;
}

// The buffer is freed before the memory that it maps.
void ImportedMemory::give_back() {
    if (address_ && driver().cuMemFree(address_)) return;
    if (memory_) driver().cuDestroyExternalMemory(memory_);
}

ImportedMemory::~ImportedMemory() {
    destroy([this](const Driver&) {
        if (stream_->finish()) give_back();
    });
}

// ---- Semaphores ----

namespace {

ds_status check_knows_timelines(const Context& context) {
    int supported;
    const ds_status status = context.attribute(CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, &supported);
    if (status || supported) return status;
    return fail(DS_STATUS_DEVICE, "timeline", "use binary semaphores", "device %d cannot import timeline semaphores",
                context.device_index());
}

CUDA_EXTERNAL_SEMAPHORE_PARAMS with_value(uint64_t value) {
    CUDA_EXTERNAL_SEMAPHORE_PARAMS params{};
    params.fence_value = value;
    return params;
}

}  // namespace

Ref<Semaphore> Semaphore::import(Ref<Context> context, int descriptor, bool timeline) {
    if (timeline && check_knows_timelines(*context)) return {};
    return create_with(new (std::nothrow) Semaphore(std::move(context), timeline), [&](Semaphore& semaphore) {
        FileDescriptorCopy copy(descriptor);
        if (copy.status()) return copy.status();
        CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC description{};
        description.type = timeline ? CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
                                    : CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
        description.handle.fd = copy.get();
        CUexternalSemaphore handle;
        const CUresult result = driver().cuImportExternalSemaphore(&handle, &description);
        if (!result) copy.give_away();
        return semaphore.own_made(result, handle, "cuImportExternalSemaphore", "fd");
    });
}

Semaphore::~Semaphore() {
    destroy([this](const Driver& driver) {
        if (is_at_rest()) driver.cuDestroyExternalSemaphore(handle());
    });
    while (uses_) delete std::exchange(uses_, uses_->next);
}

bool Semaphore::is_at_rest() const {
    bool at_rest = !unknown_uses_;
    for (const Use* use = uses_; use && at_rest; use = use->next) {
        const CUresult result = poll(CUDA_ERROR_NOT_READY, kReleasePatience,
                                     [&] { return driver().cuEventQuery(use->event->handle()); });
        at_rest = result == CUDA_SUCCESS || loses_context(result);
    }
    return at_rest;
}

ds_status Semaphore::signal(const Stream& stream, uint64_t value) {
    return begin(stream, "cuSignalExternalSemaphoresAsync", [&](const Driver& driver) {
        const CUexternalSemaphore semaphore = handle();
        const CUDA_EXTERNAL_SEMAPHORE_PARAMS params = with_value(value);
        return driver.cuSignalExternalSemaphoresAsync(&semaphore, &params, 1, stream.handle());
    });
}

ds_status Semaphore::wait(const Stream& stream, uint64_t value) {
    return begin(stream, "cuWaitExternalSemaphoresAsync", [&](const Driver& driver) {
        const CUexternalSemaphore semaphore = handle();
        const CUDA_EXTERNAL_SEMAPHORE_PARAMS params = with_value(value);
        return driver.cuWaitExternalSemaphoresAsync(&semaphore, &params, 1, stream.handle());
    });
}

template <class Call>
ds_status Semaphore::begin(const Stream& stream, const char* function, const Call& call) {
    if (const ds_status status = stream.check_device(*context(), "semaphore")) return status;
    bool recorded;
    if (const ds_status status = stream.is_capturing(&recorded)) return status;
    MutexGuard guard(mutex_);
    Use* use = nullptr;
    if (!recorded) {
        if (const ds_status status = find_use(stream, &use)) return status;
    }
    bool begun = false;  // maybe in spite of an error: the caller's context could not be restored
    ds_status status = context()->call(function, "semaphore", [&](const Driver& driver) {
        const CUresult result = call(driver);
        begun = result == CUDA_SUCCESS;
        return result;
    });
    if (!status && !recorded) status = use->event->record(stream);
    unknown_uses_ = unknown_uses_ || (begun && (recorded || status));
    return status;
}

ds_status Semaphore::find_use(const Stream& stream, Use** found) {
    for (*found = uses_; *found; *found = (*found)->next) {
        if ((*found)->stream == stream.raw()) return DS_STATUS_OK;
    }
    const Ref<Event> event = Event::create(context());
    if (!event) return last_status();
    Use* made = new (std::nothrow) Use{event, stream.raw(), uses_};
    if (!made) return fail_no_memory();
    uses_ = *found = made;
    return DS_STATUS_OK;
}

}  // namespace doorstep
