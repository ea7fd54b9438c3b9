// Checks a launch of one of doorstep's kernels, and determines the memory that it accesses.
#pragma once

#include <stdint.h>

#include <string>

#include "exec/cuda/kernels.h"
#include "graph.h"

namespace stand_in {

struct Launch {
    std::string kernel;
    int num_agents;
    int device;
    uint32_t grid, threads, shared_bytes;
    doorstep::KernelArguments arguments;
};

// The task that runs the kernel. A code, and a violation, if the launch breaks the kernel's rules.
int make_launch(const Launch& launch, Task* task);

}  // namespace stand_in
