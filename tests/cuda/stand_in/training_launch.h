// Checks a launch of one of the training kernels, and determines the memory that it accesses.
#pragma once

#include <stdint.h>

#include <string>

#include "graph.h"

namespace stand_in {

// A code, and a violation, if the launch breaks the kernel's rules. call: the kernel's parameter.
int make_training_launch(const std::string& kernel, int device, uint32_t grid, uint32_t threads, const void* call,
                         Task* task);

}  // namespace stand_in
