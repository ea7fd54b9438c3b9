// The memory of devices and of the host, and the driver's functions for it.
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>

#include "functions.h"

namespace stand_in {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kAlignment = 256;  // of allocations
constexpr int kReserving = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

std::map<uint64_t, AllocationRef>& allocations() {
    static auto* map = new std::map<uint64_t, AllocationRef>;
    return *map;
}

void protect(const Allocation& allocation, int protection) {
    mprotect(reinterpret_cast<void*>(allocation.mapped), allocation.mapped_bytes, protection);
}

}  // namespace

AllocationRef map_memory(uint64_t bytes, int device, bool pinned) {
    const uint64_t mapped_bytes = (bytes + kPage - 1) / kPage * kPage;
    void* reserved = mmap(nullptr, mapped_bytes + 2 * kPage, PROT_NONE, kReserving, -1, 0);
    if (reserved == MAP_FAILED) return nullptr;
    const uint64_t mapped = reinterpret_cast<uint64_t>(reserved) + kPage;
    // As close to the end as the alignment allows, so that overruns hit the guard page
    const uint64_t address = mapped + (mapped_bytes - bytes) / kAlignment * kAlignment;
    const auto allocation = std::make_shared<Allocation>(
        Allocation{.address = address, .bytes = bytes, .device = device, .pinned = pinned, .mapped = mapped,
                   .mapped_bytes = mapped_bytes});
    protect(*allocation, PROT_READ | PROT_WRITE);
    memset(reinterpret_cast<void*>(allocation->mapped), kGarbage, mapped_bytes);
    if (!pinned) protect(*allocation, PROT_NONE);
    allocations()[allocation->address] = allocation;
    return allocation;
}

void unmap_memory(Allocation& allocation) {
    allocation.freed = true;
    mmap(reinterpret_cast<void*>(allocation.mapped), allocation.mapped_bytes, PROT_NONE, kReserving | MAP_FIXED, -1, 0);
}

void forget(const AllocationRef& allocation) {
    unmap_memory(*allocation);
    driver().memory.erase(allocation->address);
}

void check_unused(const Allocation& allocation) {
    for (const NotedAccess& use : allocation.accesses) {
        if (use.operation->done) continue;
        refuse(0, text("frees memory that %s still uses", use.operation->what.c_str()));
    }
}

uint64_t reserve_addresses(uint64_t bytes, uint64_t alignment) {
    void* reserved = mmap(nullptr, bytes + 2 * alignment, PROT_NONE, kReserving, -1, 0);
    return reserved == MAP_FAILED ? 0 : (reinterpret_cast<uint64_t>(reserved) / alignment + 1) * alignment;
}

AllocationRef map_file(int descriptor, uint64_t bytes, int device, uint64_t address) {
    const uint64_t mapped_bytes = (bytes + kPage - 1) / kPage * kPage;
    if (!address) address = reserve_addresses(mapped_bytes, kPage);
    void* wanted = reinterpret_cast<void*>(address);
    if (mmap(wanted, mapped_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, descriptor, 0) == MAP_FAILED) return nullptr;
    const auto allocation = std::make_shared<Allocation>(
        Allocation{.address = address, .bytes = bytes, .device = device, .shared = true, .mapped = address,
                   .mapped_bytes = mapped_bytes});
    allocations()[address] = allocation;
    return allocation;
}

AllocationRef find_allocation(uint64_t address) {
    auto after = allocations().upper_bound(address);
    if (after == allocations().begin()) return nullptr;
    const AllocationRef& allocation = std::prev(after)->second;
    return address < allocation->mapped + allocation->mapped_bytes + kPage ? allocation : nullptr;
}

Access access_to(const std::string& what, uint64_t address, uint64_t count, bool writes, int device) {
    const AllocationRef allocation = find_allocation(address);
    std::string problem;
    if (!allocation) problem = "is not memory of a device";
    else if (!allocation->contains(address, count)) problem = text("ends outside its %lu bytes", allocation->bytes);
    else if (allocation->freeing) problem = "was freed";
    else if (!allocation->accessible) problem = "may not be touched yet";
    else if (!allocation->pinned && device != kAnyDevice && allocation->device != device)
        problem = text("is on device %d", allocation->device);
    if (!problem.empty()) {
        driver().report.violation(text("%s: %lu bytes at %#lx: it %s", what.c_str(), count, address, problem.c_str()));
        return {};
    }
    return {allocation, address - allocation->address, address - allocation->address + count, writes};
}

bool check_alive(const Operation& operation, const Access& access) {
    const Allocation& allocation = *access.allocation;
    const bool exists = !allocation.made || allocation.made->done || allocation.made.get() == &operation;
    if (exists && !allocation.freed) return true;
    driver().report.violation(text("%s runs %s %#lx %s", operation.what.c_str(), exists ? "after" : "before",
                                   allocation.address, exists ? "was freed" : "exists"));
    return false;
}

