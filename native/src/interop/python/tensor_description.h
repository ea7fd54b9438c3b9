// What Python is told of a tensor: its signature, a short text, and a description, doorstep.interop.TensorDescription
// created by native code.
#pragma once

#include "interop/python/tensor_bridge.h"

namespace doorstep {

// See ds_python_signature(). Returns the length.
uint64_t write_signature(const TensorView& view, char* text);

// A new type derived from a Python class without slots, which defines how descriptions are printed and compared. Create
// it before the first description. Null, with Python's exception set, on failure.
PyObject* make_description_type(PyObject* base);

// A new description. Null, with Python's exception set, on failure.
PyObject* make_description(const TensorView& view);

}  // namespace doorstep
