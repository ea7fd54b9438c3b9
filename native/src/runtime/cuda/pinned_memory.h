// Page-locked host memory that the devices can access.
#pragma once

#include "runtime/cuda/context.h"

namespace doorstep {

class PinnedMemory final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_PINNED_MEMORY;

    // Its contents are undefined. Null, with the thread's error set, on failure. Before releasing it, wait for the work
    // that uses it.
    static Ref<PinnedMemory> create(Ref<Context> context, uint64_t bytes);
    ~PinnedMemory();

    CUdeviceptr address() const { return raw(); }  // for the device
    void* data() const { return data_; }           // for the CPU
    uint64_t bytes() const override { return bytes_; }
    uint64_t host() const override { return reinterpret_cast<uint64_t>(data_); }

private:
    PinnedMemory(Ref<Context> context, uint64_t bytes);

    void* data_ = nullptr;
    uint64_t bytes_;
};

}  // namespace doorstep
