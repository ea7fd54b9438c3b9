// Exporting tensors to other libraries without a copy.
#include "runtime/dlpack.h"

#include <atomic>
#include <new>
#include <type_traits>

#include "api/arguments.h"
#include "api/call.h"
#include "exec/tensors.h"
#include "runtime/reference.h"

namespace doorstep {
namespace {

// The memory that a managed tensor references, and its shape and strides. Managed: DLManagedTensor or
// DLManagedTensorVersioned.
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
    DS_ASSERT(static_cast<Export<Managed>*>(self->manager) == reinterpret_cast<Export<Managed>*>(self));
    delete static_cast<Export<Managed>*>(self->manager);
    live_counts.exports.fetch_sub(1, std::memory_order_relaxed);
}

DLDevice device_of(const Memory& memory) {
    return {memory.device_kind() == DS_DEVICE_CUDA ? kDLCUDA : kDLCPU, memory.device_index()};
}

// The description has been checked. The managed tensor keeps the memory alive until its deleter runs.
template <class Managed>
ds_status export_tensor(Ref<Memory> memory, const ds_tensor_info& info, void** managed) {
    auto* made = new (std::nothrow) Export<Managed>{};
    if (!made) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "", "release tensors that are no longer needed",
                    "no memory is left for a DLPack tensor");
    }
    DS_ASSERT(info.rank >= 0 && info.rank <= DS_MAX_DIMENSIONS);
    const DLDataType dtype = kDataTypes[info.dtype];
    for (int axis = 0; axis < info.rank; ++axis) {
        made->shape[axis] = info.shape[axis];
        DS_ASSERT(info.strides[axis] % (dtype.bits / 8) == 0);
        made->strides[axis] = info.strides[axis] / (dtype.bits / 8);
    }
    made->managed.tensor = {info.data, device_of(*memory), info.rank, dtype, made->shape, made->strides, 0};
    made->managed.manager = made;
    made->managed.deleter = delete_export<Managed>;
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
        made->managed.major = 1;
        made->managed.minor = 0;
        made->managed.flags = info.access == DS_ACCESS_READ ? kDLPackReadOnly : 0;
    }
    made->memory = std::move(memory);
    live_counts.exports.fetch_add(1, std::memory_order_relaxed);
    *managed = &made->managed;
    return DS_STATUS_OK;
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_dlpack_export(ds_memory memory, const ds_tensor_info* info, int32_t versioned, void** managed) {
    if (const ds_status status = check_struct(info, "info")) return status;
    if (!managed) return fail_null("managed");
    if (const ds_status status = check_range("versioned", "pass 0 or 1", versioned, 0, 1)) return status;
    Ref<Memory> found = memories.find(memory, "memory");
    if (!found) return last_status();
    if (const ds_status status = check_description(*found, *info)) return status;
    return versioned ? export_tensor<DLManagedTensorVersioned>(std::move(found), *info, managed)
                     : export_tensor<DLManagedTensor>(std::move(found), *info, managed);
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
