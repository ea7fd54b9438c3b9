#include "interop/python/tensor_bridge.h"

#include <stddef.h>
#include <string.h>

#include "runtime/argument_checks.h"

namespace doorstep {
namespace {

// ---- Names of DLPack's element types and devices; pkg/doorstep/_native/foreign_tensor.py has the same ----

// Enough for any name and its terminating 0.
constexpr int kNameBytes = 48;

// A short text that is copied as a whole, in one instruction.
struct Name {
    char text[23];
    uint8_t length;
};

constexpr Name make_name(const char* text) {
    Name name{};
    for (; text[name.length]; ++name.length) name.text[name.length] = text[name.length];
    return name;
}

char* write(char* text, const Name& name) {
    memcpy(text, name.text, sizeof name.text);
    return text + name.length;
}

constexpr int kNumCodes = 18, kNumWidths = 6;

struct DtypeNames {
    Name names[kNumCodes][kNumWidths];  // by code and by logarithm of a quarter of the bits

    constexpr DtypeNames() : names{} {
        const char* signed_names[] = {"", "int8", "int16", "int32", "int64"};
        const char* unsigned_names[] = {"", "uint8", "uint16", "uint32", "uint64"};
        const char* float_names[] = {"", "", "float16", "float32", "float64"};
        const char* complex_names[] = {"", "", "", "complex32", "complex64", "complex128"};
        const char* float8_names[] = {"float8_e3m4",   "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
                                      "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",    "float8_e8m0fnu"};
        for (int i = 0; i < 5; ++i) {
            names[0][i] = make_name(signed_names[i]);
            names[1][i] = make_name(unsigned_names[i]);
            names[2][i] = make_name(float_names[i]);
        }
        for (int i = 0; i < 6; ++i) names[5][i] = make_name(complex_names[i]);
        for (int i = 0; i < 8; ++i) names[7 + i][1] = make_name(float8_names[i]);
        names[4][2] = make_name("bfloat16");
        names[6][1] = make_name("bool");
        names[17][0] = make_name("float4_e2m1fn");
    }
};

constexpr DtypeNames kDtypes;

const Name* find_dtype(const TensorView& view) {
    const unsigned bits = view.dtype_bits;
    if (view.dtype_code >= kNumCodes || bits < 4 || (bits & (bits - 1))) return nullptr;
    const Name& name = kDtypes.names[view.dtype_code][__builtin_ctz(bits) - 2];
    return name.length ? &name : nullptr;
}

constexpr Name kDlpack = make_name("dlpack"), kCpu = make_name("cpu"), kCuda = make_name("cuda:");

// Writes a name at `text`, without a terminating 0, and returns its end; so do the others.
char* write_number(char* text, int64_t number) {
    if (number >= 0 && number < 100) {  // nearly always
        if (number >= 10) *text++ = static_cast<char>('0' + number / 10);
        *text++ = static_cast<char>('0' + number % 10);
        return text;
    }
    uint64_t rest = number < 0 ? -static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    if (number < 0) *text++ = '-';
    char digits[20];
    int count = 0;
    do digits[count++] = static_cast<char>('0' + rest % 10);
    while (rest /= 10);
    while (count) *text++ = digits[--count];
    return text;
}

// Device types without a row are "dlpack" and their number.
Name device_prefix(int32_t device_type) {
    switch (device_type) {
        case kDLCPU: return kCpu;
        case kDLCUDA: return kCuda;
        case 3: return make_name("cuda_host:");
        case 7: return make_name("vulkan:");
        case 8: return make_name("metal:");
        case 10: return make_name("rocm:");
        case 11: return make_name("rocm_host:");
        case 13: return make_name("cuda_managed:");
        case 14: return make_name("oneapi:");
        default: break;
    }
    Name name = kDlpack;
    char* end = write_number(name.text + name.length, device_type);
    *end++ = ':';
    name.length = static_cast<uint8_t>(end - name.text);
    return name;
}

char* write_dtype_name(char* text, const TensorView& view) {
    if (const Name* name = find_dtype(view)) {
        text = write(text, *name);
    } else {
        text = write_number(write(text, kDlpack), view.dtype_code);
        *text++ = '_';
        text = write_number(text, view.dtype_bits);
    }
    if (view.dtype_lanes == 1) return text;
    *text++ = '_';
    *text++ = 'x';
    return write_number(text, view.dtype_lanes);
}

char* write_device_name(char* text, const TensorView& view) {
    if (view.device_type == kDLCPU) return write(text, kCpu);
    return write_number(write(text, device_prefix(view.device_type)), view.device_index);
}

// By ds_python_library.
constexpr const char* kLibraryNames[] = {"other", "torch", "numpy", "jax", "cupy", "warp", "doorstep"};
static_assert(DS_PYTHON_LIBRARY_TORCH == 1 && DS_PYTHON_LIBRARY_DOORSTEP == 6);

const char* library_name(const TensorView& view) {
    return kLibraryNames[view.library <= DS_PYTHON_LIBRARY_DOORSTEP ? view.library : DS_PYTHON_LIBRARY_OTHER];
}

// ---- Signatures ----

template <size_t kBytes>
char* write(char* text, const char (&literal)[kBytes]) {
    memcpy(text, literal, kBytes - 1);
    return text + kBytes - 1;
}

char* write_library(char* text, const TensorView& view) {
    if (view.library == DS_PYTHON_LIBRARY_TORCH) return write(text, "[torch,D");
    *text++ = '[';
    const char* name = library_name(view);
    const size_t length = strlen(name);
    memcpy(text, name, length);
    return write(text + length, ",D");
}

char* write_shape(char* text, const TensorView& view) {
    for (int axis = 0; axis < view.rank; ++axis) {
        text = write_number(text, view.shape[axis]);
        *text++ = 'x';
    }
    return text - (view.rank > 0);
}

}  // namespace

uint64_t write_signature(const TensorView& view, char* text) {
    DS_ASSERT(view.rank >= 0 && view.rank <= kMaxRank);
    char* end = write_library(text, view);
    end = write(write_number(end, view.rank), ",S");
    end = write_dtype_name(end, view);
    *end++ = ',';
    end = write_device_name(end, view);
    *end++ = ',';
    end = write_shape(end, view);
    if (!view.contiguous) end = write(end, ",strided");
    if (view.requires_grad) end = write(end, ",grad");
    if (view.read_only) end = write(end, ",readonly");
    *end++ = ']';
    *end = 0;
    DS_ASSERT(end - text < DS_PYTHON_SIGNATURE_BYTES);
    return static_cast<uint64_t>(end - text);
}

// ---- Descriptions ----

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
    const char* const end = write_dtype_name(name, view_of(self));
    DS_ASSERT(end - name < kNameBytes);
    return make_text(name, end);
}
PyObject* get_device(PyObject* self, void*) {
    char name[kNameBytes];
    const char* const end = write_device_name(name, view_of(self));
    DS_ASSERT(end - name < kNameBytes);
    return make_text(name, end);
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
    DS_ASSERT(description_type && head_bytes >= 2 * sizeof(void*));
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

using namespace doorstep;

ds_status ds_python_signature(const ds_python_tensor* tensor, char* text, uint64_t* length) {
    if (const ds_status status = check_view(tensor)) return status;
    if (!text) return fail_null("text");
    const uint64_t written = write_signature(*tensor, text);
    if (length) *length = written;
    return DS_STATUS_OK;
}
