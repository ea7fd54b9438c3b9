// Defaults and checks of the structs of configurations, from their tables in doorstep.h.
#pragma once

#include "api/call.h"
#include "runtime/config.h"

namespace doorstep {

inline constinit HandleRegistry<Config> configs{HandleKind::CONFIG};

void set_defaults(ds_simulator_config* fields);
ds_status check_fields(const ds_simulator_config& fields);

// The configuration of a handle; null, with the thread's error set, if it was released or is of another kind.
Ref<Config> find_config(ds_config handle, ds_config_kind kind, const char* argument);

}  // namespace doorstep
