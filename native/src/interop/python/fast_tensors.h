// Fast calls on tensors: the functions of doorstep.interop.
#pragma once

#include "interop/python/python_api.h"

namespace doorstep {

PyObject* fast_description_type(PyObject* self, PyObject* base);
PyObject* fast_is_tensor(PyObject* self, PyObject* object);
PyObject* fast_describe(PyObject* self, PyObject* tensor);
PyObject* fast_describe_many(PyObject* self, PyObject* tensors);
PyObject* fast_signature(PyObject* self, PyObject* tensor);
// (tensor, device type, device index); type 0: the tensor's own device.
PyObject* fast_current_stream(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
PyObject* fast_copy_to_pointer(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
PyObject* fast_copy_from_pointer(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
// A tensor of a class over memory of a simulator (ds_memory, address of a ds_tensor_info); None if the class has no
// exchange API.
PyObject* fast_tensor_over(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
PyObject* fast_empty_like(PyObject* self, PyObject* tensor);
PyObject* fast_zeros_like(PyObject* self, PyObject* tensor);

}  // namespace doorstep
