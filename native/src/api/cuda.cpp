// The CUDA driver and its devices.
#include "api/call.h"
#include "api/fork.h"
#include "exec/cuda/kernel_module.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/device.h"

namespace doorstep {
namespace {

// All numbers of agents have images for the same architectures.
constexpr int kAnyNumAgents = 1;

ds_status describe_device(const Context& context, ds_cuda_device_info* info) {
    if (const CUresult result = driver().cuDeviceGetName(info->name, sizeof info->name, context.device())) {
        return fail_driver(result, "cuDeviceGetName");
    }
    if (const ds_status status = context.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &info->multiprocessors)) {
        return status;
    }
    if (const ds_status status = device_uuid(context.device(), info->uuid)) return status;
    size_t free_bytes, total_bytes;
    if (const ds_status status = context.free_memory(&free_bytes, &total_bytes)) return status;
    info->free_bytes = static_cast<int64_t>(free_bytes);
    info->total_bytes = static_cast<int64_t>(total_bytes);
    info->compute_capability = context.compute_capability();
    info->kernel_source = find_kernel_source(kAnyNumAgents, info->compute_capability);
    return DS_STATUS_OK;
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_cuda_get_driver(ds_cuda_driver_info* info) {
    if (const ds_status status = check_struct(info, "info")) return status;
    if (!install_fork_handlers()) return fail_no_memory();
    int count;
    if (const ds_status status = count_devices(&count)) return status;
    info->version = driver().version;
    info->minimum_version = kMinimumDriverVersion;
    info->device_count = count;
    return DS_STATUS_OK;
}

ds_status ds_cuda_get_device(int64_t device_index, ds_cuda_device_info* info) {
    if (const ds_status status = check_struct(info, "info")) return status;
    if (!install_fork_handlers()) return fail_no_memory();
    const Ref<Context> context = Context::of_device(device_index);
    if (!context) return last_status();
    ds_cuda_device_info described = *info;
    if (const ds_status status = describe_device(*context, &described)) return status;
    *info = described;
    return DS_STATUS_OK;
}
