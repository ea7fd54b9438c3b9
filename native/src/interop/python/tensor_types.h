// How to read tensors of a Python type: determined by doorstep's Python reader when a type first occurs, then cached.
#pragma once

#include <stdint.h>

#include "interop/dlpack_exchange.h"
#include "interop/python/python_api.h"

namespace doorstep {

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

}  // namespace doorstep
