// The simulators' library, as this one sees it: the functions of doorstep.h through the table that ds_render_open() was
// given, and errors, which fail() of runtime/status.h keeps there; longer messages than an error can hold are cut.
#pragma once

#include "doorstep_api.h"
#include "runtime/argument_checks.h"

namespace doorstep {

// The table. Only after ds_render_open().
const ds_api& core();
bool has_core();
void set_core(const ds_api* api);

// LIBRARY, without a message, before ds_render_open().
inline ds_status check_open() { return has_core() ? DS_STATUS_OK : DS_STATUS_LIBRARY; }

}  // namespace doorstep
