// Tensors of other libraries, read from native code: PyTorch through DLPack's C exchange API, numpy through the buffer
// protocol, everything else, and whatever looks unusual, through doorstep's reader in Python.
//
// Everything here needs the GIL, may be called from any thread that has it, and leaves no Python exception behind:
// failures are a status and the thread's error. References are borrowed unless said otherwise.
#pragma once

#include <stdint.h>

#include "doorstep.h"
#include "interop/python/python_api.h"

namespace doorstep {

// Metadata of one tensor. It holds nothing: the memory is the object's, valid while the object is kept unchanged.
using TensorView = ds_python_tensor;

// What a tensor must be like. Fails with INVALID_ARGUMENT otherwise.
struct ReadRules {
    bool requires_grad_allowed = false;
    bool written = false;  // the caller will write to the memory: a read-only one is refused
    // The CUstream that the caller will work on, which libraries without the exchange API are told to order their work
    // before; DS_STREAM_OWN: the caller orders.
    uint64_t stream = DS_STREAM_OWN;
    const char* argument = "tensor";  // name for messages
};

// For who only looks: nothing is refused that lies in memory.
inline constexpr ReadRules kAnything = {.requires_grad_allowed = true};

// Reads one tensor. On failure *view is undefined.
ds_status read_tensor(PyObject* object, const ReadRules& rules, TensorView* view);

// The same for one of many; the message names its index.
ds_status read_tensor_of_many(PyObject* object, int64_t index, const ReadRules& rules, TensorView* view);

// Reads many. On failure all views are undefined.
ds_status read_tensors(PyObject* const* objects, uint64_t count, const ReadRules& rules, TensorView* views);

// Whether read_tensor() knows objects of this kind. False for what has no `__dlpack__`.
ds_status is_tensor(PyObject* object, bool* answer);

inline constexpr int kMaxRank = sizeof TensorView::shape / sizeof(int64_t);

// Bytes of one element; those of less than a byte each are rounded up.
inline int64_t element_bytes(const TensorView& view) { return (int64_t{view.dtype_bits} * view.dtype_lanes + 7) / 8; }

// The stream that the library of this tensor works on now on a device of a DLPack device type: a CUstream for CUDA.
ds_status current_stream(PyObject* object, int32_t device_type, int64_t device_index, uint64_t* stream);

}  // namespace doorstep
