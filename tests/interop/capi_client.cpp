// A third-party extension: gets the C API from the capsule of doorstep.capi(), and links neither doorstep nor Python.
#include <dlfcn.h>

#include "doorstep_api.h"

namespace {

struct PyObject;
using GetPointer = void* (*)(PyObject* capsule, const char* name);

constexpr int kNoCapsule = -1, kOtherVersion = -2;

// The table, or null with Python's exception set.
const ds_api* find_api(PyObject* capsule) {
    const auto get_pointer = reinterpret_cast<GetPointer>(dlsym(RTLD_DEFAULT, "PyCapsule_GetPointer"));
    return static_cast<const ds_api*>(get_pointer(capsule, DS_API_CAPSULE));
}

}  // namespace

// Steps a CPU simulator `steps` times and sums its steps_remaining; returns a ds_status, or one of the above.
DS_API int client_run(PyObject* capsule, uint64_t simulator, int steps, int64_t* sum) {
    const ds_api* api = find_api(capsule);
    if (!api) return kNoCapsule;
    if (api->abi_version != DS_ABI_VERSION || api->struct_size < sizeof(ds_api)) return kOtherVersion;
    for (int step = 0; step < steps; ++step) {
        if (const ds_status status = api->simulator_step(simulator)) return status;
    }
    ds_tensor_info info;
    info.struct_size = sizeof info;
    if (const ds_status status = api->simulator_get_tensor(simulator, DS_TENSOR_steps_remaining, &info)) return status;
    *sum = 0;
    for (int64_t i = 0; i < info.shape[0] * info.shape[1]; ++i) *sum += static_cast<const int32_t*>(info.data)[i];
    return DS_STATUS_OK;
}
