#include "runtime/cuda/imported_memory.h"

#include <new>

#include "runtime/file_descriptor.h"
#include "runtime/status.h"

namespace doorstep {

Ref<ImportedMemory> ImportedMemory::create(Ref<Stream> stream, int descriptor, uint64_t bytes, bool dedicated) {
    const Ref<Context> context = stream->context();
    const Ref<ImportedMemory> memory = check_allocated(new (std::nothrow) ImportedMemory(std::move(stream), bytes));
    if (!memory) return {};
    CurrentContext current(*context);
    if (current.status()) return {};
    if (memory->import(descriptor, dedicated) || memory->map()) {
        const DestructionScope scope(*context);
        if (scope.entered()) memory->let_go();
        return {};
    }
    memory->own(memory->address_);
    return current.restore() ? Ref<ImportedMemory>() : memory;
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
void ImportedMemory::let_go() {
    if (address_ && driver().cuMemFree(address_)) return;
    if (memory_) driver().cuDestroyExternalMemory(memory_);
}

ImportedMemory::~ImportedMemory() {
    if (!disown()) return;
    const DestructionScope scope(*context());
    if (scope.entered() && stream_->finish()) let_go();
}

}  // namespace doorstep
