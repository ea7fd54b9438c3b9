#include "fake_driver.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <type_traits>

namespace fake {
namespace {

struct Object {
    Kind kind;
    CUcontext context;
};

std::mutex mutex;  // guards everything below
Behaviour now;
std::map<uint64_t, Object> objects;
std::set<uint64_t> capturing_streams;
std::vector<std::string> names;
std::string failed;
int64_t retain_counts[2];
std::atomic<int64_t> misuse_count{0};

thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

constexpr uint64_t kFirstContext = 0xc0000;
constexpr uint64_t kSpacing = 0x10000;  // of handles
constexpr uint64_t kFirstHandle = 0x7000000;

CUresult misuse(CUresult result) {
    ++misuse_count;
    return result;
}

// Records the call; not 0 if it shall fail.
CUresult enter(const char* name) {
    std::lock_guard guard(mutex);
    names.push_back(name);
    const bool named = strcmp(now.failing_function, name) == 0;
    if (named) now.failing_function = "";
    if (!named && now.failing_call != static_cast<int64_t>(names.size()) - 1) return CUDA_SUCCESS;
    failed = name;
    return now.failure;
}

#define ENTER() \
    if (const CUresult failure = enter(__func__)) return failure

CUcontext current() { return context_stack().empty() ? nullptr : reinterpret_cast<CUcontext>(context_stack().back()); }

bool is_retained(CUcontext context) {
    for (int device = 0; device < 2; ++device) {
        if (reinterpret_cast<uint64_t>(context) == context_of(device)) return retain_counts[device] > 0;
    }
    return false;
}

uint64_t free_handle() {
    uint64_t handle = kFirstHandle;
    while (objects.count(handle)) handle += kSpacing;
    return handle;
}

template <class Handle>
CUresult make(Kind kind, Handle* handle, CUcontext context = current()) {
    std::lock_guard guard(mutex);
    if (!is_retained(context)) return misuse(CUDA_ERROR_INVALID_CONTEXT);
    const uint64_t made = free_handle();
    objects[made] = {kind, context};
    memcpy(handle, &made, sizeof made);
    return CUDA_SUCCESS;
}

template <class Handle>
bool exists(Kind kind, Handle handle) {
    uint64_t raw;
    memcpy(&raw, &handle, sizeof raw);
    const auto found = objects.find(raw);
    return found != objects.end() && found->second.kind == kind && is_retained(found->second.context);
}

bool is_usable(CUstream stream) {
    const bool is_default = stream <= CU_STREAM_PER_THREAD;
    return is_default ? is_retained(current()) : exists(kStream, stream);
}

