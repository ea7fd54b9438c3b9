// Device memory and page-locked host memory: real memory at addresses that are never reused, with guard pages on both
// sides. The host cannot access device memory; it is accessible only while an operation on it runs.
#pragma once

#include <stdint.h>

#include <memory>
#include <string>
#include <vector>

#include "work.h"

namespace stand_in {

struct Context;

struct NotedAccess {
    OperationRef operation;
    Access access;
};

struct Allocation {
    uint64_t address = 0, bytes = 0;
    int device = 0;
    bool pinned = false;
    bool shared = false;        // bytes of a file that other code may map
    bool accessible = true;     // false: mapped, but without access rights yet
    uint64_t pool = 0;          // handle, of memory from a pool
    OperationRef made;          // memory from a pool: when it begins to exist
    bool freeing = false;       // a free has been requested
    bool freed = false;
    std::vector<NotedAccess> accesses;
    uint64_t mapped = 0, mapped_bytes = 0;  // without the guard pages

    bool contains(uint64_t first, uint64_t count) const {
        return first >= address && first - address <= bytes && count <= bytes - (first - address);
    }
};
using AllocationRef = std::shared_ptr<Allocation>;

// Null if the machine does not have that much memory.
AllocationRef map_memory(uint64_t bytes, int device, bool pinned);
// Maps the bytes of a file at reserved addresses, or (0) at any. Null if the machine refuses.
AllocationRef map_file(int descriptor, uint64_t bytes, int device, uint64_t address = 0);
// Frees the bytes; the address stays reserved.
void unmap_memory(Allocation& allocation);

// The same, and removes it from the driver's records.
void forget(const AllocationRef& allocation);

// Records a violation for all work that uses the memory and has not run.
void check_unused(const char* function, const Allocation& allocation);

// The allocation, live or not, that contains the address or ends at it; null for memory unknown to the driver.
AllocationRef find_allocation(uint64_t address);

// Reserves so many bytes of addresses with unused space around them; 0 on failure.
uint64_t reserve_addresses(uint64_t bytes, uint64_t alignment);

constexpr int kGarbage = 0xC7;  // new memory is not zero; as a float this is -1e5, as an index nonsense
constexpr int kAnyDevice = -1;

// The access of `count` bytes at an address, or a violation and null in .allocation.
Access access_to(const std::string& what, uint64_t address, uint64_t count, bool writes, int device);

// False, and a violation, if the memory does not exist yet or any more.
bool check_alive(const Operation& operation, const Access& access);

// Gives this process access to the memory that an operation uses.
class OpenMemory {
public:
    explicit OpenMemory(const std::vector<Access>& accesses);
    ~OpenMemory();

private:
    std::vector<AllocationRef> opened_;
};

}  // namespace stand_in
