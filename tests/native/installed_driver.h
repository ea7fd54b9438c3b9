// The stand-in of tests/cuda as the driver of a native test: what it shall do next, and what it has seen.
#pragma once

#include <stdint.h>

#include "check.h"
#include "driver.h"
#include "runtime/cuda/module.h"
#include "runtime/reference.h"
#include "runtime/status.h"

namespace stand_in {

// Makes doorstep load a new driver. No resource may exist.
void install(const Settings& settings = {});

// Makes the next call of a function fail.
void fail_next(const char* function, doorstep::CUresult result = doorstep::CUDA_ERROR_UNKNOWN);

// Live objects of one of the kinds that Driver::live() counts, or of all of them but contexts and modules.
int64_t alive(const char* kind);
int64_t alive();

// The reference count of a device's primary context.
int64_t retained(int device);

// The number of calls that broke the driver's rules; it prints them.
int64_t violations();

// The number of calls so far, and the index of the first call of a function (-1: not called).
int64_t calls();
int64_t count_calls(const char* function);
int64_t first_call(const char* function);

// A stream that other code has made.
uint64_t make_foreign_stream(int device);

// An image with one kernel, which does nothing.
constexpr char kImage[] = ".version 8.0\n.target sm_75\n.visible .entry double_everything(.param .u64 data) { ret; }\n";
constexpr char kKernelName[] = "double_everything";
doorstep::Ref<doorstep::Module> load_module(const doorstep::Ref<doorstep::Context>& context);

}  // namespace stand_in

// ---- Checks: the thread's error, and leaks

inline ds_error latest_error() {
    ds_error error{};
    doorstep::read_last_error(&error);
    return error;
}

inline int64_t live_resources() {
    int64_t sum = 0;
    for (const auto& count : doorstep::live_counts.resources) sum += count.load();
    return sum;
}

// Every law ends the resources that it made, and no call breaks the driver's rules.
inline void check_after_driver_law() {
    CHECK_EQUAL(live_resources(), 0);
    CHECK_EQUAL(stand_in::violations(), 0);
}
inline const bool checks_after_laws = (check_after_law = check_after_driver_law, true);

// Drops references in this order.
template <class... Refs>
void drop(Refs&... refs) { ((refs = {}), ...); }

// Besides, nothing is left alive but contexts and modules, which the process keeps.
inline void check_clean() {
    CHECK_EQUAL(stand_in::alive(), 0);
    for (int device = 0; device < stand_in::driver().settings.devices; ++device) CHECK(stand_in::retained(device) <= 1);
    check_after_driver_law();
}