    // In the default capture mode this would invalidate another thread's capture.
template <class Handle>
CUresult end(Kind kind, Handle handle) {
    std::lock_guard guard(mutex);
    if (capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED) return misuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (!exists(kind, handle)) return misuse(CUDA_ERROR_INVALID_HANDLE);
    uint64_t raw;
    memcpy(&raw, &handle, sizeof raw);
    objects.erase(raw);
    return CUDA_SUCCESS;
}

// A call that only requires that these exist.
CUresult use(CUstream stream) {
    std::lock_guard guard(mutex);
    return is_usable(stream) ? CUDA_SUCCESS : misuse(CUDA_ERROR_INVALID_HANDLE);
}

bool is_alive(Kind kind, uint64_t handle) {
    std::lock_guard guard(mutex);
    return exists(kind, handle);
}

template <class Handle>
CUresult use(Kind kind, Handle handle) {
    std::lock_guard guard(mutex);
    return exists(kind, handle) ? CUDA_SUCCESS : misuse(CUDA_ERROR_INVALID_HANDLE);
}

CUresult use_current() {
    std::lock_guard guard(mutex);
    return is_retained(current()) ? CUDA_SUCCESS : misuse(CUDA_ERROR_INVALID_CONTEXT);
}

// ---- The functions, under the driver's names ----

namespace functions {

CUresult cuInit(unsigned) {
    ENTER();
    return now.device_count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}
CUresult cuDriverGetVersion(int* version) {
    ENTER();
    *version = now.version;
    return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult, const char** name) {
    *name = "CUDA_ERROR_OF_A_KIND";
    return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
    *text = "as told";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
    ENTER();
    *count = now.device_count;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    ENTER();
    *device = ordinal;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice) {
    ENTER();
    strncpy(name, "Fake", static_cast<size_t>(length));
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
    ENTER();
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = now.capability / 10; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = now.capability % 10; break;
        case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *value = now.has_memory_pools; break;
        case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED: *value = now.can_share; break;
        default: *value = 7;
    }
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    ENTER();
    for (char& byte : uuid->bytes) byte = static_cast<char>(0xf0 + device);
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
    ENTER();
    *pool = reinterpret_cast<CUmemoryPool>(uint64_t{0xdef000} + static_cast<uint64_t>(device));
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    ENTER();
    std::lock_guard guard(mutex);
    ++retain_counts[device];
    *context = reinterpret_cast<CUcontext>(context_of(device));
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    ENTER();
    std::lock_guard guard(mutex);
    if (retain_counts[device] == 0) return misuse(CUDA_ERROR_INVALID_CONTEXT);
    --retain_counts[device];
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
    ENTER();
    *context = current();
    return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context) {
    ENTER();
    context_stack().push_back(reinterpret_cast<uint64_t>(context));
    return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) {
    ENTER();
    if (context_stack().empty()) return misuse(CUDA_ERROR_INVALID_CONTEXT);
    *context = current();
    context_stack().pop_back();
    return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() {
    ENTER();
    return use_current();
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
    ENTER();
    return make(kStream, stream);
}
CUresult cuStreamDestroy(CUstream stream) {
    ENTER();
    return end(kStream, stream);
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
    ENTER();
    std::lock_guard guard(mutex);
    if (!exists(kStream, stream)) return CUDA_ERROR_INVALID_HANDLE;
    *context = objects[reinterpret_cast<uint64_t>(stream)].context;
    return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
    ENTER();
    return use(stream);
}
CUresult cuStreamQuery(CUstream stream) {
    ENTER();
    return use(stream);
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
    ENTER();
    const CUresult result = use(stream);
    return result ? result : use(kEvent, event);
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
    ENTER();
    if (const CUresult result = use(stream)) return result;
    std::lock_guard guard(mutex);
    const bool capturing = capturing_streams.count(reinterpret_cast<uint64_t>(stream)) != 0;
    *status = capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
    ENTER();
    if (const CUresult result = use(stream)) return result;
    set_capturing(reinterpret_cast<uint64_t>(stream), true);
    return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
    ENTER();
    if (const CUresult result = use(stream)) return result;
    set_capturing(reinterpret_cast<uint64_t>(stream), false);
    return make(kGraph, graph);
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    ENTER();
    std::swap(*mode, capture_mode);
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
    ENTER();
    return make(kEvent, event);
}
CUresult cuEventDestroy(CUevent event) {
    ENTER();
    return end(kEvent, event);
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
    ENTER();
    const CUresult result = use(stream);
    return result ? result : use(kEvent, event);
}
CUresult cuEventQuery(CUevent event) {
    ENTER();
    return use(kEvent, event);
}
CUresult cuEventSynchronize(CUevent event) {
    ENTER();
    return use(kEvent, event);
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    ENTER();
    *milliseconds = 1.5f;
    const CUresult result = use(kEvent, start);
    return result ? result : use(kEvent, end);
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
    ENTER();
    const CUcontext context = reinterpret_cast<CUcontext>(context_of(properties->location.id));
    return make(kPool, pool, context);
}
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    ENTER();
    return end(kPool, pool);
}
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
    ENTER();
    return use(kPool, pool);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* memory, size_t, CUmemoryPool, CUstream stream) {
    ENTER();
    const CUresult result = use(stream);
    return result ? result : make(kMemory, memory);
}
CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream stream) {
    ENTER();
    const CUresult result = use(stream);
    return result ? result : end(kMemory, memory);
}
CUresult cuMemAlloc(CUdeviceptr* memory, size_t) {
    ENTER();
    return make(kMemory, memory);
}
CUresult cuMemFree(CUdeviceptr memory) {
    ENTER();
    return end(is_alive(kExternalBuffer, memory) ? kExternalBuffer : kMemory, memory);
}
CUresult cuMemHostAlloc(void** memory, size_t, unsigned) {
    ENTER();
    return make(kPinnedMemory, memory);
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr* address, void* memory, unsigned) {
    ENTER();
    *address = reinterpret_cast<uint64_t>(memory) + 1;
    return use(kPinnedMemory, memory);
}
CUresult cuMemFreeHost(void* memory) {
    ENTER();
    return end(kPinnedMemory, memory);
}
CUresult cuMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
    ENTER();
    *free_bytes = 400;
    *total_bytes = 1000;
    return use_current();
}
CUresult cuPointerGetAttribute(void* value, CUpointer_attribute, CUdeviceptr address) {
    ENTER();
    std::lock_guard guard(mutex);
    if (!exists(kMemory, address)) return CUDA_ERROR_INVALID_VALUE;
    *static_cast<int*>(value) = reinterpret_cast<uint64_t>(objects[address].context) == context_of(0) ? 0 : 1;
    return CUDA_SUCCESS;
}
CUresult cuMemcpyAsync(CUdeviceptr, CUdeviceptr, size_t, CUstream stream) {
    ENTER();
    return use(stream);
}
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
    ENTER();
    const bool fits = copy->WidthInBytes <= copy->srcPitch && copy->WidthInBytes <= copy->dstPitch;
    const bool unified = copy->srcMemoryType == CU_MEMORYTYPE_UNIFIED && copy->dstMemoryType == CU_MEMORYTYPE_UNIFIED;
    return fits && unified ? use(stream) : misuse(CUDA_ERROR_INVALID_VALUE);
}
CUresult cuMemsetD8Async(CUdeviceptr memory, unsigned char, size_t, CUstream stream) {
    ENTER();
    const CUresult result = use(stream);
    return result ? result : use(kMemory, memory);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void** values) {
    ENTER();
    if (strcmp(static_cast<const char*>(image), "image") == 0) return make(kModule, module);
    strcpy(static_cast<char*>(values[0]), "line 1: what is this?");
    return CUDA_ERROR_INVALID_PTX;
}
CUresult cuModuleUnload(CUmodule module) {
    ENTER();
    return end(kModule, module);
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    ENTER();
    if (const CUresult result = use(kModule, module)) return result;
    if (strcmp(name, kKernelName) != 0) return CUDA_ERROR_NOT_FOUND;
    *function = reinterpret_cast<CUfunction>(reinterpret_cast<uint64_t>(module) + 8);
    return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) {
    ENTER();
    return use_current();
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute, CUfunction) {
    ENTER();
    *value = 64;
    return use_current();
}
CUresult cuFuncLoad(CUfunction) {
    ENTER();
    return use_current();
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int, size_t) {
    ENTER();
    *blocks = 3;
    return use_current();
}
CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream stream, void**, void**) {
    ENTER();
    const CUresult result = use(stream);
    return result ? result : use(kModule, reinterpret_cast<uint64_t>(function) - 8);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
    ENTER();
    const CUresult result = use(kGraph, graph);
    return result ? result : make(kGraphExec, exec);
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    ENTER();
    const CUresult result = use(stream);
    return result ? result : use(kGraphExec, exec);
}
CUresult cuGraphExecDestroy(CUgraphExec exec) {
    ENTER();
    return end(kGraphExec, exec);
}
CUresult cuGraphDestroy(CUgraph graph) {
    ENTER();
    return end(kGraph, graph);
}

