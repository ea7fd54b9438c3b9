// Memory of the devices and page-locked memory of the host: real memory at addresses that are never used again, with
// guard pages on both sides. The host cannot touch device memory; it is opened only while an operation on it runs.
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
    bool shared = false;        // bytes of a file, which others may map too
    bool accessible = true;     // false: mapped, but nobody may touch it yet
    uint64_t pool = 0;          // handle, of memory from a pool
    OperationRef made;          // memory from a pool: when it begins to exist
    bool freeing = false;       // a free has been asked for
    bool freed = false;
    std::vector<NotedAccess> accesses;
    uint64_t mapped = 0, mapped_bytes = 0;  // without the guard pages

    bool contains(uint64_t first, uint64_t count) const {
        return first >= address && first - address <= bytes && count <= bytes - (first - address);
    }
};
using AllocationRef = std::shared_ptr<Allocation>;

// Null if the machine has no such memory left.
AllocationRef map_memory(uint64_t bytes, int device, bool pinned);
// The bytes of a file at reserved addresses, or (0) where there is room. Null if the machine refuses.
AllocationRef map_file(int descriptor, uint64_t bytes, int device, uint64_t address = 0);
// The bytes go, the address stays reserved.
void unmap_memory(Allocation& allocation);

// The same, and the driver knows it no longer.
void forget(const AllocationRef& allocation);

// A violation for everything that was begun with the memory and has not run.
void check_unused(const char* function, const Allocation& allocation);

// The allocation, alive or not, that the address is in or just behind; null for memory the driver does not know.
AllocationRef find_allocation(uint64_t address);

// Addresses for so many bytes, with room around them that nobody uses; 0 if there are none.
uint64_t reserve_addresses(uint64_t bytes, uint64_t alignment);

constexpr int kGarbage = 0xC7;  // new memory is not zero; as a float this is -1e5, as an index nonsense
constexpr int kAnyDevice = -1;

// The access of `count` bytes at an address, or a violation and null in .allocation.
Access access_to(const std::string& what, uint64_t address, uint64_t count, bool writes, int device);

// False, and a violation, if the memory has not begun to exist, or no longer does.
bool check_alive(const Operation& operation, const Access& access);

// Lets this process touch what an operation accesses.
class OpenMemory {
public:
    explicit OpenMemory(const std::vector<Access>& accesses);
    ~OpenMemory();

private:
    std::vector<AllocationRef> opened_;
};

}  // namespace stand_in
