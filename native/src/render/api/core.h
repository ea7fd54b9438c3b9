// The simulators' library, as this one sees it: the functions of doorstep.h through the table that ds_render_open() was
// given, and errors, which are kept there.
#pragma once

#include "doorstep_api.h"

namespace doorstep {

// The table. Only after ds_render_open().
const ds_api& core();
bool has_core();
void set_core(const ds_api* api);

// Sets the thread's error in the simulators' library and returns `status`, so that a check is one return statement.
// argument and hint may be "". Longer messages than an error can hold are cut.
[[gnu::format(printf, 4, 5)]] ds_status fail(ds_status status, const char* argument, const char* hint,
                                             const char* format, ...);

// LIBRARY, without a message, before ds_render_open().
inline ds_status check_open() { return has_core() ? DS_STATUS_OK : DS_STATUS_LIBRARY; }

// Checks that begin most calls; see doorstep.h.
ds_status fail_null(const char* argument);
ds_status fail_struct_size(const char* argument, uint32_t given, uint32_t expected);
ds_status check_range(const char* argument, const char* hint, int64_t value, int64_t smallest, int64_t largest);

// Checks that a struct exists and has this library's size.
template <class Struct>
ds_status check_struct(const Struct* given, const char* argument) {
    if (!given) return fail_null(argument);
    if (given->struct_size != sizeof(Struct)) return fail_struct_size(argument, given->struct_size, sizeof(Struct));
    return DS_STATUS_OK;
}

}  // namespace doorstep