// An allocation, the address range it is mapped to and the mapping are separate objects; a mapping is identified by its
// first address plus one.
CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
    ENTER();
    *granularity = kGranularity;
    return properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? CUDA_SUCCESS
                                                                                       : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* allocation, size_t bytes, const CUmemAllocationProp* properties,
                     unsigned long long) {
    ENTER();
    if (bytes == 0 || bytes % kGranularity) return misuse(CUDA_ERROR_INVALID_VALUE);
    return make(kAllocation, allocation, reinterpret_cast<CUcontext>(context_of(properties->location.id)));
}
CUresult cuMemRelease(CUmemGenericAllocationHandle allocation) {
    ENTER();
    return end(kAllocation, allocation);
}
CUresult cuMemExportToShareableHandle(void* handle, CUmemGenericAllocationHandle allocation, CUmemAllocationHandleType,
                                      unsigned long long) {
    ENTER();
    if (const CUresult result = use(kAllocation, allocation)) return result;
    *static_cast<int*>(handle) = open("/dev/null", O_RDWR);
    return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr* address, size_t, size_t, CUdeviceptr, unsigned long long) {
    ENTER();
    return make(kReservation, address);
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t) {
    ENTER();
    return is_alive(kMapping, address + 1) ? misuse(CUDA_ERROR_INVALID_VALUE) : end(kReservation, address);
}
CUresult cuMemMap(CUdeviceptr address, size_t, size_t, CUmemGenericAllocationHandle allocation, unsigned long long) {
    ENTER();
    if (const CUresult result = use(kReservation, address)) return result;
    if (const CUresult result = use(kAllocation, allocation)) return result;
    std::lock_guard guard(mutex);
    objects[address + 1] = {kMapping, current()};
    return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr address, size_t) {
    ENTER();
    return end(kMapping, address + 1);
}
CUresult cuMemSetAccess(CUdeviceptr address, size_t, const CUmemAccessDesc*, size_t) {
    ENTER();
    return use(kMapping, address + 1);
}

