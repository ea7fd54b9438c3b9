// Errors of entry points about their arguments. Both libraries have them, each based on its own fail().
#pragma once

#include "doorstep.h"
#include "runtime/status.h"

namespace doorstep {

inline ds_status fail_null(const char* argument) {
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "pass the address of an object", "%s is a null pointer",
                argument);
}

// For a struct whose struct_size is not this library's.
inline ds_status fail_struct_size(const char* argument, uint32_t given, uint32_t expected) {
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "set struct_size to sizeof the struct before the call",
                "%s.struct_size is %u; it must be %u", argument, given, expected);
}

// Checks that a struct exists and has this library's size.
template <class Struct>
ds_status check_struct(const Struct* given, const char* argument) {
    if (!given) return fail_null(argument);
    if (given->struct_size != sizeof(Struct)) return fail_struct_size(argument, given->struct_size, sizeof(Struct));
    return DS_STATUS_OK;
}

inline ds_status check_range(const char* argument, const char* hint, int64_t value, int64_t smallest,
                             int64_t largest) {
    if (value >= smallest && value <= largest) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, hint, "%s is %lld; it must be %lld to %lld", argument,
                static_cast<long long>(value), static_cast<long long>(smallest), static_cast<long long>(largest));
}

}  // namespace doorstep
