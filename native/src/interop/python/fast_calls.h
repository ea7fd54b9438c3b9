// Functions of the library as Python builtins, which take a tenth of the time of ctypes calls. A fast call raises
// exceptions, as Python's own functions do, instead of returning a status.
#pragma once

#include "doorstep.h"
#include "interop/python/python_api.h"

namespace doorstep {

// A new dict of all fast calls by name; Python owns it. Null, with Python's exception set, on failure.
// raise_last_error: a callable that takes a status and raises the exception of this thread's latest failure. Its
// reference is kept until the process ends.
PyObject* make_fast_calls(PyObject* raise_last_error);

// Sets the exception of a failing status; returns null, as a failing fast call must.
PyObject* raise_status(ds_status status);

// Sets TypeError and returns false unless a fast call received the expected number of arguments.
bool check_count(const char* name, Py_ssize_t count, Py_ssize_t expected);

}  // namespace doorstep