OpenMemory::OpenMemory(const std::vector<Access>& accesses) {
    for (const Access& access : accesses) {
        if (access.allocation->pinned || access.allocation->freed) continue;
        protect(*access.allocation, PROT_READ | PROT_WRITE);
        opened_.push_back(access.allocation);
    }
}

OpenMemory::~OpenMemory() {
    for (const AllocationRef& allocation : opened_) protect(*allocation, PROT_NONE);
}

}  // namespace stand_in

// ---- The driver's functions

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
AllocationRef find_begin(uint64_t address) {
    const AllocationRef allocation = find_allocation(address);
    if (allocation && allocation->address == address && !allocation->freeing) return allocation;
    const bool freed = allocation && allocation->freeing;
    refuse(0, text("%#lx %s", address, freed ? "was freed" : "is no begin of memory of the driver"));
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

bool is_on_device(uint64_t address) { return is_driver_memory(address) && !find_allocation(address)->pinned; }

int keep(const AllocationRef& allocation, uint64_t* address) {
    if (!allocation) return kOutOfMemory;
    driver().memory[allocation->address] = allocation;
    *address = allocation->address;
    return kSuccess;
}

int free_now(const AllocationRef& allocation) {
    wait_for_uses(*allocation);
    allocation->freeing = true;
    forget(allocation);
    return kSuccess;
}

// Adds the access of the part of a copy that is memory of the driver.
bool add_access(Task& task, uint64_t address, size_t bytes, bool writes) {
    task.accesses.push_back(access_to(task.what, address, bytes, writes, kAnyDevice));
    return task.accesses.back().allocation != nullptr;
}

void copy_bytes(uint64_t to, uint64_t from, size_t bytes) {
    memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
}

}  // namespace

STAND_IN(cuMemAllocFromPoolAsync, 11020, (uint64_t* address, size_t bytes, uint64_t pool_handle, uint64_t handle), {
    FIND_STREAM(stream, handle);
    FIND(pool, pools, pool_handle);
    REFUSE_IF(bytes == 0, kInvalidValue, "0 bytes");
    REFUSE_IF(pool->device != stream->context->device, kInvalidValue, "pool and stream are of different devices");
    if (stream->capture) return refuse_in_capture(*stream->capture);
    const AllocationRef allocation = allocate(pool->device, bytes);
    TRY(keep(allocation, address));
    allocation->pool = pool_handle;
    Task task{text("allocating %#lx", allocation->address)};
    task.begun = [allocation](const OperationRef& operation) { allocation->made = operation; };
    return begin(*stream, std::move(task));
})

STAND_IN(cuMemFreeAsync, 11020, (uint64_t address, uint64_t stream_handle), {
    FIND_STREAM(stream, stream_handle);
    const AllocationRef allocation = find_begin(address);
    if (!allocation) return kInvalidHandle;
    REFUSE_IF(!allocation->pool, kInvalidValue, "the memory is not from a pool");
    if (stream->capture) return refuse_in_capture(*stream->capture);
    allocation->freeing = true;
    Task task{text("freeing %#lx", address), {{allocation, 0, allocation->bytes, true}}};
    task.freeing = true;
    task.run = [allocation] { forget(allocation); };
    return begin(*stream, std::move(task));
})

STAND_IN(cuMemAlloc_v2, 3020, (uint64_t* address, size_t bytes), {
    FIND_CONTEXT(context);
    REFUSE_IF(bytes == 0, kInvalidValue, "0 bytes");
    TRY(refuse_beside_capture());
    return keep(allocate(context->device, bytes), address);
})

STAND_IN(cuMemFree_v2, 3020, (uint64_t address), {
    const AllocationRef allocation = find_begin(address);
    if (!allocation) return kInvalidValue;
    REFUSE_IF(allocation->pinned, kInvalidValue, "the memory is the host's");
    TRY(refuse_beside_capture());
    return allocation->shared ? free_external_buffer(allocation) : free_now(allocation);
})

STAND_IN(cuMemHostAlloc, 2020, (void** memory, size_t bytes, uint32_t), {
    FIND_CONTEXT(context);
    REFUSE_IF(!bytes, kInvalidValue, "0 bytes");
    TRY(refuse_beside_capture());
    return keep(map_memory(bytes, context->device, true), reinterpret_cast<uint64_t*>(memory));
})

STAND_IN(cuMemHostGetDevicePointer_v2, 3020, (uint64_t* address, void* memory, uint32_t), {
    const AllocationRef allocation = find_allocation(reinterpret_cast<uint64_t>(memory));
    REFUSE_IF(!allocation || !allocation->pinned || allocation->freeing, kInvalidValue, "this is no pinned memory");
    *address = reinterpret_cast<uint64_t>(memory);
})

