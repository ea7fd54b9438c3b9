// The latest failure of each thread: what ds_last_error() tells.
#pragma once

#include "doorstep.h"

namespace doorstep {

// Records a failure of the calling thread and returns `status`, so that a check is one return statement.
// argument and hint may be "". The strings are copied; longer ones are cut.
[[gnu::format(printf, 4, 5)]] ds_status fail(ds_status status, const char* argument, const char* hint,
                                             const char* format, ...);

// Fills in everything but struct_size.
void read_last_error(ds_error* error);

}  // namespace doorstep
