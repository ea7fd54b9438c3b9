// Copies between a tensor of any strides and packed (C-contiguous) elements at a raw address.
#pragma once

#include "interop/python/tensor_bridge.h"

namespace doorstep {

enum class Transfer { kToPacked, kFromPacked };

// Needs no Python. On the CPU `packed` is a host address, and the copy is done on return. On CUDA it is any address
// that the driver can access, and the copy is begun on `stream`, a CUstream. INVALID_ARGUMENT for other devices, for
// elements of less than a byte, if `bytes` is not the size of all elements, and for a write to a tensor whose elements
// share memory.
ds_status transfer(Transfer direction, const TensorView& view, uint64_t stream, void* packed, uint64_t bytes);

// The same for an object, on its library's current stream. Other Python threads run meanwhile.
ds_status transfer_object(Transfer direction, PyObject* object, void* packed, uint64_t bytes);

// Sets all bytes of a contiguous tensor to 0.
ds_status clear(const TensorView& view, uint64_t stream);

}  // namespace doorstep
