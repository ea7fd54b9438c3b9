// Device memory that another API of the process, such as Vulkan, can import through a file descriptor.
#pragma once

#include "runtime/cuda/stream.h"

namespace doorstep {

class ExportedMemory final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_EXPORTED_MEMORY;

    // At least `bytes`, rounded up to the device's granularity; contents are undefined. The memory is freed after the
    // work of the stream (see Stream::finish()); importers keep the bytes. Null, with the thread's error set, on
    // failure: OUT_OF_MEMORY with the amounts, DEVICE if the device cannot export memory.
    static Ref<ExportedMemory> create(Ref<Stream> stream, uint64_t bytes);
    ~ExportedMemory();

    CUdeviceptr address() const { return address_; }
    uint64_t bytes() const override { return bytes_; }

    // A new file descriptor, which the caller owns. It is closed when the process executes another program.
    ds_status export_descriptor(int* descriptor) const;

private:
    explicit ExportedMemory(Ref<Stream> stream) : Resource(kKind, stream->context()), stream_(std::move(stream)) {}
    ds_status take(uint64_t bytes);
    void give_back();

    const Ref<Stream> stream_;
    uint64_t bytes_ = 0;
    CUmemGenericAllocationHandle allocation_ = 0;
    CUdeviceptr address_ = 0;
    bool mapped_ = false;
};

}  // namespace doorstep
