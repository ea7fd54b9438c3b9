// The checks of a level, which simulators and shared levels have.
#pragma once

#include "doorstep.h"

namespace doorstep {

// index: its place in the caller's array, for messages.
ds_status check_level(const ds_level& level, uint64_t index, int64_t num_agents);
ds_status check_rewards(const ds_level_rewards& rewards);

}  // namespace doorstep
