// Copies between tensors in a simulator's memory, of any strides and on any device, and contiguous arrays of the host.
#pragma once

#include <stdint.h>

#include "doorstep.h"
#include "runtime/memory.h"

namespace doorstep {

// Bytes from the first to beyond the last element. -1 unless strides are whole elements, not negative, and the product
// stays in range.
int64_t tensor_extent(const ds_tensor_info& info);

// The description has been checked, and lies inside the memory. OUT_OF_MEMORY for the staging of what is not
// contiguous, and what Memory::read() and write() return. A write keeps what lies between the elements.
ds_status read_tensor(Memory& memory, const ds_tensor_info& info, void* host);
ds_status write_tensor(Memory& memory, const ds_tensor_info& info, const void* host);

}  // namespace doorstep
