// All functions of the CUDA driver that doorstep calls, with the version to request: the one that introduced the
// parameters given here (9020 is CUDA 9.2). A later version may have different ones under the same name.
//
// X(name, version, parameters)
#pragma once

// Required: the driver is refused if one is missing.
#define DS_DRIVER_BASELINE(X)                                                                                       \
    X(cuInit, 2000, (unsigned flags))                                                                               \
    X(cuDriverGetVersion, 2020, (int* version))                                                                     \
    X(cuGetErrorName, 6000, (CUresult error, const char** name))                                                    \
    X(cuGetErrorString, 6000, (CUresult error, const char** text))                                                  \
    X(cuDeviceGetCount, 2000, (int* count))                                                                         \
    X(cuDeviceGet, 2000, (CUdevice * device, int ordinal))                                                          \
    X(cuDeviceGetName, 2000, (char* name, int length, CUdevice device))                                             \
    X(cuDeviceGetAttribute, 2000, (int* value, CUdevice_attribute attribute, CUdevice device))                      \
    X(cuDeviceGetUuid, 11040, (CUuuid * uuid, CUdevice device))                                                     \
    X(cuDeviceGetDefaultMemPool, 11020, (CUmemoryPool * pool, CUdevice device))                                     \
    X(cuDevicePrimaryCtxRetain, 7000, (CUcontext * context, CUdevice device))                                       \
    X(cuDevicePrimaryCtxRelease, 11000, (CUdevice device))                                                          \
    X(cuCtxGetCurrent, 4000, (CUcontext * context))                                                                 \
    X(cuCtxGetDevice, 2000, (CUdevice * device))                                                                    \
    X(cuCtxPushCurrent, 4000, (CUcontext context))                                                                  \
    X(cuCtxPopCurrent, 4000, (CUcontext * context))                                                                 \
    X(cuCtxSynchronize, 2000, (void))                                                                               \
    X(cuStreamCreate, 2000, (CUstream * stream, unsigned flags))                                                    \
    X(cuStreamDestroy, 4000, (CUstream stream))                                                                     \
    X(cuStreamGetCtx, 9020, (CUstream stream, CUcontext * context))                                                 \
    X(cuStreamSynchronize, 2000, (CUstream stream))                                                                 \
    X(cuStreamQuery, 2000, (CUstream stream))                                                                       \
    X(cuStreamWaitEvent, 3020, (CUstream stream, CUevent event, unsigned flags))                                    \
    X(cuStreamIsCapturing, 10000, (CUstream stream, CUstreamCaptureStatus * status))                                \
    X(cuStreamBeginCapture, 10010, (CUstream stream, CUstreamCaptureMode mode))                                     \
    X(cuStreamEndCapture, 10000, (CUstream stream, CUgraph * graph))                                                \
    X(cuThreadExchangeStreamCaptureMode, 10010, (CUstreamCaptureMode * mode))                                       \
    X(cuEventCreate, 2000, (CUevent * event, unsigned flags))                                                       \
    X(cuEventDestroy, 4000, (CUevent event))                                                                        \
    X(cuEventRecord, 2000, (CUevent event, CUstream stream))                                                        \
    X(cuEventQuery, 2000, (CUevent event))                                                                          \
    X(cuEventSynchronize, 2000, (CUevent event))                                                                    \
    X(cuEventElapsedTime, 2000, (float* milliseconds, CUevent start, CUevent end))                                  \
    X(cuMemAllocFromPoolAsync, 11020, (CUdeviceptr * memory, size_t bytes, CUmemoryPool pool, CUstream stream))     \
    X(cuMemFreeAsync, 11020, (CUdeviceptr memory, CUstream stream))                                                 \
    X(cuMemAlloc, 3020, (CUdeviceptr * memory, size_t bytes))                                                       \
    X(cuMemFree, 3020, (CUdeviceptr memory))                                                                        \
    X(cuMemHostAlloc, 2020, (void** memory, size_t bytes, unsigned flags))                                          \
    X(cuMemHostGetDevicePointer, 3020, (CUdeviceptr * address, void* memory, unsigned flags))                       \
    X(cuMemFreeHost, 2000, (void* memory))                                                                          \
    X(cuMemGetInfo, 3020, (size_t * free_bytes, size_t * total_bytes))                                              \
    X(cuPointerGetAttribute, 4000, (void* value, CUpointer_attribute attribute, CUdeviceptr address))               \
    X(cuMemcpyAsync, 4000, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                       \
    X(cuMemcpy2DAsync, 3020, (const CUDA_MEMCPY2D* copy, CUstream stream))                                          \
    X(cuMemsetD8Async, 3020, (CUdeviceptr memory, unsigned char value, size_t bytes, CUstream stream))              \
    X(cuModuleLoadDataEx, 2010,                                                                                     \
      (CUmodule * module, const void* image, unsigned count, CUjit_option* options, void** values))                 \
    X(cuModuleGetFunction, 2000, (CUfunction * function, CUmodule module, const char* name))                        \
    X(cuFuncGetAttribute, 2020, (int* value, CUfunction_attribute attribute, CUfunction function))                  \
    X(cuFuncSetAttribute, 9000, (CUfunction function, CUfunction_attribute attribute, int value))                   \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050,                                                            \
      (int* blocks, CUfunction function, int threads, size_t shared_bytes))                                         \
    X(cuLaunchKernel, 4000,                                                                                         \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,  \
       unsigned block_z, unsigned shared_bytes, CUstream stream, void** arguments, void** extra))                   \
    X(cuGraphInstantiateWithFlags, 11040, (CUgraphExec * exec, CUgraph graph, unsigned long long flags))            \
    X(cuGraphLaunch, 10000, (CUgraphExec exec, CUstream stream))                                                    \
    X(cuGraphExecDestroy, 10000, (CUgraphExec exec))                                                                \
    X(cuGraphDestroy, 10000, (CUgraph graph))

