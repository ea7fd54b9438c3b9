#include "runtime/cuda/context.h"

#include <string.h>

#include <algorithm>
#include <new>
#include <utility>

#include "runtime/cuda/driver.h"
#include "runtime/status.h"

namespace doorstep {

// ---- Devices ----

ds_status count_devices(int* count) {
    const Driver* driver = find_driver();
    if (!driver) return last_status();
    if (const CUresult result = driver->cuDeviceGetCount(count)) return fail_driver(result, "cuDeviceGetCount");
    *count = std::min(*count, kMostDevices);
    return DS_STATUS_OK;
}

ds_status find_device(int64_t index, CUdevice* device) {
    int count;
    if (const ds_status status = count_devices(&count)) return status;
    if (index < 0 || index >= count) {
        return fail(DS_STATUS_NO_DEVICE, "device_index",
                    "see nvidia-smi for the devices, and CUDA_VISIBLE_DEVICES for hidden ones",
                    "there is no CUDA device %ld; the driver has %d, counted from 0", index, count);
    }
    const CUresult result = driver().cuDeviceGet(device, static_cast<int>(index));
    return result ? fail_driver(result, "cuDeviceGet", "device_index") : DS_STATUS_OK;
}

ds_status find_current_device(int64_t* index) {
    int count;
    if (const ds_status status = count_devices(&count)) return status;
    *index = 0;
    CUdevice current, device;
    const CUresult result = driver().cuCtxGetDevice(&current);
    if (result == CUDA_ERROR_INVALID_CONTEXT) return DS_STATUS_OK;
    if (result) return fail_driver(result, "cuCtxGetDevice");
    for (int64_t i = 0; i < count; ++i) {
        if (const ds_status status = find_device(i, &device)) return status;
        if (device == current) *index = i;
    }
    return DS_STATUS_OK;
}

ds_status device_attribute(CUdevice device, CUdevice_attribute attribute, int* value) {
    const CUresult result = driver().cuDeviceGetAttribute(value, attribute, device);
    return result ? fail_driver(result, "cuDeviceGetAttribute") : DS_STATUS_OK;
}

ds_status device_uuid(CUdevice device, uint8_t* uuid) {
    CUuuid asked;
    if (const CUresult result = driver().cuDeviceGetUuid(&asked, device)) return fail_driver(result, "cuDeviceGetUuid");
    memcpy(uuid, asked.bytes, sizeof asked.bytes);
    return DS_STATUS_OK;
}

ds_status compute_capability(CUdevice device, int* capability) {
    int major, minor;
    if (const ds_status status = device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major)) {
        return status;
    }
    if (const ds_status status = device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor)) {
        return status;
    }
    *capability = major * 10 + minor;
    return DS_STATUS_OK;
}

// ---- Context ----

Context::Context(int device_index, CUdevice device) : Resource(device_index), device_(device) {}

Ref<Context> Context::of_device(int64_t device_index) {
    CUdevice device;
    if (find_device(device_index, &device)) return {};
    const Ref<Context> context =
        check_allocated(new (std::nothrow) Context(static_cast<int>(device_index), device));
    if (!context || context->ask_device()) return {};
    CUcontext handle;
    if (const CUresult result = driver().cuDevicePrimaryCtxRetain(&handle, device)) {
        fail_driver(result, "cuDevicePrimaryCtxRetain");
        return {};
    }
    context->kept_ = keeps_primary_context(device);
    if (Ref<Resource> known = context->own_unless_known(handle)) {
        context->release();
        return resource_cast<Context>(std::move(known));
    }
    return context;
}

Context::~Context() {
    if (disown()) release();
}

void Context::release() const {
    if (!kept_) driver().cuDevicePrimaryCtxRelease(device_);
}

ds_status Context::ask_device() {
    int has_pools;
    if (const ds_status status = doorstep::compute_capability(device_, &compute_capability_)) return status;
    if (const ds_status status = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &has_pools)) return status;
    has_memory_pools_ = has_pools != 0;
    return DS_STATUS_OK;
}

ds_status Context::attribute(CUdevice_attribute attribute, int* value) const {
    return device_attribute(device_, attribute, value);
}

ds_status Context::free_memory(size_t* free_bytes, size_t* total_bytes) const {
    return call("cuMemGetInfo", "",
                [&](const Driver& driver) { return driver.cuMemGetInfo(free_bytes, total_bytes); });
}

ds_status Context::fail_allocation(CUresult result, const char* function, uint64_t bytes) const {
    const ds_status status = fail_driver(result, function);
    size_t free_bytes, total_bytes;
    if (result == CUDA_ERROR_OUT_OF_MEMORY && driver().cuMemGetInfo(&free_bytes, &total_bytes) == CUDA_SUCCESS) {
        add_detail("; requested %lu bytes, device %d has %zu free of %zu", bytes,
                   device_index(), free_bytes, total_bytes);
    }
    return status;
}

ds_status Context::synchronize() const {
    return call("cuCtxSynchronize", "", [&](const Driver&) { return wait_for_everything(); });
}

CUresult Context::wait_for_everything() const {
    MutexGuard guard(capture_mutex);
    return driver().cuCtxSynchronize();
}

// ---- CurrentContext ----

CurrentContext::CurrentContext(const Context& context) {
    CUcontext current;
    relaxed_ = succeeded("cuThreadExchangeStreamCaptureMode", driver().cuThreadExchangeStreamCaptureMode(&mode_));
    if (!relaxed_ || !succeeded("cuCtxGetCurrent", driver().cuCtxGetCurrent(&current))) return;
    if (current == context.handle()) return;
    pushed_ = succeeded("cuCtxPushCurrent", driver().cuCtxPushCurrent(context.handle()));
}

ds_status CurrentContext::status() const {
    return result_ ? fail_driver(result_, function_) : DS_STATUS_OK;
}

ds_status CurrentContext::restore() {
    leave();
    return status();
}

bool CurrentContext::succeeded(const char* function, CUresult result) {
    if (result) {
        result_ = result;
        function_ = function;
    }
    return result == CUDA_SUCCESS;
}

void CurrentContext::leave() {
    CUcontext popped;
    if (std::exchange(relaxed_, false)) {
        succeeded("cuThreadExchangeStreamCaptureMode", driver().cuThreadExchangeStreamCaptureMode(&mode_));
    }
    if (std::exchange(pushed_, false)) succeeded("cuCtxPopCurrent", driver().cuCtxPopCurrent(&popped));
}

// ---- Captures ----

constinit Mutex capture_mutex;

}  // namespace doorstep
