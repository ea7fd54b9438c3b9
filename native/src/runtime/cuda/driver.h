// The CUDA driver: loaded once, on first use. No other part of the library loads it or looks up its symbols.
//
// A forked child cannot use CUDA. There, every function of the table only returns kCalledInForkedProcess, so that
// inherited resources can be released without calling the driver.
#pragma once

#include "doorstep/cuda.h"
#include "runtime/cuda/driver_table.h"
#include "runtime/cuda/driver_types.h"

namespace doorstep {

// The oldest driver that loads machine code of CUDA 12 (R525 and later), in the driver's numbering: 12000 is 12.0.
constexpr int kMinimumDriverVersion = 12000;

// Further devices are not used.
constexpr int kMostDevices = 64;

constexpr int kMostModules = 32;  // of a device

// Results that the driver never returns.
constexpr CUresult kFunctionMissing = static_cast<CUresult>(-1);
constexpr CUresult kCalledInForkedProcess = static_cast<CUresult>(-2);

struct Driver {
    int version;  // the newest CUDA version it supports
#define DS_DRIVER_POINTER(name, version, parameters) CUresult(*name) parameters;
    DS_DRIVER_TABLE(DS_DRIVER_POINTER)
#undef DS_DRIVER_POINTER
};

// The driver, loaded and initialised if necessary. Null, with the thread's error set, if no driver can be used:
// NO_DRIVER, DRIVER_VERSION, DRIVER_FUNCTION, NO_DEVICE, DEVICE_BUSY, DEVICE.
const Driver* find_driver();

// For holders of a resource: the driver is loaded already, or this is a forked child.
const Driver& driver();

// What the process keeps of a device until it ends:
// - its primary context, because making it anew takes some tenths of a second; CUDA's runtime keeps it likewise. True once
//   per device: the caller's reference is the one to be kept.
bool keeps_primary_context(CUdevice device);
// - the modules that were loaded, by numbers below kMostModules; null: not loaded. The caller guards it.
CUmodule& kept_module(CUdevice device, int number);

// Whether this process was forked from one that had loaded the driver.
bool in_forked_process();

// Records that a driver function returned `result`, and returns the corresponding status. argument: the user's argument
// at fault, or "".
ds_status fail_driver(CUresult result, const char* function, const char* argument = "");

// Whether a result means that the context is lost: all work begun in it has ended, and no work can be begun.
bool loses_context(CUresult result);
// Whether a call was not allowed in a capture, or other code has ended the capture.
bool is_capture_error(CUresult result);

// For tests: the next find_driver() takes its symbols from here instead of the driver's library; null: from the library
// again. No resource may exist.
using SymbolResolver = void* (*)(const char* name);
void reset_driver(SymbolResolver resolver);

}  // namespace doorstep
