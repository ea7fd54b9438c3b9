// The driver's functions for memory.
#include <string.h>

#include <algorithm>
#include <memory>

#include "driver.h"
#include "functions.h"

using namespace stand_in;

// The parameters of a copy of rows, as NVIDIA documents them.
struct CUDA_MEMCPY2D {
    size_t source_x, source_y;
    int source_kind;
    const void* source_host;
    uint64_t source;
    void* source_array;
    size_t source_pitch;
    size_t target_x, target_y;
    int target_kind;
    void* target_host;
    uint64_t target;
    void* target_array;
    size_t target_pitch;
    size_t row_bytes, rows;
};

namespace {

struct Rows {
    uint64_t first, pitch;
    uint64_t row(size_t index) const { return first + index * pitch; }
};

// Runs all pending frees before memory counts as exhausted.
AllocationRef allocate(int device, size_t bytes) {
    Driver& state = driver();
    const int64_t most = state.settings.memory_bytes - static_cast<int64_t>(bytes);
    if (state.used_bytes(device) > most) execute_everything();
    if (state.used_bytes(device) > most) return nullptr;
    return map_memory(bytes, device, false);
}

// The live memory that starts at the address; null after a violation.
AllocationRef find_begin(const char* function, uint64_t address) {
    const AllocationRef allocation = find_allocation(address);
    if (allocation && allocation->address == address && !allocation->freeing) return allocation;
    const char* reason = !allocation           ? "is no memory of the driver"
                         : allocation->freeing ? "was freed"
                                               : "is in the middle";
    driver().report.violation(text("%s: %#lx %s", function, address, reason));
    return nullptr;
}

// cuMemFree and cuMemFreeHost wait for all work that uses the memory.
void wait_for_uses(Allocation& allocation) {
    const std::vector<NotedAccess> uses = allocation.accesses;
    for (const NotedAccess& use : uses) execute(use.operation);
}

bool is_driver_memory(uint64_t address) {
    const AllocationRef allocation = find_allocation(address);
    return allocation && allocation->contains(address, 0);
}

bool is_on_device(uint64_t address) {
    const AllocationRef allocation = find_allocation(address);
    return allocation && !allocation->pinned && allocation->contains(address, 0);
}

// What a copy from pinned memory is to find there when it runs: the host must not write to it before.
struct PinnedSource {
    std::string what;
    uint64_t address;
    size_t bytes;
    std::vector<char> before{};

    // Nothing is known where earlier work has yet to write it.
    void note(const OperationRef& copy) {
        before.clear();
        for (const NotedAccess& other : find_allocation(address)->accesses)
            if (!other.operation->done && other.operation != copy && other.access.writes) return;
        const char* source = reinterpret_cast<const char*>(address);
        before.assign(source, source + bytes);
    }
    void check() const {
        if (!before.empty() && memcmp(before.data(), reinterpret_cast<const void*>(address), bytes) != 0)
            driver().report.violation(what + ": the host wrote to the pinned memory before the copy ran");
    }
};

}  // namespace

extern "C" {

int cuDeviceGetDefaultMemPool(uint64_t* pool, int device) {
    return call("cuDeviceGetDefaultMemPool", [&] {
        if (device < 0 || device >= driver().settings.devices) return kInvalidDevice;
        *pool = driver().default_pools[static_cast<size_t>(device)];
        return kSuccess;
    });
}

int cuMemAllocFromPoolAsync(uint64_t* address, size_t bytes, uint64_t pool_handle, uint64_t stream_handle) {
    return call("cuMemAllocFromPoolAsync", [&]() -> int {
        Stream* stream = find_stream("cuMemAllocFromPoolAsync", stream_handle);
        const std::shared_ptr<Pool> pool = find("cuMemAllocFromPoolAsync", driver().pools, pool_handle);
        if (!stream || !pool) return kInvalidHandle;
        if (bytes == 0) return refuse(kInvalidValue, "cuMemAllocFromPoolAsync: 0 bytes");
        if (pool->device != stream->context->device)
            return refuse(kInvalidValue, "cuMemAllocFromPoolAsync: pool and stream are of different devices");
        if (stream->capture) return refuse_in_capture(*stream->capture);
        const AllocationRef allocation = allocate(pool->device, bytes);
        if (!allocation) return kOutOfMemory;
        allocation->pool = pool_handle;
        Task task{text("allocating %#lx", allocation->address)};
        task.begun = [allocation](const OperationRef& operation) { allocation->made = operation; };
        driver().memory[allocation->address] = allocation;
        *address = allocation->address;
        return begin(*stream, std::move(task));
    });
}

int cuMemFreeAsync(uint64_t address, uint64_t stream_handle) {
    return call("cuMemFreeAsync", [&]() -> int {
        Stream* stream = find_stream("cuMemFreeAsync", stream_handle);
        const AllocationRef allocation = find_begin("cuMemFreeAsync", address);
        if (!stream || !allocation) return kInvalidHandle;
        if (!allocation->pool) return refuse(kInvalidValue, "cuMemFreeAsync: the memory is not from a pool");
        if (stream->capture) return refuse_in_capture(*stream->capture);
        allocation->freeing = true;
        Task task{text("freeing %#lx", address), {{allocation, 0, allocation->bytes, true}}};
        task.freeing = true;
        task.run = [allocation] { forget(allocation); };
        return begin(*stream, std::move(task));
    });
}

int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
    return call("cuMemAlloc", [&]() -> int {
        const Context* context = current_context("cuMemAlloc");
        if (!context) return kInvalidContext;
        if (bytes == 0) return refuse(kInvalidValue, "cuMemAlloc: 0 bytes");
        if (const int code = refuse_beside_capture()) return code;
        const AllocationRef allocation = allocate(context->device, bytes);
        if (!allocation) return kOutOfMemory;
        driver().memory[allocation->address] = allocation;
        *address = allocation->address;
        return kSuccess;
    });
}

