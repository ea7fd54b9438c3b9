#include "interop/python/fast_tensors.h"

#include "interop/python/fast_calls.h"
#include "interop/python/tensor_bridge.h"
#include "interop/python/tensor_description.h"
#include "interop/python/tensor_making.h"
#include "interop/python/tensor_signature.h"
#include "interop/python/tensor_transfer.h"
#include "interop/python/tensor_types.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

constexpr ReadRules kAnythingOfMany = {.requires_grad_allowed = true, .argument = "tensors"};

// Converts an int that Python code has checked to be an unsigned 64-bit number.
uint64_t to_number(PyObject* object) { return python().PyLong_AsUnsignedLongLong(object); }

PyObject* copy(const char* name, Transfer direction, PyObject* const* arguments, Py_ssize_t count) {
    if (!check_count(name, count, 3)) return nullptr;
    void* pointer = reinterpret_cast<void*>(to_number(arguments[1]));
    const ds_status status = transfer_object(direction, arguments[0], pointer, to_number(arguments[2]));
    return status ? raise_status(status) : return_none();
}

PyObject* make(PyObject* tensor, bool zeros) {
    PyObject* made;
    const ds_status status = make_like(tensor, zeros, &made);
    return status ? raise_status(status) : made;
}

}  // namespace

PyObject* fast_description_type(PyObject*, PyObject* base) { return make_description_type(base); }

PyObject* fast_is_tensor(PyObject*, PyObject* object) {
    bool answer;
    const ds_status status = is_tensor(object, &answer);
    return status ? raise_status(status) : python().PyBool_FromLong(answer);
}

PyObject* fast_describe(PyObject*, PyObject* tensor) {
    TensorView view;
    const ds_status status = read_tensor(tensor, kAnything, &view);
    return status ? raise_status(status) : make_description(view);
}

PyObject* fast_describe_many(PyObject*, PyObject* tensors) {
    const PyOwned objects(python().PySequence_Tuple(tensors));
    if (!objects) return nullptr;
    const Py_ssize_t count = python().PyTuple_Size(objects.get());
    PyOwned descriptions(python().PyTuple_New(count));
    for (Py_ssize_t i = 0; descriptions && i < count; ++i) {
        TensorView view;
        const ds_status status = read_tensor_of_many(python().PyTuple_GetItem(objects.get(), i), i, kAnythingOfMany, &view);
        if (status) return raise_status(status);
        PyObject* made = make_description(view);
        if (!made || python().PyTuple_SetItem(descriptions.get(), i, made)) return nullptr;
    }
    return descriptions.release();
}

PyObject* fast_signature(PyObject*, PyObject* tensor) {
    TensorView view;
    if (const ds_status status = read_tensor(tensor, kAnything, &view)) return raise_status(status);
    char text[kSignatureBytes];
    const uint64_t length = write_signature(view, text);
    return python().PyUnicode_FromStringAndSize(text, static_cast<Py_ssize_t>(length));
}

PyObject* fast_current_stream(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (!check_count("current_stream", count, 3)) return nullptr;
    auto device_type = static_cast<int32_t>(to_number(arguments[1]));
    auto device_index = static_cast<int64_t>(to_number(arguments[2]));
    if (!device_type) {
        TensorView view;
        if (const ds_status status = read_tensor(arguments[0], kAnything, &view)) return raise_status(status);
        device_type = view.device_type;
        device_index = view.device_index;
    }
    uint64_t stream;
    const ds_status status = current_stream(arguments[0], device_type, device_index, &stream);
    return status ? raise_status(status) : python().PyLong_FromUnsignedLongLong(stream);
}

PyObject* fast_copy_to_pointer(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    return copy("copy_to_pointer", Transfer::kToPacked, arguments, count);
}

PyObject* fast_copy_from_pointer(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    return copy("copy_from_pointer", Transfer::kFromPacked, arguments, count);
}

PyObject* fast_tensor_over(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    if (!check_count("tensor_over", count, 3)) return nullptr;
    const TensorType* type = find_tensor_type_of(reinterpret_cast<PyTypeObject*>(arguments[0]));
    if (!type) return raise_status(last_status());
    if (!type->api) return return_none();
    const auto* info = reinterpret_cast<const ds_tensor_info*>(to_number(arguments[2]));
    void* managed;
    ds_status status = ds_dlpack_export(to_number(arguments[1]), info, 1, &managed);
    if (status) return raise_status(status);
    PyObject* made;
    status = make_over(arguments[0], static_cast<DLManagedTensorVersioned*>(managed), &made);
    return status ? raise_status(status) : made;
}

PyObject* fast_empty_like(PyObject*, PyObject* tensor) { return make(tensor, false); }
PyObject* fast_zeros_like(PyObject*, PyObject* tensor) { return make(tensor, true); }

}  // namespace doorstep
