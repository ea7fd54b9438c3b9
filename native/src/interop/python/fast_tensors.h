// Fast calls that read tensors: the functions of doorstep.interop.
#pragma once

#include "interop/python/python_api.h"

namespace doorstep {

PyObject* fast_description_type(PyObject* self, PyObject* base);
PyObject* fast_is_tensor(PyObject* self, PyObject* object);
PyObject* fast_describe(PyObject* self, PyObject* tensor);
PyObject* fast_describe_many(PyObject* self, PyObject* tensors);
PyObject* fast_signature(PyObject* self, PyObject* tensor);

}  // namespace doorstep
