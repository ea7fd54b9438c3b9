// doorstep's reader of tensors in Python (pkg/doorstep/_tensors, via callbacks.py) knows every kind of tensor;
// it alone refuses, and says why. Native code handles the plain cases and calls it in all others.
//
// Failures are false or a status, with the thread's error taken from the Python exception, which is cleared.
#pragma once

#include "interop/python/tensor_bridge.h"

namespace doorstep {

// The numbers that examine_type() gives: TensorKind, ds_python_library, whether it is a class of the library itself,
// whether attributes run no code of a user, address of the exchange API, the six offsets of TorchLayout; and, whatever
// the type, the offset of the type's address in every object, or 0 if it is not known.
inline constexpr int kNumTypeNumbers = 12;
bool examine_type(PyObject* type, long long (&numbers)[kNumTypeNumbers]);

// Reads a tensor of any kind. *is_plain: it is a tensor of PyTorch, and so is every one with the same dispatch keys.
// index: which of many objects it is, or -1.
ds_status read_by_python(PyObject* object, int64_t index, const ReadRules& rules, TensorView* view, bool* is_plain);

// What the exchange API does for the libraries that have it.
ds_status current_stream_by_python(PyObject* object, int32_t device_type, int64_t device_index, uint64_t* stream);
ds_status make_like_by_python(PyObject* object, bool zeros, PyObject** made);

// Takes the Python exception that is set as the thread's error and clears it; `status` unless the exception has its own.
ds_status take_python_error(ds_status status, const char* argument);

}  // namespace doorstep
