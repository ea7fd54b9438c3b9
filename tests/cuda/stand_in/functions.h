// All driver functions of the stand-in, and the CUDA version that introduced these parameters.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct CUmemAllocationProp;
struct CUmemAccessDesc;
struct CUDA_MEMCPY2D;
struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC;
struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC;
struct CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC;
struct CUDA_EXTERNAL_SEMAPHORE_PARAMS;

// X(requested name, version, symbol, parameters)
#define STAND_IN_FUNCTIONS(X)                                                                                       \
    X(cuInit, 2000, cuInit, (unsigned))                                                                             \
    X(cuDriverGetVersion, 2020, cuDriverGetVersion, (int*))                                                         \
    X(cuGetErrorName, 6000, cuGetErrorName, (int, const char**))                                                    \
    X(cuGetErrorString, 6000, cuGetErrorString, (int, const char**))                                                \
    X(cuDeviceGetCount, 2000, cuDeviceGetCount, (int*))                                                             \
    X(cuDeviceGet, 2000, cuDeviceGet, (int*, int))                                                                  \
    X(cuDeviceGetName, 2000, cuDeviceGetName, (char*, int, int))                                                    \
    X(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2, (size_t*, int))                                                  \
    X(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute, (int*, int, int))                                           \
    X(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2, (unsigned char*, int))                                            \
    X(cuDeviceGetDefaultMemPool, 11020, cuDeviceGetDefaultMemPool, (uint64_t*, int))                                \
    X(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain, (uint64_t*, int))                                   \
    X(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2, (int))                                        \
    X(cuCtxGetCurrent, 4000, cuCtxGetCurrent, (uint64_t*))                                                          \
    X(cuCtxGetDevice, 2000, cuCtxGetDevice, (int*))                                                                 \
    X(cuCtxPushCurrent, 4000, cuCtxPushCurrent_v2, (uint64_t))                                                      \
    X(cuCtxPopCurrent, 4000, cuCtxPopCurrent_v2, (uint64_t*))                                                       \
    X(cuCtxSynchronize, 2000, cuCtxSynchronize, ())                                                                 \
    X(cuStreamCreate, 2000, cuStreamCreate, (uint64_t*, uint32_t))                                                  \
    X(cuStreamDestroy, 4000, cuStreamDestroy_v2, (uint64_t))                                                        \
    X(cuStreamGetCtx, 9020, cuStreamGetCtx, (uint64_t, uint64_t*))                                                  \
    X(cuStreamSynchronize, 2000, cuStreamSynchronize, (uint64_t))                                                   \
    X(cuStreamQuery, 2000, cuStreamQuery, (uint64_t))                                                               \
    X(cuStreamWaitEvent, 3020, cuStreamWaitEvent, (uint64_t, uint64_t, uint32_t))                                   \
    X(cuStreamIsCapturing, 10000, cuStreamIsCapturing, (uint64_t, int*))                                            \
    X(cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2, (uint64_t, int))                                        \
    X(cuStreamEndCapture, 10000, cuStreamEndCapture, (uint64_t, uint64_t*))                                         \
    X(cuThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode, (int*))                          \
    X(cuEventCreate, 2000, cuEventCreate, (uint64_t*, uint32_t))                                                    \
    X(cuEventDestroy, 4000, cuEventDestroy_v2, (uint64_t))                                                          \
    X(cuEventRecord, 2000, cuEventRecord, (uint64_t, uint64_t))                                                     \
    X(cuEventQuery, 2000, cuEventQuery, (uint64_t))                                                                 \
    X(cuEventSynchronize, 2000, cuEventSynchronize, (uint64_t))                                                     \
    X(cuEventElapsedTime, 2000, cuEventElapsedTime, (float*, uint64_t, uint64_t))                                   \
    X(cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync, (uint64_t*, size_t, uint64_t, uint64_t))             \
    X(cuMemFreeAsync, 11020, cuMemFreeAsync, (uint64_t, uint64_t))                                                  \
    X(cuMemAlloc, 3020, cuMemAlloc_v2, (uint64_t*, size_t))                                                         \
    X(cuMemFree, 3020, cuMemFree_v2, (uint64_t))                                                                    \
    X(cuMemHostAlloc, 2020, cuMemHostAlloc, (void**, size_t, uint32_t))                                             \
    X(cuMemHostGetDevicePointer, 3020, cuMemHostGetDevicePointer_v2, (uint64_t*, void*, uint32_t))                  \
    X(cuMemFreeHost, 2000, cuMemFreeHost, (void*))                                                                  \
    X(cuMemGetInfo, 3020, cuMemGetInfo_v2, (size_t*, size_t*))                                                      \
    X(cuPointerGetAttribute, 4000, cuPointerGetAttribute, (void*, int, uint64_t))                                   \
    X(cuMemcpyAsync, 4000, cuMemcpyAsync, (uint64_t, uint64_t, size_t, uint64_t))                                   \
    X(cuMemcpy2DAsync, 3020, cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D*, uint64_t))                                  \
    X(cuMemsetD8Async, 3020, cuMemsetD8Async, (uint64_t, unsigned char, size_t, uint64_t))                          \
    X(cuMemGetAllocationGranularity, 10020, cuMemGetAllocationGranularity,                                          \
      (size_t*, const CUmemAllocationProp*, int))                                                                   \
    X(cuMemCreate, 10020, cuMemCreate, (uint64_t*, size_t, const CUmemAllocationProp*, unsigned long long))         \
    X(cuMemRelease, 10020, cuMemRelease, (uint64_t))                                                                \
    X(cuMemExportToShareableHandle, 10020, cuMemExportToShareableHandle, (void*, uint64_t, int, unsigned long long))\
    X(cuMemAddressReserve, 10020, cuMemAddressReserve, (uint64_t*, size_t, size_t, uint64_t, unsigned long long))   \
    X(cuMemAddressFree, 10020, cuMemAddressFree, (uint64_t, size_t))                                                \
    X(cuMemMap, 10020, cuMemMap, (uint64_t, size_t, size_t, uint64_t, unsigned long long))                          \
    X(cuMemUnmap, 10020, cuMemUnmap, (uint64_t, size_t))                                                            \
    X(cuMemSetAccess, 10020, cuMemSetAccess, (uint64_t, size_t, const CUmemAccessDesc*, size_t))                    \
    X(cuImportExternalMemory, 10000, cuImportExternalMemory, (uint64_t*, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC*))  \
    X(cuExternalMemoryGetMappedBuffer, 10000, cuExternalMemoryGetMappedBuffer,                                      \
      (uint64_t*, uint64_t, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC*))                                               \
    X(cuDestroyExternalMemory, 10000, cuDestroyExternalMemory, (uint64_t))                                          \
    X(cuImportExternalSemaphore, 10000, cuImportExternalSemaphore,                                                  \
      (uint64_t*, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC*))                                                      \
    X(cuSignalExternalSemaphoresAsync, 10000, cuSignalExternalSemaphoresAsync,                                      \
      (const uint64_t*, const CUDA_EXTERNAL_SEMAPHORE_PARAMS*, unsigned, uint64_t))                                 \
    X(cuWaitExternalSemaphoresAsync, 10000, cuWaitExternalSemaphoresAsync,                                          \
      (const uint64_t*, const CUDA_EXTERNAL_SEMAPHORE_PARAMS*, unsigned, uint64_t))                                 \
    X(cuDestroyExternalSemaphore, 10000, cuDestroyExternalSemaphore, (uint64_t))                                    \
    X(cuModuleLoadDataEx, 2010, cuModuleLoadDataEx, (uint64_t*, const void*, unsigned, int*, void**))               \
    X(cuModuleUnload, 2000, cuModuleUnload, (uint64_t))                                                             \
    X(cuModuleGetFunction, 2000, cuModuleGetFunction, (uint64_t*, uint64_t, const char*))                           \
    X(cuFuncGetAttribute, 2020, cuFuncGetAttribute, (int*, int, uint64_t))                                          \
    X(cuFuncSetAttribute, 9000, cuFuncSetAttribute, (uint64_t, int, int))                                           \
    X(cuFuncLoad, 12040, cuFuncLoad, (uint64_t))                                                                    \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, cuOccupancyMaxActiveBlocksPerMultiprocessor,               \
      (int*, uint64_t, int, size_t))                                                                                \
    X(cuLaunchKernel, 4000, cuLaunchKernel,                                                                         \
      (uint64_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, uint64_t, void**, void**))   \
    X(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags, (uint64_t*, uint64_t, unsigned long long))   \
    X(cuGraphLaunch, 10000, cuGraphLaunch, (uint64_t, uint64_t))                                                    \
    X(cuGraphExecDestroy, 10000, cuGraphExecDestroy, (uint64_t))                                                    \
    X(cuGraphDestroy, 10000, cuGraphDestroy, (uint64_t))

// The stand-in is compiled with hidden symbols; it exports these.
#define STAND_IN_EXPORT extern "C" __attribute__((visibility("default")))

#define STAND_IN_DECLARE(name, version, symbol, parameters) STAND_IN_EXPORT int symbol parameters;
STAND_IN_FUNCTIONS(STAND_IN_DECLARE)
#undef STAND_IN_DECLARE

// By it the library finds the functions.
STAND_IN_EXPORT int cuGetProcAddress_v2(const char* name, void** address, int version, uint64_t flags, int* status);
