// The driver's functions for initialisation, the look-up of functions, devices and contexts.
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "functions.h"

using namespace stand_in;

namespace {

struct Function {
    const char* name;
    int version;
    void* address;
};

const Function kFunctions[] = {
#define STAND_IN_ROW(name, version, symbol, parameters) {#name, version, reinterpret_cast<void*>(&symbol)},
    STAND_IN_FUNCTIONS(STAND_IN_ROW)
#undef STAND_IN_ROW
};

constexpr uint64_t kLegacyStream = 1;

const Function* find_function(const char* name) {
    for (const Function& function : kFunctions)
        if (strcmp(function.name, name) == 0) return &function;
    return nullptr;
}

bool is_device(const char* function, int device) {
    const bool known = device >= 0 && device < driver().settings.devices;
    if (!known) driver().report.violation(text("%s: there is no device %d", function, device));
    return known;
}

int attribute_of(int attribute) {
    const Settings& settings = driver().settings;
    switch (attribute) {
        case kMaxThreadsPerBlock: return 1024;
        case kMaxSharedBytesPerBlock: return 48 * 1024;
        case kWarpSize: return 32;
        case kMaxPitch: return kMostPitch;
        case kMultiprocessors: return static_cast<int>(settings.multiprocessors);
        case kComputeMode: return settings.busy ? kComputeModeExclusive : 0;
        case kUnifiedAddressing: case kCooperativeLaunch: return 1;
        case kMemoryPoolsSupported: return settings.memory_pools ? 1 : 0;
        case kVirtualMemorySupported: case kFileDescriptorsSupported: case kTimelineSemaphoresSupported:
            return settings.sharing ? 1 : 0;
        case kMaxThreadsPerMultiprocessor: return 2048;
        case kComputeCapabilityMajor: return static_cast<int>(settings.compute_capability / 10);
        case kComputeCapabilityMinor: return static_cast<int>(settings.compute_capability % 10);
        case kMaxSharedBytesPerMultiprocessor: return most_shared_bytes() + 1024;
        case kMaxSharedBytesPerBlockOptIn: return most_shared_bytes();
        case kMaxBlocksPerMultiprocessor: return 32;
        default: return -1;
    }
}

// The objects that would be left behind if the context ended now.
int64_t objects_of(const Context& context) {
    const Driver& state = driver();
    int64_t count = 0;
    for (const auto& [handle, stream] : state.streams.alive) count += stream->context == &context;
    for (const auto& [handle, event] : state.events.alive) count += event->context == &context;
    for (const auto& [handle, module] : state.modules.alive) count += module->context == &context;
    for (const auto& [handle, memory] : state.external_memories.alive) count += memory->context == &context;
    for (const auto& [handle, semaphore] : state.external_semaphores.alive) count += semaphore->context == &context;
    for (const auto& [address, allocation] : state.memory)
        count += allocation->device == context.device && !allocation->freeing;
    return count;
}

int push(const char* function, uint64_t context) {
    if (!find_context(context)) return refuse(kInvalidContext, text("%s: %#lx is no context", function, context));
    if (find_context(context)->retained == 0)
        return refuse(kInvalidContext, text("%s: the context was released", function));
    context_stack().push_back(context);
    return kSuccess;
}

}  // namespace

// Functions of another version have other parameters: requesting one is a mistake of the library.
STAND_IN_EXPORT int cuGetProcAddress_v2(const char* name, void** address, int version, uint64_t flags, int* status) {
    return call("cuGetProcAddress", [&]() -> int {
        int unread;
        if (!status) status = &unread;  // as the runtime of PyTorch gives it
        *address = nullptr;
        const Function* function = find_function(name);
        const Settings& settings = driver().settings;
        if (!function || settings.missing.contains(name)) {
            *status = kSymbolNotFound;
            return kSuccess;
        }
        if (version != function->version)
            return refuse(kInvalidValue,
                          text("cuGetProcAddress: %s is of %d, not of %d", name, function->version, version));
        if (flags & ~kLegacyStream) return refuse(kInvalidValue, text("cuGetProcAddress: flags are %lu", flags));
        *status = version > settings.driver_version ? kSymbolVersionNotSufficient : kSymbolFound;
        if (*status == kSymbolFound) *address = function->address;
        return kSuccess;
    });
}

