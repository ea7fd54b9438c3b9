// Errors of entry points about their arguments. Both libraries have them, each based on its own fail().
#pragma once

#include "doorstep.h"
#include "runtime/status.h"

namespace doorstep {

ds_status fail_null(const char* argument);
// For a struct whose struct_size is not this library's.
ds_status fail_struct_size(const char* argument, uint32_t given, uint32_t expected);

// Checks that a struct exists and has this library's size.
template <class Struct>
ds_status check_struct(const Struct* given, const char* argument) {
    if (!given) return fail_null(argument);
    if (given->struct_size != sizeof(Struct)) return fail_struct_size(argument, given->struct_size, sizeof(Struct));
    return DS_STATUS_OK;
}

ds_status check_range(const char* argument, const char* hint, int64_t value, int64_t smallest, int64_t largest);

}  // namespace doorstep
