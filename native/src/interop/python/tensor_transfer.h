// Copies between a tensor of any strides and elements side by side (packed, row-major) at a raw address.
#pragma once

#include "interop/python/tensor_bridge.h"

namespace doorstep {

enum class Transfer { kToPacked, kFromPacked };

// Needs no Python. On the CPU `packed` is an address of the host, and the copy is done on return. On CUDA it is any
// address that the driver knows, and the copy is begun on `stream`, a CUstream. INVALID_ARGUMENT for other devices, for
// elements of less than a byte, unless `bytes` is the size of all elements, and for a write to a tensor whose elements
// share memory.
ds_status transfer(Transfer direction, const TensorView& view, uint64_t stream, void* packed, uint64_t bytes);

// The same for an object, on its library's current stream. Other Python threads run meanwhile.
ds_status transfer_object(Transfer direction, PyObject* object, void* packed, uint64_t bytes);

// Sets all bytes of a contiguous tensor to 0.
ds_status clear(const TensorView& view, uint64_t stream);

}  // namespace doorstep