// Optional: functions newer than the oldest supported driver, and those that only the sharing of memory with other APIs
// needs. Calling a missing one returns kFunctionMissing.
#define DS_DRIVER_OPTIONAL(X)                                                                                       \
    X(cuFuncLoad, 12040, (CUfunction function))                                                                     \
    X(cuMemGetAllocationGranularity, 10020,                                                                         \
      (size_t * granularity, const CUmemAllocationProp* properties, CUmemAllocationGranularity_flags option))       \
    X(cuMemCreate, 10020,                                                                                           \
      (CUmemGenericAllocationHandle * allocation, size_t bytes, const CUmemAllocationProp* properties,              \
       unsigned long long flags))                                                                                   \
    X(cuMemRelease, 10020, (CUmemGenericAllocationHandle allocation))                                               \
    X(cuMemExportToShareableHandle, 10020,                                                                          \
      (void* handle, CUmemGenericAllocationHandle allocation, CUmemAllocationHandleType type,                       \
       unsigned long long flags))                                                                                   \
    X(cuMemAddressReserve, 10020,                                                                                   \
      (CUdeviceptr * address, size_t bytes, size_t alignment, CUdeviceptr wanted, unsigned long long flags))        \
    X(cuMemAddressFree, 10020, (CUdeviceptr address, size_t bytes))                                                 \
    X(cuMemMap, 10020,                                                                                              \
      (CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle allocation,                   \
       unsigned long long flags))                                                                                   \
    X(cuMemUnmap, 10020, (CUdeviceptr address, size_t bytes))                                                       \
    X(cuMemSetAccess, 10020, (CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access, size_t count))      \
    X(cuImportExternalMemory, 10000, (CUexternalMemory * memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* handle))   \
    X(cuExternalMemoryGetMappedBuffer, 10000,                                                                       \
      (CUdeviceptr * address, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* buffer))             \
    X(cuDestroyExternalMemory, 10000, (CUexternalMemory memory))                                                    \
    X(cuImportExternalSemaphore, 10000,                                                                             \
      (CUexternalSemaphore * semaphore, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* handle))                         \
    X(cuSignalExternalSemaphoresAsync, 10000,                                                                       \
      (const CUexternalSemaphore* semaphores, const CUDA_EXTERNAL_SEMAPHORE_PARAMS* params, unsigned count,         \
       CUstream stream))                                                                                            \
    X(cuWaitExternalSemaphoresAsync, 10000,                                                                         \
      (const CUexternalSemaphore* semaphores, const CUDA_EXTERNAL_SEMAPHORE_PARAMS* params, unsigned count,         \
       CUstream stream))                                                                                            \
    X(cuDestroyExternalSemaphore, 10000, (CUexternalSemaphore semaphore))

#define DS_DRIVER_TABLE(X) \
    DS_DRIVER_BASELINE(X)  \
    DS_DRIVER_OPTIONAL(X)
