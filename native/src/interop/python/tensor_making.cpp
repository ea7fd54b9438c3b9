#include "interop/python/tensor_making.h"

#include <string.h>

#include "interop/python/tensor_reader.h"
#include "interop/python/tensor_transfer.h"
#include "interop/python/tensor_types.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

// Called by a library's allocator; the context is a ds_status.
void take_error(void* context, const char* kind, const char* message) {
    *static_cast<ds_status*>(context) =
        fail(DS_STATUS_OUT_OF_MEMORY, "tensor", "free memory of its device", "%s: %s", kind, message);
}

// The status of an allocator that failed; `told` is what take_error() has set. By the protocol an allocator calls
// take_error() and sets no Python exception, but some libraries set one.
ds_status allocation_failure(ds_status told) {
    if (!told || python().PyErr_Occurred()) return take_python_error(DS_STATUS_OUT_OF_MEMORY, "tensor");
    return told;
}

ds_status hand_over(const DLPackExchangeAPI& api, DLManagedTensorVersioned* managed, PyObject** made) {
    void* object;
    if (api.managed_tensor_to_py_object_no_sync(managed, &object)) {
        const ds_status status = take_python_error(DS_STATUS_INVALID_ARGUMENT, "tensor");
        delete_exported(managed);  // the library has not taken ownership
        return status;
    }
    *made = static_cast<PyObject*>(object);
    return DS_STATUS_OK;
}

ds_status allocate_like(const DLPackExchangeAPI& api, const TensorView& view, PyObject** made) {
    int64_t shape[kMaxRank], strides[kMaxRank];
    int64_t count = 1;
    for (int axis = view.rank - 1; axis >= 0; --axis) {
        shape[axis] = view.shape[axis];
        strides[axis] = count;
        count *= view.shape[axis];
    }
    DLTensor prototype = {nullptr, {view.device_type, view.device_index}, view.rank,
                          {view.dtype_code, view.dtype_bits, view.dtype_lanes}, shape, strides, 0};
    DLManagedTensorVersioned* managed;
    ds_status told = DS_STATUS_OK;
    if (api.managed_tensor_allocator(&prototype, &managed, &told, take_error)) return allocation_failure(told);
    return hand_over(api, managed, made);
}

ds_status clear_new(PyObject* object) {
    TensorView view;
    uint64_t stream = 0;
    if (const ds_status status = read_tensor(object, kAnything, &view)) return status;
    if (const ds_status status = current_stream(object, view.device_type, view.device_index, &stream)) return status;
    return clear(view, stream);
}

}  // namespace

ds_status make_like(PyObject* object, bool zeros, PyObject** made) {
    TensorView view;
    if (const ds_status status = read_tensor(object, kAnything, &view)) return status;
    const TensorType* type = find_tensor_type(object);
    if (!type) return last_status();
    if (!type->api) return make_like_by_python(object, zeros, made);
    PyObject* empty;
    if (const ds_status status = allocate_like(*type->api, view, &empty)) return status;
    PyOwned owned(empty);
    if (zeros) {
        if (const ds_status status = clear_new(empty)) return status;
    }
    *made = owned.release();
    return DS_STATUS_OK;
}

ds_status make_over(PyObject* cls, DLManagedTensorVersioned* managed, PyObject** made) {
    const TensorType* type = find_tensor_type_of(reinterpret_cast<PyTypeObject*>(cls));
    if (type && type->api) return hand_over(*type->api, managed, made);
    delete_exported(managed);
    if (!type) return last_status();
    return fail(DS_STATUS_INVALID_ARGUMENT, "type", "use its library's from_dlpack()",
                "type is a class without DLPack's exchange API");
}

}  // namespace doorstep
