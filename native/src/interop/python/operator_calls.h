// Calls on tensors of Python, checked against the table of an operator and done in one go.
#pragma once

#include "interop/python/python_api.h"

namespace doorstep {

// call_operator(address of a ds_operator, *tensors) -> bool. False, and nothing has been done, if a tensor is not plain
// or not as its row says: who calls then finds out what is wrong. The exception of a call that fails.
PyObject* fast_call_operator(PyObject* self, PyObject* const* arguments, Py_ssize_t count);

}  // namespace doorstep
