// Checks launches of the kernels of policies, and determines the memory that it accesses.
#pragma once

#include "launches.h"

namespace stand_in {

// As make_launch().
int make_policy_launch(const Launch& launch, const void* parameter, Task* task);

}  // namespace stand_in