// An import takes its file descriptor over.
CUresult cuImportExternalMemory(CUexternalMemory* memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* handle) {
    ENTER();
    const CUresult result = make(kExternalMemory, memory);
    if (!result) close(handle->handle.fd);
    return result;
}
CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr* address, CUexternalMemory memory,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC*) {
    ENTER();
    const CUresult result = use(kExternalMemory, memory);
    return result ? result : make(kExternalBuffer, address);
}
CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
    ENTER();
    return end(kExternalMemory, memory);
}
CUresult cuImportExternalSemaphore(CUexternalSemaphore* semaphore, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* handle) {
    ENTER();
    const CUresult result = make(kExternalSemaphore, semaphore);
    if (!result) close(handle->handle.fd);
    return result;
}
CUresult use_semaphores(const CUexternalSemaphore* semaphores, unsigned count, CUstream stream) {
    for (unsigned i = 0; i < count; ++i) {
        if (const CUresult result = use(kExternalSemaphore, semaphores[i])) return result;
    }
    return use(stream);
}
CUresult cuSignalExternalSemaphoresAsync(const CUexternalSemaphore* semaphores, const CUDA_EXTERNAL_SEMAPHORE_PARAMS*,
                                         unsigned count, CUstream stream) {
    ENTER();
    return use_semaphores(semaphores, count, stream);
}
CUresult cuWaitExternalSemaphoresAsync(const CUexternalSemaphore* semaphores, const CUDA_EXTERNAL_SEMAPHORE_PARAMS*,
                                       unsigned count, CUstream stream) {
    ENTER();
    return use_semaphores(semaphores, count, stream);
}
CUresult cuDestroyExternalSemaphore(CUexternalSemaphore semaphore) {
    ENTER();
    return end(kExternalSemaphore, semaphore);
}

}  // namespace functions

void* find_function(const char* wanted) {
    if (strcmp(wanted, now.missing_function) == 0) return nullptr;
#define FAKE_FIND(name, version, parameters)                                              \
    static_assert(std::is_same_v<decltype(&functions::name), decltype(Driver::name)>);    \
    if (strcmp(wanted, #name) == 0) return reinterpret_cast<void*>(&functions::name);
    DS_DRIVER_TABLE(FAKE_FIND)
#undef FAKE_FIND
    return nullptr;
}

CUresult get_proc_address_v2(const char* name, void** function, int, uint64_t, CUdriverProcAddressQueryResult* found) {
    *function = find_function(name);
    *found = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

CUresult get_proc_address(const char* name, void** function, int, uint64_t) {
    *function = find_function(name);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

// Drivers also export their functions directly.
void* resolve(const char* name) {
    if (strcmp(name, "cuGetProcAddress_v2") == 0) {
        return now.has_get_proc_address_v2 ? reinterpret_cast<void*>(&get_proc_address_v2) : nullptr;
    }
    if (strcmp(name, "cuGetProcAddress") == 0) {
        return now.has_get_proc_address ? reinterpret_cast<void*>(&get_proc_address) : nullptr;
    }
    return find_function(name);
}

}  // namespace

void install(const Behaviour& wanted) {
    std::lock_guard guard(mutex);
    now = wanted;
    objects.clear();
    capturing_streams.clear();
    names.clear();
    failed.clear();
    misuse_count = 0;
    for (int64_t& count : retain_counts) count = 0;
    context_stack().clear();
    capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    reset_driver(resolve);
}

Behaviour& behaviour() { return now; }

int64_t alive(Kind kind) {
    std::lock_guard guard(mutex);
    int64_t count = 0;
    for (const auto& [handle, object] : objects) count += object.kind == kind;
    return count;
}

int64_t alive() {
    std::lock_guard guard(mutex);
    return static_cast<int64_t>(objects.size());
}

int64_t retained(int device) {
    std::lock_guard guard(mutex);
    return retain_counts[device];
}

int64_t misuses() { return misuse_count; }

int64_t calls() {
    std::lock_guard guard(mutex);
    return static_cast<int64_t>(names.size());
}

const char* failed_function() { return failed.c_str(); }

std::vector<std::string> history() {
    std::lock_guard guard(mutex);
    return names;
}

int64_t first_call(const char* name) {
    const std::vector<std::string> all = history();
    for (size_t i = 0; i < all.size(); ++i) {
        if (all[i] == name) return static_cast<int64_t>(i);
    }
    return -1;
}

int64_t count_calls(const char* name) {
    int64_t count = 0;
    for (const std::string& call : history()) count += call == name;
    return count;
}

void clear_history() {
    std::lock_guard guard(mutex);
    names.clear();
}

std::vector<uint64_t>& context_stack() {
    static thread_local std::vector<uint64_t> stack;
    return stack;
}

uint64_t context_of(int device) { return kFirstContext + static_cast<uint64_t>(device) * kSpacing; }

uint64_t make_foreign_stream(int device) {
    std::lock_guard guard(mutex);
    const uint64_t handle = free_handle();
    objects[handle] = {kStream, reinterpret_cast<CUcontext>(context_of(device))};
    return handle;
}

void set_capturing(uint64_t stream, bool capturing) {
    std::lock_guard guard(mutex);
    if (capturing) {
        capturing_streams.insert(stream);
    } else {
        capturing_streams.erase(stream);
    }
}

}  // namespace fake
