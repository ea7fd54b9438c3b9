// Checks of tensor ids and tensor descriptions from a caller.
#pragma once

#include "doorstep.h"
#include "exec/simulator.h"
#include "runtime/memory.h"

namespace doorstep {

// INVALID_ARGUMENT unless the struct describes elements inside the memory.
ds_status check_description(const Memory& memory, const ds_tensor_info& info);

// INVALID_ARGUMENT unless it is the ds_tensor_id of a tensor that the simulator has.
ds_status check_tensor(const Simulator& simulator, int64_t tensor);

}  // namespace doorstep
