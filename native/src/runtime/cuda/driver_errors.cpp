// Translates the driver's results into a status and a remedy.
#include <string.h>

#include "runtime/cuda/driver.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

constexpr const char* kNewerDriverHint = "update the NVIDIA driver";
constexpr const char* kBusyHint =
    "end the other processes that use this device, or allow sharing it (nvidia-smi --compute-mode=DEFAULT, or MPS)";
constexpr const char* kVisibleHint = "see nvidia-smi for the devices, and CUDA_VISIBLE_DEVICES for hidden ones";
constexpr const char* kLostHint =
    "this process can no longer use the device: start a new one; compute-sanitizer finds the cause";
constexpr const char* kHardwareHint = "the device reports a hardware fault: see dmesg and nvidia-smi; start a new process";
constexpr const char* kArgumentHint = "pass an object that exists and belongs to this device";
constexpr const char* kUnsupportedHint =
    "the driver does not support this on this device or in this process: try another device or a newer driver";
constexpr const char* kServerHint = "see the log of the MPS control daemon, or stop it";
constexpr const char* kCaptureHint =
    "end or repeat the capture of the stream, and call only functions that can be captured";

// The embedded PTX is CUDA 12.9's; older drivers accept embedded machine code only.
constexpr int kPtxDriverVersion = 12090;

struct Meaning {
    CUresult result;
    ds_status status;
    const char* hint;
};

constexpr Meaning kMeanings[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, DS_STATUS_OUT_OF_MEMORY, "use fewer worlds, or end other users of the device"},
    {CUDA_ERROR_DEINITIALIZED, DS_STATUS_DEVICE, "the process is ending: use CUDA before that"},
    {CUDA_ERROR_STUB_LIBRARY, DS_STATUS_NO_DRIVER,
     "the libcuda.so found is the CUDA toolkit's stub: take its folder out of LD_LIBRARY_PATH"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, DS_STATUS_DEVICE_BUSY, kBusyHint},
    {CUDA_ERROR_NO_DEVICE, DS_STATUS_NO_DEVICE, kVisibleHint},
    {CUDA_ERROR_INVALID_DEVICE, DS_STATUS_NO_DEVICE, kVisibleHint},
    {CUDA_ERROR_ECC_UNCORRECTABLE, DS_STATUS_DEVICE, kHardwareHint},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, DS_STATUS_DEVICE, kHardwareHint},
    {CUDA_ERROR_CONTEXT_ALREADY_IN_USE, DS_STATUS_DEVICE_BUSY, kBusyHint},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, DS_STATUS_DRIVER_VERSION,
     "update the NVIDIA driver, which compiles no PTX of this version, or install a library that has machine code for "
     "the device, as released wheels do"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, DS_STATUS_DEVICE, "the image contains no code for this device"},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, DS_STATUS_DEVICE,
     "install the driver's PTX compiler (libnvidia-ptxjitcompiler.so.1)"},
    {CUDA_ERROR_JIT_COMPILATION_DISABLED, DS_STATUS_DEVICE, "unset CUDA_DISABLE_PTX_JIT"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, DS_STATUS_DEVICE, kLostHint},
    {CUDA_ERROR_LAUNCH_TIMEOUT, DS_STATUS_DEVICE, kLostHint},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, DS_STATUS_DEVICE,
     "code in this process has reset the device: objects created on it before cannot be used"},
    {CUDA_ERROR_ASSERT, DS_STATUS_DEVICE, kLostHint},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, DS_STATUS_DEVICE, kLostHint},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, DS_STATUS_DEVICE, kLostHint},
    {CUDA_ERROR_MISALIGNED_ADDRESS, DS_STATUS_DEVICE, kLostHint},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, DS_STATUS_DEVICE, kLostHint},
    {CUDA_ERROR_INVALID_PC, DS_STATUS_DEVICE, kLostHint},
    {CUDA_ERROR_LAUNCH_FAILED, DS_STATUS_DEVICE, kLostHint},
    {CUDA_ERROR_NOT_PERMITTED, DS_STATUS_DEVICE, kUnsupportedHint},
    {CUDA_ERROR_NOT_SUPPORTED, DS_STATUS_DEVICE, kUnsupportedHint},
    {CUDA_ERROR_SYSTEM_NOT_READY, DS_STATUS_DEVICE, "check that the NVIDIA services run (nvidia-fabricmanager)"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, DS_STATUS_DRIVER_VERSION,
     "the driver's library and its kernel module differ: restart the machine, or the container with the host's driver"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, DS_STATUS_DRIVER_VERSION,
     "this device supports no forward-compatibility library: remove cuda-compat, or update the driver itself"},
    {CUDA_ERROR_MPS_CONNECTION_FAILED, DS_STATUS_DEVICE, kServerHint},
    {CUDA_ERROR_MPS_RPC_FAILURE, DS_STATUS_DEVICE, kServerHint},
    {CUDA_ERROR_MPS_SERVER_NOT_READY, DS_STATUS_DEVICE_BUSY, "the MPS server is starting or restarting: try again"},
    {CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, DS_STATUS_DEVICE_BUSY, "end another client of the MPS server"},
    {CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, DS_STATUS_DEVICE_BUSY, "end another client of the MPS server"},
    {CUDA_ERROR_MPS_CLIENT_TERMINATED, DS_STATUS_DEVICE, kServerHint},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, DS_STATUS_DEVICE,
     "the default stream cannot be used while a stream that it waits for is captured: use another stream, capture one "
     "made with CU_STREAM_NON_BLOCKING, or do this before or after the capture"},
    {CUDA_ERROR_UNKNOWN, DS_STATUS_DEVICE, "see dmesg and nvidia-smi; restart the process, then the machine"},
};

