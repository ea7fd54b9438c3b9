// The CUDA driver: opened on first use, once. Nothing else in the library opens it or knows its symbols.
//
// A forked child cannot use CUDA. There, every function of the table only returns kCalledInForkedProcess, so that
// whatever the child inherited can be let go without a call of the driver.
#pragma once

#include "doorstep.h"
#include "runtime/cuda/driver_table.h"
#include "runtime/cuda/driver_types.h"

namespace doorstep {

// The oldest driver that loads machine code of CUDA 12 (R525 and later), as the driver counts: 12000 is 12.0.
constexpr int kMinimumDriverVersion = 12000;

// Results that no driver gives.
constexpr CUresult kFunctionMissing = static_cast<CUresult>(-1);
constexpr CUresult kCalledInForkedProcess = static_cast<CUresult>(-2);

struct Driver {
    int version;  // the newest CUDA version it knows
#define DS_DRIVER_POINTER(name, version, parameters) CUresult(*name) parameters;
    DS_DRIVER_TABLE(DS_DRIVER_POINTER)
#undef DS_DRIVER_POINTER
};

// The driver, opened and initialised if that has not been done. Null, with the thread's error set, if there is none
// that can be used: NO_DRIVER, DRIVER_VERSION, DRIVER_FUNCTION, NO_DEVICE, DEVICE_BUSY, DEVICE.
const Driver* find_driver();

// The same for those who hold a resource: it is open already, or this is a forked child.
const Driver& driver();

// Whether this process was forked from one that had opened the driver.
bool in_forked_process();

// Records that a function of the driver returned `result`, and returns the status it amounts to. argument: the one
// that the caller's user can blame, or "".
ds_status fail_driver(CUresult result, const char* function, const char* argument = "");

// Whether a result tells that the context is lost: everything begun in it has ended, and nothing can be begun.
bool loses_context(CUresult result);

// For tests: the next find_driver() takes its symbols from here instead of the driver's library; null: from the
// library again. No resource may be alive.
using SymbolResolver = void* (*)(const char* name);
void reset_driver(SymbolResolver resolver);

}  // namespace doorstep
