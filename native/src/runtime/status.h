// The latest error of each thread, for ds_last_error().
#pragma once

#include "doorstep/library.h"

namespace doorstep {

// Records a failure of the calling thread and returns `status`, so that a check is one return statement.
// argument and hint may be "". The strings are copied; long ones are truncated.
[[gnu::format(printf, 4, 5)]] ds_status fail(ds_status status, const char* argument, const char* hint,
                                             const char* format, ...);

// Adds the CUDA driver's CUresult to the failure just recorded.
void set_driver_code(int32_t code);

// Adds to the message of the failure just recorded.
[[gnu::format(printf, 1, 2)]] void add_detail(const char* format, ...);

// An error, kept for another thread to report.
struct Failure {
    ds_status status;
    char message[768];
    char argument[64];
    char hint[384];
    int32_t driver_code;
};
const Failure& last_failure();
ds_status fail_again(const Failure& failure);

// The status of the thread's latest error, for callers of functions that returned null.
ds_status last_status();

// Fills in everything but struct_size.
void read_last_error(ds_error* error);

}  // namespace doorstep
