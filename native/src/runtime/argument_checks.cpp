#include "runtime/argument_checks.h"

namespace doorstep {

ds_status fail_null(const char* argument) {
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "pass the address of an object", "%s is a null pointer",
                argument);
}

ds_status fail_struct_size(const char* argument, uint32_t given, uint32_t expected) {
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "set struct_size to sizeof the struct before the call",
                "%s.struct_size is %u; it must be %u", argument, given, expected);
}

ds_status check_range(const char* argument, const char* hint, int64_t value, int64_t smallest, int64_t largest) {
    if (value >= smallest && value <= largest) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, hint, "%s is %lld; it must be %lld to %lld", argument,
                static_cast<long long>(value), static_cast<long long>(smallest), static_cast<long long>(largest));
}

}  // namespace doorstep
