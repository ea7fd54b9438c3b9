#include "interop/python/fast_step.h"

#include "doorstep.h"
#include "interop/python/fast_calls.h"

namespace doorstep {
namespace {

// Attribute names, created by fast_step_method() and never released.
constinit PyObject* step_handle = nullptr;
constinit PyObject* step_in_turn = nullptr;

PyObject* step(ds_simulator simulator) {
    ds_status status;
    {
        const WithoutGil others_run;
        status = ds_simulator_step(simulator);
    }
    return status ? raise_status(status) : return_none();
}

PyObject* step_object(PyObject* self, PyObject*) {
    const PyOwned handle(python().PyObject_GetAttr(self, step_handle));
    if (!handle) return nullptr;
    const ds_simulator simulator = python().PyLong_AsUnsignedLong(handle.get());
    if (simulator) return step(simulator);
    return python().PyObject_CallMethodObjArgs(self, step_in_turn, nullptr);
}

PyMethodDef step_row = {"step", reinterpret_cast<void*>(step_object), METH_NOARGS, nullptr};

}  // namespace

PyObject* fast_step(PyObject*, PyObject* handle) {
    const ds_simulator simulator = python().PyLong_AsUnsignedLong(handle);
    if (simulator == UINT64_MAX && python().PyErr_Occurred()) return nullptr;
    return step(simulator);
}

PyObject* fast_step_method(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (!check_count("step_method", count, 2)) return nullptr;
    const char* doc = python().PyUnicode_AsUTF8AndSize(arguments[1], nullptr);
    step_handle = python().PyUnicode_InternFromString("_step_handle");
    step_in_turn = python().PyUnicode_InternFromString("_step_in_turn");
    if (!doc || !step_handle || !step_in_turn) return nullptr;
    python().Py_IncRef(arguments[1]);  // the row points into its text
    step_row.doc = doc;
    return python().PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(arguments[0]), &step_row);
}

}  // namespace doorstep
