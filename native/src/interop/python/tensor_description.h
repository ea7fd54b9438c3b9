// doorstep.interop.TensorDescription created by native code: an object that contains a TensorView.
#pragma once

#include "interop/python/tensor_bridge.h"

namespace doorstep {

// A new type derived from a Python class without slots, which defines how descriptions are printed and compared. Create
// it before the first description. Null, with Python's exception set, on failure.
PyObject* make_description_type(PyObject* base);

// A new description. Null, with Python's exception set, on failure.
PyObject* make_description(const TensorView& view);

}  // namespace doorstep
