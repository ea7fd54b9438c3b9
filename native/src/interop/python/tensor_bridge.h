// Reads tensors of other libraries in native code: PyTorch through DLPack's C exchange API, numpy through the buffer
// protocol, all others, and unusual tensors, through doorstep's reader in Python (pkg/doorstep/_tensors, via
// callbacks.py). The reader supports every kind of tensor, and it alone refuses tensors and states the reason.
//
// Everything here needs the GIL, may be called from any thread that holds it, and leaves no Python exception set:
// failures are a status and the thread's error. References are borrowed unless documented otherwise.
#pragma once

#include <stdint.h>

#include "interop/python/python_api.h"
#include "runtime/dlpack.h"

namespace doorstep {

// Metadata of one tensor. It owns nothing: the memory is the object's, valid while the object exists unchanged.
using TensorView = ds_python_tensor;

inline constexpr int kMaxRank = sizeof TensorView::shape / sizeof(int64_t);

// Bytes of one element, rounded up.
inline int64_t element_bytes(const TensorView& view) { return (int64_t{view.dtype_bits} * view.dtype_lanes + 7) / 8; }

// ---- Reading ----

// Requirements on a tensor; INVALID_ARGUMENT if it does not meet them.
struct ReadRules {
    bool requires_grad_allowed = false;
    bool written = false;  // the caller will write to the memory: a read-only one is refused
    // The CUstream that the caller will work on; libraries without the exchange API order their work before it.
    // DS_STREAM_OWN: the caller orders.
    uint64_t stream = DS_STREAM_OWN;
    const char* argument = "tensor";  // name in messages
};

// For callers that only read metadata: accepts every tensor that is in memory.
inline constexpr ReadRules kAnything = {.requires_grad_allowed = true};

// Reads one tensor. index: its index among many objects, for the message; -1: it is the only one. On failure *view is
// undefined.
ds_status read_tensor(PyObject* object, const ReadRules& rules, TensorView* view, int64_t index = -1);

// The library's current stream on a device of a DLPack device type: a CUstream for CUDA.
ds_status current_stream(PyObject* object, int32_t device_type, int64_t device_index, uint64_t* stream);

// A new tensor like this one, for libraries without the exchange API. *made is a new reference.
ds_status make_like_by_python(PyObject* object, bool zeros, void** made);

// Moves the current Python exception to the thread's error; `status` unless the exception has its own.
ds_status take_python_error(ds_status status, const char* argument);

// ---- Types: determined by the reader when a type first occurs, then cached ----

// Numbers shared with pkg/doorstep/_tensors/types.py.
enum class TensorKind : uint8_t {
    kNone = 0,      // not a tensor
    kTorch = 1,     // PyTorch, whose exchange API reports too little: see TorchLayout
    kExchange = 2,  // another library with the exchange API
    kBuffer = 3,    // numpy
    kReader = 4,    // all other libraries
};

// Where a tensor of PyTorch shows whether it is plain: the exchange API reports the memory of conjugate, negative, fake
// and wrapped tensors as if they were. Offsets in bytes, found by experiment on this version of PyTorch
// (pkg/doorstep/_native/object_layout.py).
struct TorchLayout {
    uint32_t implementation;  // in the Python object: the address of the tensor's implementation
    uint32_t keys;            // in that: the set of dispatch keys, 64 bits
    uint32_t gradient;        // in that: a pointer that is null if the tensor does not require grad
    uint32_t storage;         // in that: the address of the storage, which may have been resized
    uint32_t storage_data;    // in the storage: the address of its memory
    uint32_t storage_bytes;   // in the storage: the size of its memory, 64 bits
};

struct TensorType {
    PyTypeObject* type;  // an owned reference
    TensorKind kind;
    uint8_t library;  // ds_python_library
    bool is_own;      // a class of the library itself, not one derived from it
    // Whether reading `requires_grad` of a tensor runs no user code.
    bool has_plain_attributes;
    TorchLayout layout;  // for kTorch
    const DLPackExchangeAPI* api;  // for kTorch and kExchange
};

// The examined type of an object; valid until this thread's next call. Null, with the thread's error set, on failure.
const TensorType* find_tensor_type(PyObject* object);

// The same for a type itself.
const TensorType* find_tensor_type_of(PyTypeObject* type);

// ---- What Python gets of a tensor: a signature (a short text), or a doorstep.interop.TensorDescription ----

// See ds_python_signature(). Returns the length.
uint64_t write_signature(const TensorView& view, char* text);

// A new type derived from a Python class without slots, which defines how descriptions are printed and compared. Create
// it before the first description. Null, with Python's exception set, on failure.
PyObject* make_description_type(PyObject* base);

// A new description. Null, with Python's exception set, on failure.
PyObject* make_description(const TensorView& view);

// ---- First steps of entry points ----

// For a call on a Python object with a result: neither is null, and Python is visible.
ds_status check_call(const void* object, const char* object_name, const void* result, const char* result_name);

ds_status check_view(const TensorView* tensor);

}  // namespace doorstep
