// Exporting tensors to other libraries.
#include "api/call.h"
#include "api/tensor_description.h"
#include "interop/dlpack.h"
#include "interop/python/fast_calls.h"

namespace doorstep {
namespace {

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

ds_status ds_python_bind(void* raise_last_error, void** fast_calls) {
    if (!raise_last_error) return fail_null("raise_last_error");
    if (!fast_calls) return fail_null("fast_calls");
    if (const ds_status status = check_python()) return status;
    *fast_calls = make_fast_calls(static_cast<PyObject*>(raise_last_error));
    if (*fast_calls) return DS_STATUS_OK;
    return fail(DS_STATUS_OUT_OF_MEMORY, "", "free some memory", "no memory is left for the library's builtins");
}

void ds_capsule_destructor(void* capsule) { destroy_capsule(static_cast<PyObject*>(capsule)); }
