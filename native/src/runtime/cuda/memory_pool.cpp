#include "runtime/cuda/memory_pool.h"

#include <new>

#include "runtime/status.h"

namespace doorstep {
namespace {

ds_status check_has_pools(const Context& context) {
    if (context.has_memory_pools()) return DS_STATUS_OK;
    return fail(DS_STATUS_DEVICE, "context", "use memory without a pool, or another device",
                "device %d has no memory pools", context.device_index());
}

}  // namespace

MemoryPool::MemoryPool(Ref<Context> context) : Resource(kKind, std::move(context)) {}

MemoryPool::MemoryPool(Ref<Context> context, uint64_t raw, ForeignOwner owner)
    : Resource(kKind, std::move(context), raw, owner) {}

Ref<MemoryPool> MemoryPool::default_of(Ref<Context> context) {
    if (check_has_pools(*context)) return {};
    CUmemoryPool handle;
    const ds_status status = context->call("cuDeviceGetDefaultMemPool", "", [&](const Driver& driver) {
        return driver.cuDeviceGetDefaultMemPool(&handle, context->device());
    });
    if (status) return {};
    const uint64_t raw = reinterpret_cast<uint64_t>(handle);
    return check_allocated(new (std::nothrow) MemoryPool(std::move(context), raw, ForeignOwner()));
}

Ref<MemoryPool> MemoryPool::create(Ref<Context> context) {
    if (check_has_pools(*context)) return {};
    const Ref<MemoryPool> pool = check_allocated(new (std::nothrow) MemoryPool(context));
    if (!pool) return {};
    CurrentContext current(*context);
    if (current.status()) return {};
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, context->device()};
    CUmemoryPool handle;
    if (const CUresult result = driver().cuMemPoolCreate(&handle, &properties)) {
        fail_driver(result, "cuMemPoolCreate");
        return {};
    }
    pool->own(handle);
    return current.restore() ? Ref<MemoryPool>() : pool;
}

MemoryPool::~MemoryPool() {
    if (!disown()) return;
    const DestructionScope scope(*context());
    if (scope.entered()) driver().cuMemPoolDestroy(handle());
}

ds_status MemoryPool::trim(uint64_t keep_bytes) const {
    return context()->call("cuMemPoolTrimTo", "pool",
                           [&](const Driver& driver) { return driver.cuMemPoolTrimTo(handle(), keep_bytes); });
}

}  // namespace doorstep
