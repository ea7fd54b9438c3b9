#include "interop/python/fast_tensors.h"

#include "interop/python/fast_calls.h"
#include "interop/python/tensor_bridge.h"
#include "interop/python/tensor_description.h"
#include "interop/python/tensor_signature.h"

namespace doorstep {
namespace {

// A description tells everything, so that nothing is refused that lies in memory.
constexpr ReadRules kAnything = {.requires_grad_allowed = true};

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
        const ds_status status = read_tensor_of_many(python().PyTuple_GetItem(objects.get(), i), i, kAnything, &view);
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

}  // namespace doorstep
