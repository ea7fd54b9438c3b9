// The devices of this machine, with the driver's numbers; their primary contexts, which every library of the process
// shares; and scopes that make a context current.
#pragma once

#include "doorstep/cuda.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/driver_types.h"
#include "runtime/cuda/resource.h"
#include "runtime/futex.h"

namespace doorstep {

// ---- Devices ----

// Loads the driver if necessary. NO_DEVICE if it reports no devices.
ds_status count_devices(int* count);

// NO_DEVICE if no device has this index.
ds_status find_device(int64_t index, CUdevice* device);

// The index of the device of this thread's current context; 0 without one.
ds_status find_current_device(int64_t* index);

ds_status device_attribute(CUdevice device, CUdevice_attribute attribute, int* value);

// The device's UUID, the same in every API.
ds_status device_uuid(CUdevice device, uint8_t* uuid);

// 90 is 9.0.
ds_status compute_capability(CUdevice device, int* capability);

// ---- Contexts ----

class Context final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_CONTEXT;

    // Loads the driver if necessary. Returns one object per device, however often it is called. The driver's context
    // stays until the process ends, even if no object does. Null, with the thread's error set, on failure.
    static Ref<Context> of_device(int64_t device_index);
    ~Context();

    CUcontext handle() const { return reinterpret_cast<CUcontext>(raw()); }
    CUdevice device() const { return device_; }
    int compute_capability() const { return compute_capability_; }  // 90 is 9.0
    bool has_memory_pools() const { return has_memory_pools_; }

    ds_status attribute(CUdevice_attribute attribute, int* value) const;
    ds_status free_memory(size_t* free_bytes, size_t* total_bytes) const;
    // As fail_driver(), for a function that allocates this much memory: adds the amounts if there was not enough. The
    // context is current.
    ds_status fail_allocation(CUresult result, const char* function, uint64_t bytes) const;
    // Waits for all work begun in the context. That ends every capture of its streams by other code, so wait for streams
    // or events where these are known.
    ds_status synchronize() const;
    // The same for destructors, in a CurrentContext.
    CUresult wait_for_everything() const;

    // Calls a driver function while the context is current: call(driver) returns its result. PENDING for
    // CUDA_ERROR_NOT_READY; other failures as fail_driver(). For calls that create nothing.
    template <class Call>
    ds_status call(const char* function, const char* argument, const Call& call) const;

private:
    Context(int device_index, CUdevice device);
    ds_status ask_device();
    void release() const;

    CUdevice device_;
    int compute_capability_ = 0;
    bool has_memory_pools_ = false;
    bool kept_ = false;  // see keeps_primary_context()
};

// Makes the context the calling thread's current one, and relaxes how the thread's calls are checked against captures
// (cuThreadExchangeStreamCaptureMode): the driver would end those of other code at allocations, loads and waits, none of
// which depends on captured work. restore() or the destructor gives the thread back what it had.
class CurrentContext {
public:
    explicit CurrentContext(const Context& context);
    ~CurrentContext() { leave(); }
    CurrentContext(const CurrentContext&) = delete;
    CurrentContext& operator=(const CurrentContext&) = delete;

    // Fails, with the thread's error set, if the driver refused.
    ds_status status() const;
    // Ends the scope now. Code that created something undoes it if this fails.
    ds_status restore();

    // For destructors. If it was not entered, the driver must not be called: the resource is leaked.
    bool entered() const { return result_ == CUDA_SUCCESS; }

private:
    bool succeeded(const char* function, CUresult result);
    void leave();

    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // from then on the thread's own
    CUresult result_ = CUDA_SUCCESS;
    const char* function_ = "";  // the function that returned result_
    bool relaxed_ = false, pushed_ = false;
};

template <class Call>
ds_status Context::call(const char* function, const char* argument, const Call& call) const {
    CurrentContext current(*this);
    if (const ds_status status = current.status()) return status;
    const CUresult result = call(driver());
    if (result && result != CUDA_ERROR_NOT_READY) return fail_driver(result, function, argument);
    if (const ds_status status = current.restore()) return status;
    return result ? DS_STATUS_PENDING : DS_STATUS_OK;
}

// Held while doorstep captures, and while it waits for a whole context, which would end the capture.
extern constinit Mutex capture_mutex;

// ---- The life of a resource

template <class Raw>
ds_status Resource::own_made(CUresult result, const Raw& raw, const char* function, const char* argument) {
    if (result) return fail_driver(result, function, argument);
    own(raw);
    return DS_STATUS_OK;
}

template <class T, class Make>
Ref<T> Resource::create_with(T* object, const Make& make) {
    const Ref<T> made = check_allocated(object);
    if (!made) return {};
    CurrentContext current(*made->context());
    return current.status() || make(*made) || current.restore() ? Ref<T>() : made;
}

template <class End>
void Resource::destroy(const End& end) {
    if (!disown()) return;
    const CurrentContext current(*context_);
    if (current.entered()) end(driver());
}

}  // namespace doorstep
