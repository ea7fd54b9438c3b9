// How the functions of the driver are written.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "driver.h"

// The stand-in is compiled with hidden symbols; it exports these.
#define STAND_IN_EXPORT extern "C" __attribute__((visibility("default")))

// A function of the driver, and the CUDA version that introduced these parameters. The body returns a code, or ends
// with success.
#define STAND_IN(symbol, version, parameters, ...)                                                \
    STAND_IN_EXPORT int symbol parameters;                                                        \
    static const stand_in::Listed listed_##symbol{#symbol, version, reinterpret_cast<void*>(&symbol)}; \
    int symbol parameters {                                                                       \
        return stand_in::call(#symbol, [&]() -> int { __VA_ARGS__ return stand_in::kSuccess; });  \
    }

// What most bodies begin with.
#define FIND(variable, objects, handle)                      \
    const auto variable = find(driver().objects, handle);    \
    if (!variable) return kInvalidHandle
#define FIND_STREAM(variable, handle)                \
    Stream* const variable = find_stream(handle);    \
    if (!variable) return kInvalidHandle
#define FIND_CONTEXT(variable)                      \
    Context* const variable = current_context();    \
    if (!variable) return kInvalidContext
#define TRY(expression) \
    if (const int code = expression) return code
#define REFUSE_IF(condition, code, ...) \
    if (condition) return refuse(code, text(__VA_ARGS__))

// By it the library finds the functions.
STAND_IN_EXPORT int cuGetProcAddress_v2(const char* name, void** address, int version, uint64_t flags, int* status);
// Those that native tests call.
STAND_IN_EXPORT int cuStreamBeginCapture_v2(uint64_t handle, int mode);
STAND_IN_EXPORT int cuStreamEndCapture(uint64_t handle, uint64_t* graph);
STAND_IN_EXPORT int cuGraphDestroy(uint64_t handle);