int cuMemFree_v2(uint64_t address) {
    return call("cuMemFree", [&]() -> int {
        const AllocationRef allocation = find_begin("cuMemFree", address);
        if (!allocation) return kInvalidValue;
        if (allocation->pinned) return refuse(kInvalidValue, "cuMemFree: the memory is the host's");
        if (const int code = refuse_beside_capture()) return code;
        if (allocation->shared) return free_external_buffer(allocation);
        wait_for_uses(*allocation);
        allocation->freeing = true;
        forget(allocation);
        return kSuccess;
    });
}

int cuMemHostAlloc(void** memory, size_t bytes, uint32_t flags) {
    return call("cuMemHostAlloc", [&]() -> int {
        const Context* context = current_context("cuMemHostAlloc");
        if (!context) return kInvalidContext;
        if (bytes == 0) return refuse(kInvalidValue, "cuMemHostAlloc: 0 bytes");
        if (flags & ~uint32_t{kPortable | kDeviceMap})
            return refuse(kInvalidValue, text("cuMemHostAlloc: flags %u", flags));
        if (const int code = refuse_beside_capture()) return code;
        const AllocationRef allocation = map_memory(bytes, context->device, true);
        if (!allocation) return kOutOfMemory;
        driver().memory[allocation->address] = allocation;
        *memory = reinterpret_cast<void*>(allocation->address);
        return kSuccess;
    });
}

int cuMemHostGetDevicePointer_v2(uint64_t* address, void* memory, uint32_t flags) {
    return call("cuMemHostGetDevicePointer", [&]() -> int {
        const AllocationRef allocation = find_allocation(reinterpret_cast<uint64_t>(memory));
        if (flags) return refuse(kInvalidValue, "cuMemHostGetDevicePointer: flags must be 0");
        if (!allocation || !allocation->pinned || allocation->freeing)
            return refuse(kInvalidValue, "cuMemHostGetDevicePointer: this is no pinned memory");
        *address = reinterpret_cast<uint64_t>(memory);
        return kSuccess;
    });
}

int cuMemFreeHost(void* memory) {
    return call("cuMemFreeHost", [&]() -> int {
        const AllocationRef allocation = find_begin("cuMemFreeHost", reinterpret_cast<uint64_t>(memory));
        if (!allocation) return kInvalidValue;
        if (!allocation->pinned) return refuse(kInvalidValue, "cuMemFreeHost: the memory is a device's");
        if (const int code = refuse_beside_capture()) return code;
        check_unused("cuMemFreeHost", *allocation);
        wait_for_uses(*allocation);
        allocation->freeing = true;
        forget(allocation);
        return kSuccess;
    });
}

int cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
    return call("cuMemGetInfo", [&] {
        const Context* context = current_context("cuMemGetInfo");
        if (!context) return kInvalidContext;
        *total_bytes = static_cast<size_t>(driver().settings.memory_bytes);
        *free_bytes = *total_bytes - static_cast<size_t>(driver().used_bytes(context->device));
        return kSuccess;
    });
}

// For memory unknown to the driver the code is the result, not a violation.
int cuPointerGetAttribute(void* value, int attribute, uint64_t address) {
    return call("cuPointerGetAttribute", [&]() -> int {
        const AllocationRef allocation = find_allocation(address);
        if (!allocation || allocation->freeing || !allocation->contains(address, 1)) return kInvalidValue;
        if (attribute != kPointerDeviceOrdinal)
            return refuse(kInvalidValue, text("cuPointerGetAttribute: attribute %d is unknown", attribute));
        *static_cast<int*>(value) = allocation->device;
        return kSuccess;
    });
}

