// Functions of the library as builtins of Python, at a tenth of what ctypes costs. A fast call gives an exception, as
// Python's own functions do, not a status.
#pragma once

#include "doorstep.h"
#include "interop/python/python_api.h"

namespace doorstep {

// A new dict of all fast calls by name, for Python to keep. Null, with Python's exception set, if that failed.
// raise_last_error: a callable that takes a status and raises the exception of this thread's latest failure. It is
// kept as long as the process lives.
PyObject* make_fast_calls(PyObject* raise_last_error);

// Sets the exception of a failing status; the result is null, so that a fast call can end with it.
PyObject* raise_status(ds_status status);

// Sets TypeError and gives false unless a fast call got as many arguments as it takes.
bool check_count(const char* name, Py_ssize_t count, Py_ssize_t expected);

}  // namespace doorstep
