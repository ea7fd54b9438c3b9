// doorstep's tensor reader in Python (pkg/doorstep/_tensors, via callbacks.py). It supports every kind of tensor, and it
// alone refuses tensors and states the reason. Native code handles the plain cases and calls it for all others.
//
// Failures are false or a status, with the thread's error set from the Python exception, which is cleared.
#pragma once

#include "interop/python/tensor_bridge.h"

namespace doorstep {

// The numbers that examine_type() returns: TensorKind, ds_python_library, whether it is a class of the library itself,
// whether its attributes run no user code, address of the exchange API, the six offsets of TorchLayout; and, for any
// type, the offset in every object of its type's address, or 0 if unknown.
inline constexpr int kNumTypeNumbers = 12;
bool examine_type(PyObject* type, long long (&numbers)[kNumTypeNumbers]);

// Reads a tensor of any kind. *is_plain: it is a plain tensor of PyTorch, and so is every one with the same dispatch
// keys. index: its index among many objects, or -1.
ds_status read_by_python(PyObject* object, int64_t index, const ReadRules& rules, TensorView* view, bool* is_plain);

// The functions of the exchange API, for libraries without it.
ds_status current_stream_by_python(PyObject* object, int32_t device_type, int64_t device_index, uint64_t* stream);
ds_status make_like_by_python(PyObject* object, bool zeros, PyObject** made);

// Moves the current Python exception to the thread's error; `status` unless the exception has its own.
ds_status take_python_error(ds_status status, const char* argument);

}  // namespace doorstep
