// Checks launches of kernels, and determines the memory that they access.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "functions.h"
#include "emulation.h"

namespace stand_in {

struct Launch {
    std::string kernel;
    int kind_of_worlds;  // of its module, see WorldKind; 0: unknown, or a module without worlds
    int device;
    uint32_t grid, threads, shared_bytes;
    int parameter_bytes;  // that the machine code reads; 0: unknown
    const std::string& ptx;  // empty: machine code
};

// Collects the memory that a kernel accesses, each time from an address to the end of its memory: what lies behind is
// guarded. Reports the first problem.
class Accesses {
public:
    Accesses(const Launch& launch, std::vector<Access>* found) : launch_(launch), found_(found) {}

    // Null addresses are left out.
    void read(std::initializer_list<const void*> addresses) { add(addresses, false, 1); }
    void write(std::initializer_list<const void*> addresses, uint64_t alignment = 1) {
        add(addresses, true, alignment);
    }

    int code = kSuccess;

private:
    void add(std::initializer_list<const void*> addresses, bool writes, uint64_t alignment) {
        for (const void* address : addresses) {
            if (!address) continue;
            const uint64_t first = reinterpret_cast<uint64_t>(address);
            const AllocationRef memory = find_allocation(first);
            const uint64_t bytes = memory && memory->contains(first, 0) ? memory->address + memory->bytes - first : 1;
            Access access = access_to(launch_.kernel, first, bytes, writes, launch_.device);
            code = access.allocation ? code : int{kIllegalAddress};
            if (access.allocation) found_->push_back(std::move(access));
            if (first % alignment) code = refuse(kMisalignedAddress, text("%#lx: %s", first, launch_.kernel.c_str()));
        }
    }

    const Launch& launch_;
    std::vector<Access>* found_;
};

// The task that runs the kernel. A code, and a violation, if the launch breaks the kernel's rules. parameter: the
// kernel's only one, which is copied.
int make_launch(const Launch& launch, const void* parameter, Task* task);

}  // namespace stand_in
