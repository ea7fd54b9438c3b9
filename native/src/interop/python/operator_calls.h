// Calls on Python tensors, checked against the table of an operator.
#pragma once

#include "interop/python/python_api.h"

namespace doorstep {

// call_operator(address of a ds_operator, *tensors) -> bool. False, with nothing done, if a tensor is not plain or does
// not meet its row's requirements; the caller then finds the reason. Raises the exception of a call that fails.
PyObject* fast_call_operator(PyObject* self, PyObject* const* arguments, Py_ssize_t count);

}  // namespace doorstep
