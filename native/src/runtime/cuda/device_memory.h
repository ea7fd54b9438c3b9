// Device memory.
#pragma once

#include <atomic>

#include "runtime/cuda/memory_pool.h"
#include "runtime/cuda/stream.h"

namespace doorstep {

class DeviceMemory final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_DEVICE_MEMORY;

    // Allocates memory from a pool, for work on the stream, and frees it there. Its contents are undefined. Null, with
    // the thread's error set, on failure: OUT_OF_MEMORY with the amounts, INVALID_ARGUMENT if the stream is of another
    // context or is being captured.
    static Ref<DeviceMemory> create(Ref<MemoryPool> pool, Ref<Stream> stream, uint64_t bytes);

    // For a device without memory pools: freed after waiting for the stream.
    static Ref<DeviceMemory> create_without_pool(Ref<Stream> stream, uint64_t bytes);

    // Uses the device's default pool if it has one.
    static Ref<DeviceMemory> create_on(Ref<Stream> stream, uint64_t bytes);

    static Ref<DeviceMemory> borrow(Ref<Context> context, uint64_t raw, uint64_t bytes, ForeignOwner owner = {});
    ~DeviceMemory();

    CUdeviceptr address() const { return raw(); }
    uint64_t bytes() const override { return bytes_; }

    // Changes the stream on which the memory is freed.
    ds_status set_stream(Ref<Stream> stream);

private:
    DeviceMemory(Ref<MemoryPool> pool, Ref<Stream> stream, uint64_t bytes);
    DeviceMemory(Ref<Context> context, uint64_t raw, uint64_t bytes, ForeignOwner owner);
    static Ref<DeviceMemory> allocate(Ref<MemoryPool> pool, Ref<Stream> stream, uint64_t bytes);
    void free_on(CUstream stream) const;

    uint64_t bytes_;
    Ref<MemoryPool> pool_;  // null: without pool
    std::atomic<Stream*> stream_{nullptr};  // holds a reference; null: not owned
};

}  // namespace doorstep
