// DLPack: exporting tensors to other libraries without a copy. Declares the structs of the DLPack 1.0 specification
// that are used here.
#pragma once

#include <stdint.h>

#include "doorstep.h"
#include "interop/python/python_api.h"
#include "runtime/memory.h"

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

// A managed tensor over `memory`, which it keeps alive until its deleter runs; Managed is one of the two structs
// above. Null if memory ran out. The description has been checked.
template <class Managed>
Managed* export_tensor(const Ref<Memory>& memory, const ds_tensor_info& info);

// DLPack's type of a ds_dtype, for those that a simulator's tensors have.
DLDataType data_type_of(int32_t dtype);

// Calls the deleter, if there is one.
template <class Managed>
void delete_exported(Managed* managed) {
    if (managed->deleter) managed->deleter(managed);
}

// Deletes the tensor of a capsule that was not consumed: a consumer renames the capsule.
void destroy_capsule(PyObject* capsule);

}  // namespace doorstep
