// Arrays of numpy, read through Python's buffer protocol.
#pragma once

#include "interop/python/tensor_bridge.h"

namespace doorstep {

// False, without an exception, for what is not plain numbers of the machine's byte order.
bool read_buffer(PyObject* object, TensorView* view);

}  // namespace doorstep
