// Device memory, the pools that it is allocated from in the order of streams, and page-locked host memory that the
// devices can access.
#pragma once

#include <atomic>

#include "runtime/cuda/context.h"
#include "runtime/cuda/stream.h"

namespace doorstep {

// ---- Pools ----

class MemoryPool final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_MEMORY_POOL;

    // The device's default pool, which is not owned. Null, with the thread's error set, on failure; DEVICE if the
    // device has no memory pools (Context::has_memory_pools()).
    static Ref<MemoryPool> default_of(Ref<Context> context);

    CUmemoryPool handle() const { return reinterpret_cast<CUmemoryPool>(raw()); }

private:
    MemoryPool(Ref<Context> context, uint64_t raw, ForeignOwner owner);
};

// ---- Device memory ----

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
    void free_on(const Stream& stream) const;

    uint64_t bytes_;
    Ref<MemoryPool> pool_;  // null: without pool
    std::atomic<Stream*> stream_{nullptr};  // holds a reference; null: not owned
};

// ---- Page-locked host memory ----

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
