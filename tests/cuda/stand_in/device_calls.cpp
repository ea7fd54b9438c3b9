// The driver's functions for initialisation, the look-up of functions, devices and contexts.
#include <stdio.h>
#include <string.h>

#include "functions.h"

using namespace stand_in;

namespace {

int attribute_of(int attribute) {
    const Settings& settings = driver().settings;
    switch (attribute) {
        case kMultiprocessors: return static_cast<int>(settings.multiprocessors);
        case kMemoryPoolsSupported: return settings.memory_pools ? 1 : 0;
        case kVirtualMemorySupported: case kFileDescriptorsSupported: case kTimelineSemaphoresSupported:
            return settings.sharing ? 1 : 0;
        case kMaxThreadsPerMultiprocessor: return 2048;
        case kComputeCapabilityMajor: return static_cast<int>(settings.compute_capability / 10);
        case kComputeCapabilityMinor: return static_cast<int>(settings.compute_capability % 10);
        case kMaxSharedBytesPerBlockOptIn: return most_shared_bytes();
        default: return -1;
    }
}

// The objects that would be left behind if the context ended now.
int64_t objects_of(const Context& context) {
    const Driver& state = driver();
    int64_t count = 0;
    const auto add = [&](const auto& objects) {
        for (const auto& [handle, object] : objects.alive) count += object->context == &context;
    };
    add(state.streams);
    add(state.events);
    add(state.modules);
    add(state.external_memories);
    add(state.external_semaphores);
    for (const auto& [address, allocation] : state.memory)
        count += allocation->device == context.device && !allocation->freeing;
    return count;
}

}  // namespace

#define CHECK_DEVICE(device) \
    REFUSE_IF(device < 0 || device >= driver().settings.devices, kInvalidDevice, "there is no device %d", device)

// Functions of another version have other parameters: requesting one is a mistake of the library.
int cuGetProcAddress_v2(const char* name, void** address, int version, uint64_t, int* status) {
    return call("cuGetProcAddress", [&]() -> int {
        int unread;
        if (!status) status = &unread;  // as the runtime of PyTorch gives it
        *address = nullptr;
        const Listed* function = Listed::find(name);
        const Settings& settings = driver().settings;
        if (!function || settings.missing.contains(name)) {
            *status = kSymbolNotFound;
            return kSuccess;
        }
        const int known = function->version;
        REFUSE_IF(version != known, kInvalidValue, "%s is of %d, not of %d", name, known, version);
        *status = version > settings.driver_version ? kSymbolVersionNotSufficient : kSymbolFound;
        if (*status == kSymbolFound) *address = function->address;
        return kSuccess;
    });
}

STAND_IN(cuInit, 2000, (unsigned), {
    if (driver().settings.devices == 0) return kNoDevice;
    driver().initialized = true;
})

STAND_IN(cuDriverGetVersion, 2020, (int* version), {
    *version = static_cast<int>(driver().settings.driver_version);
})

STAND_IN(cuGetErrorName, 6000, (int code, const char** name), {
    thread_local std::string result;
    result = text("CUDA_ERROR_%d", code);
    *name = result.c_str();
})

STAND_IN(cuGetErrorString, 6000, (int code, const char** description), {
    thread_local std::string result;
    result = text("what the stand-in calls %d", code);
    *description = result.c_str();
})

STAND_IN(cuDeviceGetCount, 2000, (int* count), {
    *count = static_cast<int>(driver().settings.devices);
})

STAND_IN(cuDeviceGet, 2000, (int* device, int ordinal), {
    if (ordinal < 0 || ordinal >= driver().settings.devices) return kInvalidDevice;
    *device = ordinal;
})

STAND_IN(cuDeviceGetName, 2000, (char* name, int length, int device), {
    CHECK_DEVICE(device);
    snprintf(name, static_cast<size_t>(length), "Stand-in %d", device);
})

// Sixteen bytes that contain the device's number.
STAND_IN(cuDeviceGetUuid_v2, 11040, (unsigned char* uuid, int device), {
    CHECK_DEVICE(device);
    for (int i = 0; i < 16; ++i) uuid[i] = static_cast<unsigned char>(i < 15 ? i * 0x11 : device);
})

STAND_IN(cuDeviceGetAttribute, 2000, (int* value, int attribute, int device), {
    CHECK_DEVICE(device);
    const int found = attribute_of(attribute);
    REFUSE_IF(found < 0, kInvalidValue, "attribute %d is unknown", attribute);
    *value = found;
})

STAND_IN(cuDeviceGetDefaultMemPool, 11020, (uint64_t* pool, int device), {
    CHECK_DEVICE(device);
    *pool = driver().default_pools[static_cast<size_t>(device)];
})

STAND_IN(cuDevicePrimaryCtxRetain, 7000, (uint64_t* context, int device), {
    CHECK_DEVICE(device);
    if (driver().settings.busy) return kDeviceUnavailable;
    Context& primary = driver().contexts[static_cast<size_t>(device)];
    ++primary.retained;
    *context = primary.handle;
})

STAND_IN(cuDevicePrimaryCtxRelease_v2, 11000, (int device), {
    CHECK_DEVICE(device);
    Context& primary = driver().contexts[static_cast<size_t>(device)];
    REFUSE_IF(primary.retained == 0, kInvalidContext, "it is not retained");
    if (primary.retained == 1) execute_everything(&primary);
    const bool excused = driver().lost || driver().report.has_failed;
    const int64_t objects = primary.retained > 1 || excused ? 0 : objects_of(primary);
    REFUSE_IF(objects, kInvalidContext, "%ld objects of the context are alive", objects);
    --primary.retained;
})

STAND_IN(cuCtxGetCurrent, 4000, (uint64_t* context), {
    *context = context_stack().empty() ? 0 : context_stack().back();
})

STAND_IN(cuCtxGetDevice, 2000, (int* device), {
    if (context_stack().empty()) return kInvalidContext;
    *device = find_context(context_stack().back())->device;
})

STAND_IN(cuCtxPushCurrent_v2, 4000, (uint64_t handle), {
    const Context* context = find_context(handle);
    REFUSE_IF(!context || context->retained == 0, kInvalidContext, "%#lx is no context", handle);
    context_stack().push_back(handle);
})

STAND_IN(cuCtxPopCurrent_v2, 4000, (uint64_t* context), {
    REFUSE_IF(context_stack().empty(), kInvalidContext, "there is no current context");
    if (context) *context = context_stack().back();
    context_stack().pop_back();
})

STAND_IN(cuCtxSynchronize, 2000, (), {
    FIND_CONTEXT(context);
    TRY(refuse_beside_captures_of(*context));
    ++driver().report.waits;
    execute_everything(context);
})
