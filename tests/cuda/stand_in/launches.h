// Checks launches of the kernels of worlds and of training, and determines the memory that they access.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <string>

#include "functions.h"
#include "emulation.h"

namespace stand_in {

struct Launch {
    std::string kernel;
    int kind_of_worlds;  // its number, see WorldKind; 0: a module without worlds
    int device;
    uint32_t grid, threads, shared_bytes;
    int parameter_bytes;  // that the machine code reads; 0: unknown
    const std::string& ptx;  // empty: machine code
};

// Collects the memory that a kernel accesses; reports the first problem.
class Accesses {
public:
    Accesses(const Launch& launch, std::vector<Access>* found) : launch_(launch), found_(found) {}

    void add(const char* name, const void* address, int64_t bytes, bool writes, uint64_t alignment = 1) {
        const std::string what = launch_.kernel + ": " + name;
        const uint64_t first = reinterpret_cast<uint64_t>(address);
        Access access = access_to(what, first, static_cast<uint64_t>(bytes), writes, launch_.device);
        code = access.allocation ? code : int{kIllegalAddress};
        if (access.allocation) found_->push_back(std::move(access));
        if (first % alignment)
            code = refuse(kMisalignedAddress, text("%s is not aligned to %lu bytes", what.c_str(), alignment));
    }
    // Optional: null if it is absent.
    void add_given(const char* name, const void* address, int64_t bytes, bool writes, uint64_t alignment = 1) {
        if (address && bytes) add(name, address, bytes, writes, alignment);
    }

    int code = kSuccess;

private:
    const Launch& launch_;
    std::vector<Access>* found_;
};

// A code, and a violation, if the launch has another number of threads or less shared memory, or the kernel's only
// parameter has another size in the machine code than on the host.
int check_shape(const Launch& launch, uint32_t threads, uint32_t shared_bytes, size_t parameter_bytes);

// The result must not depend on the order of the threads.
doorstep::ThreadOrder next_thread_order();

// The task that runs the kernel. A code, and a violation, if the launch breaks the kernel's rules. parameter: the
// kernel's only one, which is copied.
int make_launch(const Launch& launch, const void* parameter, Task* task);
// The same for kernels of policies, and for those that draw views.
int make_policy_launch(const Launch& launch, const void* parameter, Task* task);
int make_view_launch(const Launch& launch, const void* parameter, Task* task);

}  // namespace stand_in
