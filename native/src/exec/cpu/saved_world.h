// The bytes of one world in a save: its block, and its rows of the tensors that decide its future or tell its latest
// step. The rest (observations, steps_remaining) is recomputed from the block; final_* rows are not kept.
#pragma once

#include <stdint.h>

#include "exec/cpu/cpu_simulator.h"

namespace doorstep {

int64_t saved_world_bytes(const CpuSimulator& simulator);
void save_world(const CpuSimulator& simulator, int64_t world, char* bytes);
void restore_world(const CpuSimulator& simulator, int64_t world, const char* bytes);

// False if the block's indices or counters are impossible under the simulator's rules.
bool saved_world_is_valid(const CpuSimulator& simulator, const char* bytes);

}  // namespace doorstep
