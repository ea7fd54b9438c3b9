// DLPack's C exchange API: native code reads and creates tensors of a library without calling Python. A library
// provides it as the attribute `__dlpack_c_exchange_api__` of its tensor type: a capsule named "dlpack_exchange_api"
// with the address of a static DLPackExchangeAPI. The structs are those of the DLPack 1.3 specification.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "interop/dlpack.h"

namespace doorstep {

struct DLPackVersion {
    uint32_t major;
    uint32_t minor;
};

// The common header of every version of the struct.
struct DLPackExchangeAPIHeader {
    DLPackVersion version;
    DLPackExchangeAPIHeader* prev_api;  // the API of an older major version, or null
};

// All functions return 0, or -1 with a Python exception set. They do not wait for the device: their tensors are ready
// for work on the library's current stream.
struct DLPackExchangeAPI {
    DLPackExchangeAPIHeader header;
    // Memory like the prototype's. On failure calls set_error(error_context, kind, message) instead of Python.
    int (*managed_tensor_allocator)(DLTensor* prototype, DLManagedTensorVersioned** made, void* error_context,
                                    void (*set_error)(void* error_context, const char* kind, const char* message));
    int (*managed_tensor_from_py_object_no_sync)(void* object, DLManagedTensorVersioned** made);
    // Takes ownership of the tensor, except when it fails: then its deleter has not run.
    int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned* tensor, void** object);
    // May be null. The object owns the result, which is valid until the object is used otherwise.
    int (*dltensor_from_py_object_no_sync)(void* object, DLTensor* tensor);
    int (*current_work_stream)(int32_t device_type, int32_t device_id, void** stream);
};

}  // namespace doorstep
