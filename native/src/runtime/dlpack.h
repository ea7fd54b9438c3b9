// DLPack: tensors that libraries hand to each other without a copy. Declares the structs of its specification that are
// used here: those of 1.0, and of 1.3 the C exchange API, by which native code reads and creates tensors of a library
// without calling Python. A library provides it as the attribute `__dlpack_c_exchange_api__` of its tensor type: a
// capsule named "dlpack_exchange_api" with the address of a static DLPackExchangeAPI.
#pragma once

#include <stdint.h>

#include "doorstep/library.h"

namespace doorstep {

// Device types that are used by name.
inline constexpr int32_t kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLCUDAManaged = 13;

// Type codes of elements.
inline constexpr uint8_t kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLComplex = 5, kDLBool = 6;

// Flags of a DLManagedTensorVersioned.
inline constexpr uint64_t kDLPackReadOnly = 1, kDLPackIsCopied = 2;

struct DLDevice {
    int32_t device_type;
    int32_t device_id;
};

struct DLDataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
};

struct DLTensor {
    void* data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t* shape;
    int64_t* strides;  // in elements
    uint64_t byte_offset;
};

// "dltensor": before DLPack 1.0; has no read-only flag.
struct DLManagedTensor {
    DLTensor tensor;
    void* manager;
    void (*deleter)(DLManagedTensor* self);
};

// "dltensor_versioned": DLPack 1.0.
struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void* manager;
    void (*deleter)(DLManagedTensorVersioned* self);
    uint64_t flags;
    DLTensor tensor;
};

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

// DLPack's type of each ds_dtype.
inline constexpr DLDataType kDataTypes[] = {
#define DS_DLPACK_TYPE(name, number, type, dlpack_code) {dlpack_code, 8 * sizeof(type), 1},
    DS_DTYPE_TABLE(DS_DLPACK_TYPE)
#undef DS_DLPACK_TYPE
};
#define DS_PLACE(name, number, type, dlpack_code) static_assert(kDataTypes[number].bits == 8 * sizeof(type));
DS_DTYPE_TABLE(DS_PLACE)
#undef DS_PLACE

// Calls the deleter of a managed tensor, if there is one.
template <class Managed>
void delete_exported(Managed* managed) {
    if (managed->deleter) managed->deleter(managed);
}

}  // namespace doorstep
