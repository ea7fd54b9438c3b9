// Result codes, flags and attributes of the CUDA driver API that the stand-in supports, as NVIDIA documents them. They
// are defined independently of the library's, so that a mistake in either is detected.
#pragma once

#include <stdint.h>

namespace stand_in {

enum Code : int {
    kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kDeinitialized = 4,
    kDeviceUnavailable = 46, kNoDevice = 100, kInvalidDevice = 101, kInvalidImage = 200, kInvalidContext = 201,
    kNoBinaryForGpu = 209, kUnsupportedPtxVersion = 222, kOperatingSystem = 304, kInvalidHandle = 400,
    kNotFound = 500, kNotReady = 600, kIllegalAddress = 700, kMisalignedAddress = 716, kNotSupported = 801,
    kCaptureUnsupported = 900, kCaptureInvalidated = 901, kCaptureUnmatched = 903, kCaptureUnjoined = 904,
    kCaptureIsolation = 905, kCaptureImplicit = 906, kCapturedEvent = 907, kCaptureWrongThread = 908,
};

enum StreamFlags : uint32_t { kNonBlocking = 1 };
enum EventFlags : uint32_t { kDisableTiming = 2 };
enum CaptureMode : int { kCaptureGlobal = 0, kCaptureRelaxed = 2 };
enum CaptureStatus : int { kCaptureNone = 0, kCaptureActive = 1, kCaptureStatusInvalidated = 2 };

enum DeviceAttribute : int {
    kMultiprocessors = 16, kMaxThreadsPerMultiprocessor = 39, kComputeCapabilityMajor = 75,
    kComputeCapabilityMinor = 76, kMaxSharedBytesPerBlockOptIn = 97, kVirtualMemorySupported = 102,
    kFileDescriptorsSupported = 103, kTimelineSemaphoresSupported = 114, kMemoryPoolsSupported = 115,
};

enum FunctionAttribute : int {
    kFunctionLocal = 3, kFunctionNumRegisters = 4, kFunctionMaxDynamicShared = 8, kFunctionCarveout = 9,
};
enum PointerAttribute : int { kPointerDeviceOrdinal = 9 };
enum AllocationKind : int { kAllocationPinned = 1 };
enum LocationKind : int { kLocationDevice = 1 };
enum ExportKind : int { kExportFileDescriptor = 1 };
enum AccessFlags : int { kAccessReadWrite = 3 };
enum MemoryKind : int { kMemoryUnified = 4 };
enum ExternalMemoryKind : int { kOpaqueDescriptor = 1 };
enum ExternalMemoryFlags : uint32_t { kDedicated = 1 };
enum ExternalSemaphoreKind : int { kBinarySemaphore = 1, kTimelineSemaphore = 9 };
enum SymbolStatus : int { kSymbolFound = 0, kSymbolNotFound = 1, kSymbolVersionNotSufficient = 2 };

constexpr int kMostPitch = 0x7fffffff;  // bytes

}  // namespace stand_in
