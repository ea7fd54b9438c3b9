// Stepping a simulator from Python.
#pragma once

#include "interop/python/python_api.h"

namespace doorstep {

// step(handle): steps the simulator while other Python threads run.
PyObject* fast_step(PyObject* self, PyObject* handle);

// bind_step(session, handle): a builtin without arguments that steps the simulator and keeps the session alive.
PyObject* fast_bind_step(PyObject* self, PyObject* const* arguments, Py_ssize_t count);

}  // namespace doorstep
