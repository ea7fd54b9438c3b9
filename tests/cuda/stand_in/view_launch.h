// Checks a launch of the kernel that draws views, and determines the memory that it accesses.
#pragma once

#include <stdint.h>

#include <string>

#include "graph.h"

namespace stand_in {

// A code, and a violation, if the launch breaks the kernel's rules. call: the kernel's parameter.
int make_view_launch(const std::string& kernel, int device, uint32_t grid, uint32_t threads, uint32_t shared_bytes,
                     const void* call, Task* task);

}  // namespace stand_in
