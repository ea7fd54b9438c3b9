// doorstep.interop.TensorDescription, as native code makes it: an object that holds a TensorView, read lazily.
#pragma once

#include "interop/python/tensor_bridge.h"

namespace doorstep {

// A new type derived from a Python class without slots, which says how descriptions are shown and compared. Made once,
// before the first description. Null, with Python's exception set, if that failed.
PyObject* make_description_type(PyObject* base);

// A new description. Null, with Python's exception set, if that failed.
PyObject* make_description(const TensorView& view);

}  // namespace doorstep
