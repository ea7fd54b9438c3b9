#include "interop/dlpack.h"

#include <atomic>
#include <new>
#include <type_traits>

#include "exec/tensor_table.h"
#include "runtime/live_count.h"

namespace doorstep {
namespace {

// The memory that a managed tensor references, and its shape and strides.
template <class Managed>
struct Export {
    Managed managed;
    Ref<Memory> memory;
    int64_t shape[DS_MAX_DIMENSIONS];
    int64_t strides[DS_MAX_DIMENSIONS];
};

// May run on any thread, with or without Python, at any time before the process ends.
template <class Managed>
void delete_export(Managed* self) {
    delete static_cast<Export<Managed>*>(self->manager);
    live_counts.exports.fetch_sub(1, std::memory_order_relaxed);
}

DLDevice device_of(const Memory& memory) {
    return {memory.device_kind() == DS_DEVICE_CUDA ? kDLCUDA : kDLCPU, memory.device_index()};
}

template <class Managed>
bool destroy_if_named(PyObject* capsule, const char* name) {
    if (!python().PyCapsule_IsValid(capsule, name)) return false;
    delete_exported(static_cast<Managed*>(python().PyCapsule_GetPointer(capsule, name)));
    return true;
}

}  // namespace

DLDataType data_type_of(int32_t dtype) {
    switch (dtype) {
        case DS_DTYPE_UINT8: return {kDLUInt, 8, 1};
        case DS_DTYPE_INT32: return {kDLInt, 32, 1};
        case DS_DTYPE_UINT32: return {kDLUInt, 32, 1};
        default: return {kDLFloat, 32, 1};
    }
}

template <class Managed>
Managed* export_tensor(const Ref<Memory>& memory, const ds_tensor_info& info) {
    auto* made = new (std::nothrow) Export<Managed>{};
    if (!made) return nullptr;
    made->memory = memory;
    for (int axis = 0; axis < info.rank; ++axis) {
        made->shape[axis] = info.shape[axis];
        made->strides[axis] = info.strides[axis] / dtype_bytes(info.dtype);
    }
    Managed& managed = made->managed;
    managed.tensor = {info.data,   device_of(*memory), info.rank, data_type_of(info.dtype),
                      made->shape, made->strides,      0};
    managed.manager = made;
    managed.deleter = delete_export<Managed>;
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
        managed.major = 1;
        managed.minor = 0;
        managed.flags = info.access == DS_ACCESS_READ ? kDLPackReadOnly : 0;
    }
    live_counts.exports.fetch_add(1, std::memory_order_relaxed);
    return &managed;
}

template DLManagedTensor* export_tensor(const Ref<Memory>& memory, const ds_tensor_info& info);
template DLManagedTensorVersioned* export_tensor(const Ref<Memory>& memory, const ds_tensor_info& info);

void destroy_capsule(PyObject* capsule) {
    if (!find_python()) return;
    if (destroy_if_named<DLManagedTensorVersioned>(capsule, "dltensor_versioned")) return;
    destroy_if_named<DLManagedTensor>(capsule, "dltensor");
}

}  // namespace doorstep