extern "C" {

int cuInit(unsigned flags) {
    return call("cuInit", [&] {
        if (flags) return refuse(kInvalidValue, "cuInit: flags must be 0");
        if (driver().settings.devices == 0) return int{kNoDevice};
        driver().initialized = true;
        return int{kSuccess};
    });
}

int cuDriverGetVersion(int* version) {
    return call("cuDriverGetVersion", [&] {
        *version = static_cast<int>(driver().settings.driver_version);
        return kSuccess;
    });
}

int cuGetErrorName(int code, const char** name) {
    return call("cuGetErrorName", [&] {
        thread_local std::string result;
        result = text("CUDA_ERROR_%d", code);
        *name = result.c_str();
        return kSuccess;
    });
}

int cuGetErrorString(int code, const char** description) {
    return call("cuGetErrorString", [&] {
        thread_local std::string result;
        result = text("what the stand-in calls %d", code);
        *description = result.c_str();
        return kSuccess;
    });
}

int cuDeviceGetCount(int* count) {
    return call("cuDeviceGetCount", [&] {
        *count = static_cast<int>(driver().settings.devices);
        return kSuccess;
    });
}

int cuDeviceGet(int* device, int ordinal) {
    return call("cuDeviceGet", [&] {
        if (ordinal < 0 || ordinal >= driver().settings.devices) return kInvalidDevice;
        *device = ordinal;
        return kSuccess;
    });
}

int cuDeviceGetName(char* name, int length, int device) {
    return call("cuDeviceGetName", [&] {
        if (!is_device("cuDeviceGetName", device)) return kInvalidDevice;
        snprintf(name, static_cast<size_t>(length), "Stand-in %d", device);
        return kSuccess;
    });
}

// Sixteen bytes that contain the device's number, and zeros.
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
    return call("cuDeviceGetUuid", [&] {
        if (!is_device("cuDeviceGetUuid", device)) return kInvalidDevice;
        for (int i = 0; i < 16; ++i) uuid[i] = static_cast<unsigned char>(i * 0x11);
        uuid[15] = static_cast<unsigned char>(device);
        return kSuccess;
    });
}

int cuDeviceTotalMem_v2(size_t* bytes, int device) {
    return call("cuDeviceTotalMem", [&] {
        if (!is_device("cuDeviceTotalMem", device)) return kInvalidDevice;
        *bytes = static_cast<size_t>(driver().settings.memory_bytes);
        return kSuccess;
    });
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
    return call("cuDeviceGetAttribute", [&]() -> int {
        if (!is_device("cuDeviceGetAttribute", device)) return kInvalidDevice;
        const int found = attribute_of(attribute);
        if (found < 0) return refuse(kInvalidValue, text("cuDeviceGetAttribute: attribute %d is unknown", attribute));
        *value = found;
        return kSuccess;
    });
}

int cuDevicePrimaryCtxRetain(uint64_t* context, int device) {
    return call("cuDevicePrimaryCtxRetain", [&] {
        if (!is_device("cuDevicePrimaryCtxRetain", device)) return kInvalidDevice;
        if (driver().settings.busy) return kDeviceUnavailable;
        Context& primary = driver().contexts[static_cast<size_t>(device)];
        ++primary.retained;
        *context = primary.handle;
        return kSuccess;
    });
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    return call("cuDevicePrimaryCtxRelease", [&]() -> int {
        if (!is_device("cuDevicePrimaryCtxRelease", device)) return kInvalidDevice;
        Context& primary = driver().contexts[static_cast<size_t>(device)];
        if (primary.retained == 0) return refuse(kInvalidContext, "cuDevicePrimaryCtxRelease: it is not retained");
        if (primary.retained == 1) execute_everything(primary);
        const bool excused = driver().lost || driver().report.has_failed();
        if (primary.retained == 1 && objects_of(primary) && !excused)
            return refuse(kInvalidContext,
                          text("cuDevicePrimaryCtxRelease: %ld objects of the context are alive", objects_of(primary)));
        --primary.retained;
        return kSuccess;
    });
}

int cuCtxGetCurrent(uint64_t* context) {
    return call("cuCtxGetCurrent", [&] {
        *context = context_stack().empty() ? 0 : context_stack().back();
        return kSuccess;
    });
}

int cuCtxGetDevice(int* device) {
    return call("cuCtxGetDevice", [&]() -> int {
        if (context_stack().empty()) return kInvalidContext;
        *device = find_context(context_stack().back())->device;
        return kSuccess;
    });
}

int cuCtxPushCurrent_v2(uint64_t context) {
    return call("cuCtxPushCurrent", [&] { return push("cuCtxPushCurrent", context); });
}

int cuCtxPopCurrent_v2(uint64_t* context) {
    return call("cuCtxPopCurrent", [&]() -> int {
        if (context_stack().empty()) return refuse(kInvalidContext, "cuCtxPopCurrent: there is no current context");
        if (context) *context = context_stack().back();
        context_stack().pop_back();
        return kSuccess;
    });
}

int cuCtxSynchronize() {
    return call("cuCtxSynchronize", [&]() -> int {
        Context* context = current_context("cuCtxSynchronize");
        if (!context) return kInvalidContext;
        if (const int code = refuse_beside_captures_of(*context)) return code;
        driver().report.count_wait();
        execute_everything(*context);
        return kSuccess;
    });
}

}  // extern "C"
