// The simulators' library, as this one sees it: the functions of doorstep.h through the table that ds_render_open() was
// given, and errors, which are kept there.
#pragma once

#include "doorstep_api.h"

namespace doorstep {

// The table. Only after ds_render_open().
const ds_api& core();
bool has_core();
void set_core(const ds_api* api);

}  // namespace doorstep
