// Checks a launch of a kernel that draws views, and determines the memory that it accesses.
#pragma once

#include "launches.h"

namespace stand_in {

// As make_launch().
int make_view_launch(const Launch& launch, const void* parameter, Task* task);

}  // namespace stand_in
