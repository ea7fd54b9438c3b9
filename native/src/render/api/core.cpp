#include "render/api/core.h"

#include <stdarg.h>
#include <stdio.h>

namespace doorstep {
namespace {

const ds_api* table = nullptr;

}  // namespace

const ds_api& core() { return *table; }
bool has_core() { return table != nullptr; }
void set_core(const ds_api* api) { table = api; }

ds_status fail(ds_status status, const char* argument, const char* hint, const char* format, ...) {
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (table) table->set_error(status, argument, hint, message);
    return status;
}

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
