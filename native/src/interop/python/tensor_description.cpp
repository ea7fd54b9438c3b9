#include "interop/python/tensor_description.h"

#include <stddef.h>
#include <string.h>

#include "interop/python/tensor_names.h"

namespace doorstep {
namespace {

// The latest type created; all are kept until the process ends. A description starts with the header of every object,
// whose size differs between builds, then the view up to its shape, then one extent and one stride per dimension.
constinit PyTypeObject* description_type = nullptr;
constinit size_t head_bytes = 0;
constexpr size_t kFixedBytes = offsetof(TensorView, shape);

char* data_of(PyObject* self) { return reinterpret_cast<char*>(self) + head_bytes; }

// Without shape and strides.
const TensorView& view_of(PyObject* self) { return *reinterpret_cast<const TensorView*>(data_of(self)); }
int64_t* shape_of(PyObject* self) { return reinterpret_cast<int64_t*>(data_of(self) + kFixedBytes); }
int64_t* strides_of(PyObject* self) { return shape_of(self) + view_of(self).rank; }

void deallocate(PyObject* self) {
    const PyOwned type(python().PyObject_Type(self));  // not description_type: there may be a newer one
    python().PyObject_Free(self);
    python().Py_DecRef(type.get());  // objects own a reference to their type
}

// Descriptions reference no objects. Without this they would inherit the garbage collector's header from their base.
int traverse(PyObject*, int (*)(PyObject*, void*), void*) { return 0; }

// ---- Properties ----

PyObject* make_tuple(const int64_t* numbers, int count) {
    PyOwned tuple(python().PyTuple_New(count));
    for (int i = 0; tuple && i < count; ++i) {
        PyObject* number = python().PyLong_FromLongLong(numbers[i]);
        if (!number || python().PyTuple_SetItem(tuple.get(), i, number)) return nullptr;
    }
    return tuple.release();
}

PyObject* make_text(const char* text, const char* end) { return python().PyUnicode_FromStringAndSize(text, end - text); }

PyObject* get_pointer(PyObject* self, void*) {
    return python().PyLong_FromUnsignedLongLong(reinterpret_cast<uint64_t>(view_of(self).data));
}
PyObject* get_shape(PyObject* self, void*) { return make_tuple(shape_of(self), view_of(self).rank); }
PyObject* get_strides(PyObject* self, void*) { return make_tuple(strides_of(self), view_of(self).rank); }
PyObject* get_dtype(PyObject* self, void*) {
    char name[kNameBytes];
    return make_text(name, write_dtype_name(name, view_of(self)));
}
PyObject* get_device(PyObject* self, void*) {
    char name[kNameBytes];
    return make_text(name, write_device_name(name, view_of(self)));
}
PyObject* get_library(PyObject* self, void*) { return python().PyUnicode_FromString(library_name(view_of(self))); }
PyObject* get_size(PyObject* self, void*) { return python().PyLong_FromLongLong(view_of(self).count); }
PyObject* get_itemsize(PyObject* self, void*) { return python().PyLong_FromLongLong(element_bytes(view_of(self))); }
PyObject* get_contiguous(PyObject* self, void*) { return python().PyBool_FromLong(view_of(self).contiguous); }
PyObject* get_requires_grad(PyObject* self, void*) { return python().PyBool_FromLong(view_of(self).requires_grad); }
PyObject* get_readonly(PyObject* self, void*) { return python().PyBool_FromLong(view_of(self).read_only); }

#define DS_PROPERTY(name) {#name, get_##name, nullptr, nullptr, nullptr}
PyGetSetDef properties[] = {
    DS_PROPERTY(pointer),    DS_PROPERTY(shape),         DS_PROPERTY(strides),  DS_PROPERTY(dtype),
    DS_PROPERTY(device),     DS_PROPERTY(library),       DS_PROPERTY(size),     DS_PROPERTY(itemsize),
    DS_PROPERTY(contiguous), DS_PROPERTY(requires_grad), DS_PROPERTY(readonly), {},
};
#undef DS_PROPERTY

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_getset, properties},
    {0, nullptr},
};

}  // namespace

PyObject* make_description_type(PyObject* base) {
    const PyOwned size(python().PyObject_GetAttrString(base, "__basicsize__"));
    const PyOwned bases(python().PyTuple_Pack(1, base));
    if (!size || !bases) return nullptr;
    head_bytes = static_cast<size_t>(python().PyLong_AsLongLong(size.get()));
    PyType_Spec spec = {"doorstep.interop.NativeTensorDescription", static_cast<int>(head_bytes), 0,
                        Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    PyObject* made = python().PyType_FromSpecWithBases(&spec, bases.get());
    if (!made) return nullptr;
    python().Py_IncRef(made);
    description_type = reinterpret_cast<PyTypeObject*>(made);
    return made;
}

PyObject* make_description(const TensorView& view) {
    const size_t extent_bytes = 2 * static_cast<size_t>(view.rank) * sizeof(int64_t);
    void* memory = python().PyObject_Malloc(head_bytes + kFixedBytes + extent_bytes);
    if (!memory) return python().PyErr_NoMemory();
    PyObject* made = python().PyObject_Init(static_cast<PyObject*>(memory), description_type);
    memcpy(data_of(made), &view, kFixedBytes);
    for (int axis = 0; axis < view.rank; ++axis) {
        shape_of(made)[axis] = view.shape[axis];
        strides_of(made)[axis] = view.strides[axis];
    }
    return made;
}

}  // namespace doorstep
