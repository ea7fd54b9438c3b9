#include <string.h>
#include <sys/mman.h>

#include <map>

#include "driver.h"

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
