// Checks of arguments that several entry points have. Each returns DS_STATUS_OK, or the status of the error it has set.
#pragma once

#include <stdint.h>

#include "doorstep.h"
#include "exec/simulator.h"
#include "runtime/argument_checks.h"
#include "runtime/memory.h"

namespace doorstep {

// DEVICE if this CPU lacks an instruction set that worlds are compiled for.
ds_status check_cpu();

// 0 or 1.
ds_status check_flag(const char* argument, int64_t value);
// Not 0.
ds_status check_bytes(uint64_t bytes);

// ---- The rules of worlds, of a simulator or a batch

ds_status check_num_worlds(int64_t num_worlds);
ds_status check_num_agents(int64_t num_agents);
ds_status check_episode_length(int64_t episode_length);
ds_status check_seed(int64_t seed);
ds_status check_world_offset(int64_t world_offset, int64_t num_worlds);
ds_status check_observations(const ds_observations& observations, int64_t num_agents, const char* remedy);
// Of requests and calls of policies.
ds_status check_sampling(const ds_sampling& sampling);
// kind: a ds_device_kind, at most last_kind.
ds_status check_device(int32_t kind, int64_t index, ds_device_kind last_kind = DS_DEVICE_CUDA);

// index: the level's place in the caller's array, for messages.
ds_status check_level(const ds_level& level, uint64_t index, int64_t num_agents);
ds_status check_rewards(const ds_level_rewards& rewards);

// ---- Tensors

// The ds_tensor_id of a tensor that the simulator has.
ds_status check_tensor(const Simulator& simulator, int64_t tensor);
// A struct that describes elements inside the memory.
ds_status check_description(const Memory& memory, const ds_tensor_info& info);

}  // namespace doorstep
