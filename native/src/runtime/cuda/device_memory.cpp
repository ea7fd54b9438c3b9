#include "runtime/cuda/device_memory.h"

#include <new>

#include "runtime/status.h"

namespace doorstep {

// ---- Pools ----

namespace {

ds_status check_has_pools(const Context& context) {
    if (context.has_memory_pools()) return DS_STATUS_OK;
    return fail(DS_STATUS_DEVICE, "context", "use memory without a pool, or another device",
                "device %d has no memory pools", context.device_index());
}

}  // namespace

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

// ---- Device memory ----

namespace {

ds_status check_not_capturing(const Stream& stream) {
    bool capturing;
    if (const ds_status status = stream.is_capturing(&capturing)) return status;
    if (!capturing) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "stream", "allocate the memory before the capture begins",
                "the stream is being captured, so memory allocated on it would belong to the graph");
}

}  // namespace

DeviceMemory::DeviceMemory(Ref<MemoryPool> pool, Ref<Stream> stream, uint64_t bytes)
    : Resource(kKind, stream->context()), bytes_(bytes), pool_(std::move(pool)), stream_(stream.leak()) {}

DeviceMemory::DeviceMemory(Ref<Context> context, uint64_t raw, uint64_t bytes, ForeignOwner owner)
    : Resource(kKind, std::move(context), raw, owner), bytes_(bytes) {}

Ref<DeviceMemory> DeviceMemory::create(Ref<MemoryPool> pool, Ref<Stream> stream, uint64_t bytes) {
    if (stream->check_device(*pool->context(), "memory")) return {};
    return allocate(std::move(pool), std::move(stream), bytes);
}

Ref<DeviceMemory> DeviceMemory::create_without_pool(Ref<Stream> stream, uint64_t bytes) {
    return allocate({}, std::move(stream), bytes);
}

Ref<DeviceMemory> DeviceMemory::create_on(Ref<Stream> stream, uint64_t bytes) {
    if (!stream->context()->has_memory_pools()) return create_without_pool(std::move(stream), bytes);
    Ref<MemoryPool> pool = MemoryPool::default_of(stream->context());
    return pool ? create(std::move(pool), std::move(stream), bytes) : Ref<DeviceMemory>();
}

Ref<DeviceMemory> DeviceMemory::allocate(Ref<MemoryPool> pool, Ref<Stream> stream, uint64_t bytes) {
    if (check_not_capturing(*stream)) return {};
    return create_with(new (std::nothrow) DeviceMemory(pool, stream, bytes), [&](DeviceMemory& memory) {
        CUdeviceptr address;
        const CUresult result =
            pool ? driver().cuMemAllocFromPoolAsync(&address, bytes, pool->handle(), stream->handle())
                 : driver().cuMemAlloc(&address, bytes);
        const char* function = pool ? "cuMemAllocFromPoolAsync" : "cuMemAlloc";
        if (result) return stream->context()->fail_allocation(result, function, bytes);
        memory.own(address);
        return DS_STATUS_OK;
    });
}

Ref<DeviceMemory> DeviceMemory::borrow(Ref<Context> context, uint64_t raw, uint64_t bytes, ForeignOwner owner) {
    if (!owner.release) {
        if (Ref<DeviceMemory> known = find_resource<DeviceMemory>(context->device_index(), raw)) return known;
    }
    int device;
    const ds_status status = context->call("cuPointerGetAttribute", "raw", [&](const Driver& driver) {
        return driver.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, raw);
    });
    if (status) return {};
    if (device != context->device_index()) {
        fail(DS_STATUS_INVALID_ARGUMENT, "raw", "pass an address of the context's device",
             "0x%lx is memory of device %d, the context is that of device %d", raw, device, context->device_index());
        return {};
    }
    return check_allocated(new (std::nothrow) DeviceMemory(std::move(context), raw, bytes, owner));
}

DeviceMemory::~DeviceMemory() {
    const Ref<Stream> stream = Ref<Stream>::adopt(stream_.load());
    destroy([&](const Driver&) { free_on(*stream); });
}

void DeviceMemory::free_on(const Stream& stream) const {
    // A graph being captured from the stream may use the memory whenever it is launched: leak it.
    if (stream.may_be_capturing()) return;
    // "Per thread" may be another thread's stream than the one that used the memory.
    if (stream.handle() == CU_STREAM_PER_THREAD && context()->wait_for_everything()) return;
    if (pool_) {
        driver().cuMemFreeAsync(address(), stream.handle());
    } else if (driver().cuStreamSynchronize(stream.handle()) == CUDA_SUCCESS) {
        driver().cuMemFree(address());
    }
}

ds_status DeviceMemory::set_stream(Ref<Stream> stream) {
    if (ownership() != DS_OWNERSHIP_OWNED) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "memory", "set the stream on its owner",
                    "doorstep does not own the memory, so it does not free it");
    }
    if (const ds_status status = stream->check_device(*context(), "memory")) return status;
    Ref<Stream>::adopt(stream_.exchange(stream.leak()));
    return DS_STATUS_OK;
}

// ---- Page-locked host memory ----

PinnedMemory::PinnedMemory(Ref<Context> context, uint64_t bytes)
    : Resource(kKind, std::move(context)), bytes_(bytes) {}

Ref<PinnedMemory> PinnedMemory::create(Ref<Context> context, uint64_t bytes) {
    return create_with(new (std::nothrow) PinnedMemory(std::move(context), bytes), [](PinnedMemory& memory) {
        const unsigned flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
        if (const CUresult result = driver().cuMemHostAlloc(&memory.data_, memory.bytes_, flags)) {
            const ds_status status = fail_driver(result, "cuMemHostAlloc");
            add_detail("; requested %lu bytes", memory.bytes_);
            return status;
        }
        CUdeviceptr address;
        if (const CUresult result = driver().cuMemHostGetDevicePointer(&address, memory.data_, 0)) {
            const ds_status status = fail_driver(result, "cuMemHostGetDevicePointer");
            driver().cuMemFreeHost(memory.data_);
            return status;
        }
        memory.own(address);
        return DS_STATUS_OK;
    });
}

PinnedMemory::~PinnedMemory() {
    destroy([this](const Driver& driver) { driver.cuMemFreeHost(data_); });
}

}  // namespace doorstep
