// The simulators' library: the functions of doorstep.h through the table passed to ds_render_open(). fail() of
// runtime/status.h sets errors there; messages longer than an error can contain are truncated.
#pragma once

#include "doorstep_api.h"
#include "runtime/argument_checks.h"

namespace doorstep {

// The table. Call only after ds_render_open().
const ds_api& core();
bool has_core();
void set_core(const ds_api* api);

// LIBRARY, without a message, before ds_render_open().
inline ds_status check_open() { return has_core() ? DS_STATUS_OK : DS_STATUS_LIBRARY; }

}  // namespace doorstep
