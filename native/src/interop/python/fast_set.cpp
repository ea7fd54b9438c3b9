#include "interop/python/fast_set.h"

#include <new>

#include "interop/dlpack.h"
#include "interop/python/fast_calls.h"
#include "interop/python/tensor_bridge.h"

namespace doorstep {
namespace {

constexpr const char* kCapsule = "doorstep tensor to be set";

// The properties that an array must have, in DLPack's terms.
struct Target {
    ds_simulator simulator;
    int32_t tensor;
    DLDataType dtype;
    int32_t rank;
    int64_t shape[DS_MAX_DIMENSIONS];
    uint64_t bytes;
};

Target make_target(ds_simulator simulator, int32_t tensor, const ds_tensor_info& info) {
    const DLDataType dtype = data_type_of(info.dtype);
    Target target = {simulator, tensor, dtype, info.rank, {}, dtype.bits / 8u};
    for (int axis = 0; axis < info.rank; ++axis) {
        target.shape[axis] = info.shape[axis];
        target.bytes *= static_cast<uint64_t>(info.shape[axis]);
    }
    return target;
}

// Whether the shape equals the target's from an axis on, whose extent is `first`, or lacks only trailing 1s.
bool has_shape(const Target& target, int axis, int64_t first, const TensorView& view) {
    const int rank = target.rank - axis;
    if (view.rank > rank || view.shape[0] != first) return false;
    for (int i = 1; i < rank; ++i) {
        if (target.shape[axis + i] != (i < view.rank ? view.shape[i] : 1)) return false;
    }
    return true;
}

bool fits(const Target& target, const TensorView& view) {
    return view.device_type == kDLCPU && view.contiguous && view.dtype_code == target.dtype.code &&
           view.dtype_bits == target.dtype.bits && view.dtype_lanes == target.dtype.lanes && view.rank > 0 &&
           (has_shape(target, 0, target.shape[0], view) ||
            has_shape(target, 1, target.shape[0] * target.shape[1], view));
}

// self: a capsule of a Target.
PyObject* set(PyObject* self, PyObject* array) {
    const Target& target = *static_cast<Target*>(python().PyCapsule_GetPointer(self, kCapsule));
    TensorView view;
    if (read_tensor(array, {}, &view) || !fits(target, view)) return python().PyBool_FromLong(0);
    ds_status status;
    {
        const WithoutGil others_run;
        status = ds_simulator_set_tensor(target.simulator, target.tensor, view.data, target.bytes, DS_DEVICE_CPU);
    }
    return status ? raise_status(status) : python().PyBool_FromLong(1);
}

PyMethodDef set_row = {"set_tensor", reinterpret_cast<void*>(set), METH_O,
                       "set_tensor(array, /)\n--\n\nSets a tensor and returns True if the array fits, else False."};

void delete_target(PyObject* capsule) {
    delete static_cast<Target*>(python().PyCapsule_GetPointer(capsule, kCapsule));
}

}  // namespace

PyObject* fast_bind_setter(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (!check_count("bind_setter", count, 2)) return nullptr;
    const ds_simulator simulator = python().PyLong_AsUnsignedLongLong(arguments[0]);
    const int32_t tensor = static_cast<int32_t>(python().PyLong_AsLongLong(arguments[1]));
    if (python().PyErr_Occurred()) return nullptr;
    ds_tensor_info info;
    info.struct_size = sizeof info;
    if (const ds_status status = ds_simulator_get_tensor(simulator, tensor, &info)) return raise_status(status);
    Target* target = new (std::nothrow) Target(make_target(simulator, tensor, info));
    if (!target) return python().PyErr_NoMemory();
    const PyOwned capsule(python().PyCapsule_New(target, kCapsule, delete_target));
    if (!capsule) {
        delete target;
        return nullptr;
    }
    return python().PyCFunction_NewEx(&set_row, capsule.get(), nullptr);
}

}  // namespace doorstep
