// Checks of tensor descriptions that come from a caller.
#pragma once

#include "doorstep.h"
#include "runtime/memory.h"

namespace doorstep {

// INVALID_ARGUMENT unless the struct describes elements that lie inside the memory.
ds_status check_description(const Memory& memory, const ds_tensor_info& info);

}  // namespace doorstep