// Pageable host memory is read before the call returns, or has been written when it returns, as with the driver's
// staging buffer; it is not allowed in a capture.
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, uint64_t stream_handle) {
    return call("cuMemcpyAsync", [&]() -> int {
        Stream* stream = find_stream("cuMemcpyAsync", stream_handle);
        if (!stream) return kInvalidHandle;
        const bool from_driver = is_driver_memory(from), to_driver = is_driver_memory(to);
        if (stream->capture && !(from_driver && to_driver))
            return refuse(refuse_in_capture(*stream->capture), "cuMemcpyAsync: pageable memory in a capture");
        Task task{text("copying %lu bytes from %#lx to %#lx", bytes, from, to)};
        for (const bool writes : {false, true}) {
            if (!(writes ? to_driver : from_driver)) continue;
            task.accesses.push_back(access_to(task.what, writes ? to : from, bytes, writes, kAnyDevice));
            if (!task.accesses.back().allocation) return kInvalidValue;
        }
        if (is_on_device(from) != is_on_device(to)) driver().report.count_bytes(bytes);
        if (from_driver && is_on_device(to) && !is_on_device(from)) {
            const auto source = std::make_shared<PinnedSource>(PinnedSource{task.what, from, bytes});
            task.begun = [source](const OperationRef& operation) { source->note(operation); };
            task.run = [=] {
                source->check();
                memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
            };
        } else if (from_driver) {
            task.run = [=] { memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); };
        } else {
            const char* source = reinterpret_cast<const char*>(from);
            task.run = [to, staged = std::vector<char>(source, source + bytes)] {
                memcpy(reinterpret_cast<void*>(to), staged.data(), staged.size());
            };
        }
        const int code = begin(*stream, std::move(task));
        if (code == kSuccess && !to_driver) execute(stream->tail);
        return code;
    });
}

int cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, uint64_t stream_handle) {
    return call("cuMemcpy2DAsync", [&]() -> int {
        Stream* stream = find_stream("cuMemcpy2DAsync", stream_handle);
        if (!stream) return kInvalidHandle;
        const Rows from{copy->source + copy->source_y * copy->source_pitch + copy->source_x, copy->source_pitch};
        const Rows to{copy->target + copy->target_y * copy->target_pitch + copy->target_x, copy->target_pitch};
        if (copy->source_kind != kMemoryUnified || copy->target_kind != kMemoryUnified)
            return refuse(kInvalidValue, "cuMemcpy2DAsync: only unified addresses are known");
        if (std::max(from.pitch, to.pitch) > kMostPitch)
            return refuse(kInvalidValue, "cuMemcpy2DAsync: rows are too far apart");
        if (copy->row_bytes > from.pitch || copy->row_bytes > to.pitch)
            return refuse(kInvalidValue, "cuMemcpy2DAsync: rows overlap");
        const bool from_driver = is_driver_memory(from.first), to_driver = is_driver_memory(to.first);
        if (!from_driver || !to_driver) return refuse(kInvalidValue, "cuMemcpy2DAsync: pageable memory");
        Task task{text("copying %lu rows from %#lx to %#lx", copy->rows, from.first, to.first)};
        for (size_t row = 0; row < copy->rows; ++row) {
            for (const bool writes : {false, true}) {
                const uint64_t first = (writes ? to : from).row(row);
                task.accesses.push_back(access_to(task.what, first, copy->row_bytes, writes, kAnyDevice));
                if (!task.accesses.back().allocation) return kInvalidValue;
            }
        }
        task.run = [from, to, bytes = copy->row_bytes, rows = copy->rows] {
            for (size_t row = 0; row < rows; ++row)
                memcpy(reinterpret_cast<void*>(to.row(row)), reinterpret_cast<const void*>(from.row(row)), bytes);
        };
        return begin(*stream, std::move(task));
    });
}

int cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, uint64_t stream_handle) {
    return call("cuMemsetD8Async", [&]() -> int {
        Stream* stream = find_stream("cuMemsetD8Async", stream_handle);
        if (!stream) return kInvalidHandle;
        Task task{text("filling %lu bytes at %#lx", bytes, address)};
        task.accesses = {access_to(task.what, address, bytes, true, stream->context->device)};
        if (!task.accesses[0].allocation) return kInvalidValue;
        task.run = [=] { memset(reinterpret_cast<void*>(address), value, bytes); };
        return begin(*stream, std::move(task));
    });
}

}  // extern "C"