STAND_IN(cuMemFreeHost, 2000, (void* memory), {
    const AllocationRef allocation = find_begin(reinterpret_cast<uint64_t>(memory));
    if (!allocation) return kInvalidValue;
    REFUSE_IF(!allocation->pinned, kInvalidValue, "the memory is a device's");
    TRY(refuse_beside_capture());
    check_unused(*allocation);
    return free_now(allocation);
})

STAND_IN(cuMemGetInfo_v2, 3020, (size_t* free_bytes, size_t* total_bytes), {
    FIND_CONTEXT(context);
    *total_bytes = static_cast<size_t>(driver().settings.memory_bytes);
    *free_bytes = *total_bytes - static_cast<size_t>(driver().used_bytes(context->device));
})

// For memory unknown to the driver the code is the result, not a violation.
STAND_IN(cuPointerGetAttribute, 4000, (void* value, int attribute, uint64_t address), {
    const AllocationRef allocation = find_allocation(address);
    if (!allocation || allocation->freeing || !allocation->contains(address, 1)) return kInvalidValue;
    REFUSE_IF(attribute != kPointerDeviceOrdinal, kInvalidValue, "attribute %d is unknown", attribute);
    *static_cast<int*>(value) = allocation->device;
})

// Pageable host memory is read before the call returns, or has been written when it returns, as with the driver's
// staging buffer; it is not allowed in a capture.
STAND_IN(cuMemcpyAsync, 4000, (uint64_t to, uint64_t from, size_t bytes, uint64_t stream_handle), {
    FIND_STREAM(stream, stream_handle);
    const bool from_driver = is_driver_memory(from), to_driver = is_driver_memory(to);
    if (stream->capture && !(from_driver && to_driver))
        return refuse(refuse_in_capture(*stream->capture), "pageable memory in a capture");
    Task task{text("copying %lu bytes from %#lx to %#lx", bytes, from, to)};
    if (from_driver && !add_access(task, from, bytes, false)) return kInvalidValue;
    if (to_driver && !add_access(task, to, bytes, true)) return kInvalidValue;
    if (is_on_device(from) != is_on_device(to)) driver().report.bus_bytes += static_cast<int64_t>(bytes);
    if (from_driver) {
        task.run = [=] { copy_bytes(to, from, bytes); };
    } else {
        const char* source = reinterpret_cast<const char*>(from);
        task.run = [to, staged = std::vector<char>(source, source + bytes)] {
            copy_bytes(to, reinterpret_cast<uint64_t>(staged.data()), staged.size());
        };
    }
    TRY(begin(*stream, std::move(task)));
    if (!to_driver) execute(stream->tail);
})

STAND_IN(cuMemcpy2DAsync_v2, 3020, (const CUDA_MEMCPY2D* copy, uint64_t stream_handle), {
    FIND_STREAM(stream, stream_handle);
    const Rows from{copy->source + copy->source_y * copy->source_pitch + copy->source_x, copy->source_pitch};
    const Rows to{copy->target + copy->target_y * copy->target_pitch + copy->target_x, copy->target_pitch};
    const bool unified = copy->source_kind == kMemoryUnified && copy->target_kind == kMemoryUnified;
    REFUSE_IF(!unified, kInvalidValue, "only unified addresses are known");
    REFUSE_IF(std::max(from.pitch, to.pitch) > kMostPitch, kInvalidValue, "rows are too far apart");
    REFUSE_IF(copy->row_bytes > std::min(from.pitch, to.pitch), kInvalidValue, "rows overlap");
    const bool of_driver = is_driver_memory(from.first) && is_driver_memory(to.first);
    REFUSE_IF(!of_driver, kInvalidValue, "pageable memory");
    Task task{text("copying %lu rows from %#lx to %#lx", copy->rows, from.first, to.first)};
    for (size_t row = 0; row < copy->rows; ++row) {
        if (!add_access(task, from.row(row), copy->row_bytes, false)) return kInvalidValue;
        if (!add_access(task, to.row(row), copy->row_bytes, true)) return kInvalidValue;
    }
    task.run = [from, to, bytes = copy->row_bytes, rows = copy->rows] {
        for (size_t row = 0; row < rows; ++row) copy_bytes(to.row(row), from.row(row), bytes);
    };
    return begin(*stream, std::move(task));
})

STAND_IN(cuMemsetD8Async, 3020, (uint64_t address, unsigned char value, size_t bytes, uint64_t stream_handle), {
    FIND_STREAM(stream, stream_handle);
    Task task{text("filling %lu bytes at %#lx", bytes, address)};
    task.accesses = {access_to(task.what, address, bytes, true, stream->context->device)};
    if (!task.accesses[0].allocation) return kInvalidValue;
    task.run = [=] { memset(reinterpret_cast<void*>(address), value, bytes); };
    return begin(*stream, std::move(task));
})
