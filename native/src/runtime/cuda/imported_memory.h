// Memory that another API of the process, such as Vulkan, has allocated and exported as a file descriptor.
#pragma once

#include "runtime/cuda/stream.h"

namespace doorstep {

class ImportedMemory final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_IMPORTED_MEMORY;

    // Imports the memory of a file descriptor (VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT), which stays the caller's.
    // bytes: its size in the other API. dedicated: whether it was allocated for a single buffer or image. The memory is
    // released after the work of the stream (see Stream::finish()). Null, with the thread's error set, on failure.
    static Ref<ImportedMemory> create(Ref<Stream> stream, int descriptor, uint64_t bytes, bool dedicated);
    ~ImportedMemory();

    CUdeviceptr address() const { return address_; }
    uint64_t bytes() const override { return bytes_; }

private:
    ImportedMemory(Ref<Stream> stream, uint64_t bytes)
        : Resource(kKind, stream->context()), stream_(std::move(stream)), bytes_(bytes) {}
    ds_status import(int descriptor, bool dedicated);
    ds_status map();
    void let_go();

    const Ref<Stream> stream_;
    const uint64_t bytes_;
    CUexternalMemory memory_ = nullptr;
    CUdeviceptr address_ = 0;
};

}  // namespace doorstep
