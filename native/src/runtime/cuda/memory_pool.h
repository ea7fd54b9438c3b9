// Pools that device memory is allocated from, in the order of streams.
#pragma once

#include "runtime/cuda/context.h"

namespace doorstep {

class MemoryPool final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_MEMORY_POOL;

    // The device's default pool, which is not owned. Null, with the thread's error set, on failure; DEVICE if the
    // device has no memory pools (Context::has_memory_pools()).
    static Ref<MemoryPool> default_of(Ref<Context> context);
    static Ref<MemoryPool> create(Ref<Context> context);
    ~MemoryPool();

    CUmemoryPool handle() const { return reinterpret_cast<CUmemoryPool>(raw()); }

    // Returns the pool's free memory beyond keep_bytes to the device.
    ds_status trim(uint64_t keep_bytes) const;

private:
    explicit MemoryPool(Ref<Context> context);
    MemoryPool(Ref<Context> context, uint64_t raw, ForeignOwner owner);
};

}  // namespace doorstep
