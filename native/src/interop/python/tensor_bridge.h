// Reads tensors of other libraries in native code: PyTorch through DLPack's C exchange API, numpy through the buffer
// protocol, all others, and unusual tensors, through doorstep's reader in Python.
//
// Everything here needs the GIL, may be called from any thread that holds it, and leaves no Python exception set:
// failures are a status and the thread's error. References are borrowed unless documented otherwise.
#pragma once

#include <stdint.h>

#include "doorstep.h"
#include "interop/python/python_api.h"

namespace doorstep {

// Metadata of one tensor. It owns nothing: the memory is the object's, valid while the object exists unchanged.
using TensorView = ds_python_tensor;

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

// Reads one tensor. On failure *view is undefined.
ds_status read_tensor(PyObject* object, const ReadRules& rules, TensorView* view);

// Reads one of many; the message names its index.
ds_status read_tensor_of_many(PyObject* object, int64_t index, const ReadRules& rules, TensorView* view);

// Reads many. On failure all views are undefined.
ds_status read_tensors(PyObject* const* objects, uint64_t count, const ReadRules& rules, TensorView* views);

// Whether read_tensor() supports objects of this type. False without `__dlpack__`.
ds_status is_tensor(PyObject* object, bool* answer);

inline constexpr int kMaxRank = sizeof TensorView::shape / sizeof(int64_t);

// Bytes of one element, rounded up.
inline int64_t element_bytes(const TensorView& view) { return (int64_t{view.dtype_bits} * view.dtype_lanes + 7) / 8; }

// The library's current stream on a device of a DLPack device type: a CUstream for CUDA.
ds_status current_stream(PyObject* object, int32_t device_type, int64_t device_index, uint64_t* stream);

}  // namespace doorstep