bool blames_argument(CUresult result) {
    return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_HANDLE ||
           result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_INVALID_IMAGE ||
           result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_OPERATING_SYSTEM;
}

Meaning find_meaning(CUresult result, bool has_argument) {
    if (has_argument && blames_argument(result)) return {result, DS_STATUS_INVALID_ARGUMENT, kArgumentHint};
    for (const Meaning& meaning : kMeanings) {
        if (meaning.result == result) return meaning;
    }
    if (is_capture_error(result)) return {result, DS_STATUS_DEVICE, kCaptureHint};
    return {result, DS_STATUS_DEVICE, "check that the device works with other programs; if so, please report this"};
}

int requested_version(const char* function) {
#define DS_DRIVER_COMPARE(name, version, parameters) \
    if (strcmp(function, #name) == 0) return version;
    DS_DRIVER_TABLE(DS_DRIVER_COMPARE)
#undef DS_DRIVER_COMPARE
    return 0;
}

ds_status fail_missing_function(const char* function) {
    const int needed = requested_version(function), version = driver().version;
    return fail(DS_STATUS_DRIVER_FUNCTION, "", kNewerDriverHint,
                "the NVIDIA driver has no %s: CUDA %d.%d introduced it, this driver supports CUDA %d.%d", function,
                needed / 1000, needed % 1000 / 10, version / 1000, version % 1000 / 10);
}

ds_status fail_in_forked_process() {
    return fail(DS_STATUS_DEVICE, "", "start processes with spawn (multiprocessing.set_start_method(\"spawn\"))",
                "CUDA cannot be used in a forked process: its parent had loaded the driver");
}

}  // namespace

bool is_capture_error(CUresult result) {
    return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

bool loses_context(CUresult result) { return find_meaning(result, false).hint == kLostHint; }

ds_status fail_driver(CUresult result, const char* function, const char* argument) {
    if (result == kFunctionMissing) return fail_missing_function(function);
    if (result == kCalledInForkedProcess) return fail_in_forked_process();
    const char* name = nullptr;
    const char* text = nullptr;
    driver().cuGetErrorName(result, &name);
    driver().cuGetErrorString(result, &text);
    const Meaning meaning = find_meaning(result, *argument != '\0');
    const int version = driver().version;
    const int needed = result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ? kPtxDriverVersion : kMinimumDriverVersion;
    fail(meaning.status, argument, meaning.hint,
         "%s failed: %s (%d), %s; the driver supports CUDA %d.%d, doorstep needs %d.%d or newer", function,
         name ? name : "an unknown error", result, text ? text : "without a description", version / 1000,
         version % 1000 / 10, needed / 1000, needed % 1000 / 10);
    set_driver_code(result);
    return meaning.status;
}

}  // namespace doorstep
