// Setting a tensor of a simulator on the CPU from an array of any library, without a frame of Python.
#pragma once

#include "interop/python/python_api.h"

namespace doorstep {

// bind_setter(handle, tensor): a callable that takes an array and gives True if it has set the tensor from it, False if
// the array is not one that fits at once; nothing has changed then, and Python finds out why.
PyObject* fast_bind_setter(PyObject*, PyObject* const* arguments, Py_ssize_t count);

}  // namespace doorstep
