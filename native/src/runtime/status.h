// The latest failure of each thread: what ds_last_error() tells.
#pragma once

#include "doorstep.h"

namespace doorstep {

// Records a failure of the calling thread and returns `status`, so that a check is one return statement.
// argument and hint may be "". The strings are copied; longer ones are cut.
[[gnu::format(printf, 4, 5)]] ds_status fail(ds_status status, const char* argument, const char* hint,
                                             const char* format, ...);

// Adds the CUDA driver's CUresult to the failure just recorded.
void set_driver_code(int32_t code);

// Adds to the message of the failure just recorded.
[[gnu::format(printf, 1, 2)]] void add_detail(const char* format, ...);

// A failure, kept for another thread to report.
struct Failure {
    ds_status status;
    char message[768];
    char argument[64];
    char hint[384];
    int32_t driver_code;
};
const Failure& last_failure();
ds_status fail_again(const Failure& failure);

// The status of the thread's latest failure, for those who got a null object instead of it.
ds_status last_status();

// Fills in everything but struct_size.
void read_last_error(ds_error* error);

}  // namespace doorstep
