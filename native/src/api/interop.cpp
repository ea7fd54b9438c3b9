// Handing tensors to other libraries.
#include "api/call.h"
#include "interop/dlpack.h"

namespace doorstep {
namespace {

ds_status fail_description(const char* what) {
    return fail(DS_STATUS_INVALID_ARGUMENT, "info", "pass what ds_simulator_get_tensor or _get_state filled in",
                "the tensor description has %s", what);
}

// Bytes from info.data to beyond the last element. -1 unless strides are whole elements, not negative, and the
// product stays in range.
int64_t extent(const ds_tensor_info& info) {
    int64_t last = 0;
    bool empty = false;
    for (int axis = 0; axis < info.rank; ++axis) {
        const int64_t length = info.shape[axis], stride = info.strides[axis];
        if (length < 0 || stride < 0 || stride % dtype_bytes(info.dtype) != 0) return -1;
        empty = empty || length == 0;
        int64_t reach;
        if (length > 0 && (__builtin_mul_overflow(length - 1, stride, &reach) ||
                           __builtin_add_overflow(last, reach, &last))) {
            return -1;
        }
    }
    return empty ? 0 : last + dtype_bytes(info.dtype);
}

ds_status check_description(const Memory& memory, const ds_tensor_info& info) {
    if (info.dtype < DS_DTYPE_UINT8 || info.dtype > DS_DTYPE_FLOAT32) return fail_description("an unknown dtype");
    if (info.access != DS_ACCESS_READ && info.access != DS_ACCESS_READ_WRITE) {
        return fail_description("an unknown access");
    }
    if (info.rank < 0 || info.rank > DS_MAX_DIMENSIONS) return fail_description("a rank outside 0 to 4");
    const int64_t bytes = extent(info);
    if (bytes < 0) return fail_description("a shape or strides that no tensor has");
    if (!memory.contains(info.data, bytes)) return fail_description("elements outside the memory");
    return DS_STATUS_OK;
}

template <class Managed>
ds_status export_to(const Ref<Memory>& memory, const ds_tensor_info& info, void** managed) {
    Managed* made = export_tensor<Managed>(memory, info);
    if (!made) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "", "release tensors that are no longer needed",
                    "no memory is left for a DLPack tensor");
    }
    *managed = made;
    return DS_STATUS_OK;
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_dlpack_export(ds_memory memory, const ds_tensor_info* info, int32_t versioned, void** managed) {
    if (const ds_status status = check_struct(info, "info")) return status;
    if (!managed) return fail_null("managed");
    if (const ds_status status = check_range("versioned", "pass 0 or 1", versioned, 0, 1)) return status;
    const Ref<Memory> found = memories.find(memory);
    if (!found) return fail_closed("memory");
    if (const ds_status status = check_description(*found, *info)) return status;
    return versioned ? export_to<DLManagedTensorVersioned>(found, *info, managed)
                     : export_to<DLManagedTensor>(found, *info, managed);
}

ds_status ds_dlpack_delete(void* managed, int32_t versioned) {
    if (!managed) return fail_null("managed");
    if (const ds_status status = check_range("versioned", "pass 0 or 1", versioned, 0, 1)) return status;
    if (versioned) {
        delete_exported(static_cast<DLManagedTensorVersioned*>(managed));
    } else {
        delete_exported(static_cast<DLManagedTensor*>(managed));
    }
    return DS_STATUS_OK;
}

ds_status ds_python_bind(void* capsule_is_valid, void* capsule_get_pointer) {
    if (!capsule_is_valid) return fail_null("capsule_is_valid");
    if (!capsule_get_pointer) return fail_null("capsule_get_pointer");
    bind_python(reinterpret_cast<PyCapsuleIsValid>(capsule_is_valid),
                reinterpret_cast<PyCapsuleGetPointer>(capsule_get_pointer));
    return DS_STATUS_OK;
}

void ds_capsule_destructor(void* capsule) { destroy_capsule(capsule); }
