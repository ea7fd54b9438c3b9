// Reads numpy arrays through Python's buffer protocol.
#pragma once

#include "interop/python/tensor_bridge.h"

namespace doorstep {

// False, without an exception, unless the elements are plain numbers in the machine's byte order.
bool read_buffer(PyObject* object, TensorView* view);

}  // namespace doorstep
