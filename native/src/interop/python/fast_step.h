// Stepping a simulator from Python.
#pragma once

#include "interop/python/python_api.h"

namespace doorstep {

// step(handle): steps a simulator while other Python threads run.
PyObject* fast_step(PyObject* self, PyObject* handle);

// step_method(class, doc): the method `step` for the class of simulators. Its instances have `_step_handle`, the handle
// of a simulator that can be stepped at once, or 0 if `_step_in_turn()` must be called instead.
PyObject* fast_step_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count);

}  // namespace doorstep
