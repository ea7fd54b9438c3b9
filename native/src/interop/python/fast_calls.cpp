#include "interop/python/fast_calls.h"

#include "interop/python/fast_set.h"
#include "interop/python/fast_step.h"
#include "interop/python/fast_tensors.h"
#include "interop/python/operator_calls.h"

namespace doorstep {
namespace {

// A row: the builtin `name` is the function fast_<name>.
#define DS_FAST_CALL(name, flags, doc) {#name, reinterpret_cast<void*>(fast_##name), flags, doc}

PyMethodDef table[] = {
    DS_FAST_CALL(step, METH_O, "step(handle, /)\n--\n\nds_simulator_step()."),
    DS_FAST_CALL(step_method, METH_FASTCALL, "step_method(type, doc, /)\n--\n\nSimulator.step."),
    DS_FAST_CALL(bind_setter, METH_FASTCALL, "bind_setter(handle, tensor, /)\n--\n\nA callable that sets a tensor."),
    DS_FAST_CALL(description_type, METH_O, "description_type(base, /)\n--\n\nCreates the type of native descriptions."),
    DS_FAST_CALL(is_tensor, METH_O,
                 "is_tensor(object, /)\n--\n\nWhether an object is a tensor of some library: whether its class has "
                 "`__dlpack__`."),
    DS_FAST_CALL(describe, METH_O, "describe(tensor, /)\n--\n\nDescribes a tensor."),
    DS_FAST_CALL(describe_many, METH_O,
                 "describe_many(tensors, /)\n--\n\nDescribes many tensors in one call."),
    DS_FAST_CALL(signature, METH_O,
                 "signature(tensor, /)\n--\n\nThe properties that decide where a tensor can be used, as a short text: a key "
                 "for caches."),
    DS_FAST_CALL(current_stream, METH_FASTCALL,
                 "current_stream(tensor, device_type, device_index, /)\n--\n\nThe current stream of its library."),
    DS_FAST_CALL(copy_to_pointer, METH_FASTCALL,
                 "copy_to_pointer(tensor, pointer, nbytes, /)\n--\n\nCopies the elements out of a tensor."),
    DS_FAST_CALL(copy_from_pointer, METH_FASTCALL,
                 "copy_from_pointer(tensor, pointer, nbytes, /)\n--\n\nCopies the elements into a tensor."),
    DS_FAST_CALL(tensor_over, METH_FASTCALL, "tensor_over(type, memory, info, /)\n--\n\nCreates a tensor over memory."),
    DS_FAST_CALL(empty_like, METH_O, "empty_like(tensor, /)\n--\n\nCreates a tensor like this one."),
    DS_FAST_CALL(zeros_like, METH_O, "zeros_like(tensor, /)\n--\n\nCreates a tensor of zeros like this one."),
    DS_FAST_CALL(call_operator, METH_FASTCALL, "call_operator(operator, /, *tensors)\n--\n\nCalls an operator."),
};

#undef DS_FAST_CALL

// Created by make_fast_calls() and never released: fast calls may run until the process ends.
constinit PyObject* raise_last_error = nullptr;
constinit PyObject* module_name = nullptr;

bool add_builtins(PyObject* calls) {
    for (PyMethodDef& row : table) {
        const PyOwned builtin(python().PyCFunction_NewEx(&row, nullptr, module_name));
        if (!builtin || python().PyDict_SetItemString(calls, row.name, builtin.get())) return false;
    }
    return true;
}

}  // namespace

PyObject* make_fast_calls(PyObject* raise) {
    if (!module_name) module_name = python().PyUnicode_InternFromString("doorstep._native");
    if (!module_name) return nullptr;
    python().Py_IncRef(raise);
    raise_last_error = raise;
    PyOwned calls(python().PyDict_New());
    return calls && add_builtins(calls.get()) ? calls.release() : nullptr;
}

PyObject* raise_status(ds_status status) {
    const PyOwned number(python().PyLong_FromLongLong(status));
    if (number) const PyOwned never(python().PyObject_CallFunctionObjArgs(raise_last_error, number.get(), nullptr));
    return nullptr;
}

bool check_count(const char* name, Py_ssize_t count, Py_ssize_t expected) {
    if (count == expected) return true;
    python().PyErr_Format(python().TypeError, "%s() takes %zd arguments, not %zd", name, expected, count);
    return false;
}

}  // namespace doorstep
