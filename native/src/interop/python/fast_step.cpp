#include "interop/python/fast_step.h"

#include "doorstep.h"
#include "interop/python/fast_calls.h"

namespace doorstep {
namespace {

PyObject* step(ds_simulator simulator) {
    ds_status status;
    {
        const WithoutGil others_run;
        status = ds_simulator_step(simulator);
    }
    return status ? raise_status(status) : return_none();
}

// self: a tuple of the handle and of what keeps the simulator alive. A tuple, because the garbage collector looks
// into it.
PyObject* bound_step(PyObject* self, PyObject*) {
    return step(python().PyLong_AsUnsignedLongLong(python().PyTuple_GetItem(self, 0)));
}

PyMethodDef bound_step_row = {"step", reinterpret_cast<void*>(bound_step), METH_NOARGS,
                              "step()\n--\n\nSteps every world once: see doorstep.Simulator.step."};

}  // namespace

PyObject* fast_step(PyObject*, PyObject* handle) {
    const ds_simulator simulator = python().PyLong_AsUnsignedLongLong(handle);
    if (simulator == UINT64_MAX && python().PyErr_Occurred()) return nullptr;
    return step(simulator);
}

PyObject* fast_bind_step(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (!check_count("bind_step", count, 2)) return nullptr;
    const PyOwned self(python().PyTuple_Pack(2, arguments[1], arguments[0]));
    return self ? make_builtin(&bound_step_row, self.get()) : nullptr;
}

}  // namespace doorstep
