// Copies between tensors in a simulator's memory, of any strides and on any device, and contiguous host arrays.
#pragma once

#include <stdint.h>

#include "doorstep.h"
#include "runtime/memory.h"

namespace doorstep {

// Bytes from the start of the first to the end of the last element. -1 unless strides are nonnegative multiples of the
// element size and the product stays in range.
int64_t tensor_extent(const ds_tensor_info& info);

// The description has been checked and is inside the memory. OUT_OF_MEMORY if the staging for a tensor that is not
// contiguous cannot be allocated; otherwise as Memory::read() and write(). A write keeps the bytes between elements.
ds_status read_tensor(Memory& memory, const ds_tensor_info& info, void* host);
ds_status write_tensor(Memory& memory, const ds_tensor_info& info, const void* host);

}  // namespace doorstep
