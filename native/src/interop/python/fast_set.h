// Sets a tensor of a CPU simulator from an array of any library, without a Python frame.
#pragma once

#include "interop/python/python_api.h"

namespace doorstep {

// bind_setter(handle, tensor): a callable that takes an array. It returns True if it has set the tensor, and False,
// with nothing changed, if the array needs checks or conversions, which Python code then does.
PyObject* fast_bind_setter(PyObject*, PyObject* const* arguments, Py_ssize_t count);

}  // namespace doorstep
