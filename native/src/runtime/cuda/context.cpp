#include "runtime/cuda/context.h"

#include <new>

#include "runtime/cuda/device.h"
#include "runtime/status.h"

namespace doorstep {

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
        add_detail("; requested %llu bytes, device %d has %zu free of %zu", static_cast<unsigned long long>(bytes),
                   device_index(), free_bytes, total_bytes);
    }
    return status;
}

ds_status Context::synchronize() const {
    return call("cuCtxSynchronize", "", [](const Driver& driver) { return driver.cuCtxSynchronize(); });
}

// ---- CurrentContext ----

CurrentContext::CurrentContext(const Context& context) {
    CUcontext current;
    result_ = driver().cuCtxGetCurrent(&current);
    if (result_ || current == context.handle()) return;
    function_ = "cuCtxPushCurrent";
    result_ = driver().cuCtxPushCurrent(context.handle());
    pushed_ = result_ == CUDA_SUCCESS;
}

ds_status CurrentContext::status() const {
    return result_ ? fail_driver(result_, function_) : DS_STATUS_OK;
}

ds_status CurrentContext::restore() {
    const CUresult result = leave();
    return result ? fail_driver(result, "cuCtxPopCurrent") : DS_STATUS_OK;
}

CUresult CurrentContext::leave() {
    if (!pushed_) return CUDA_SUCCESS;
    pushed_ = false;
    CUcontext popped;
    return driver().cuCtxPopCurrent(&popped);
}

// ---- DestructionScope ----

DestructionScope::DestructionScope(const Context& context)
    : current_(context),
      entered_(current_.entered() && driver().cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS) {}

DestructionScope::~DestructionScope() {
    if (entered_) driver().cuThreadExchangeStreamCaptureMode(&mode_);
}

}  // namespace doorstep
