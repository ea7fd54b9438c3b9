// Offsets of worlds, tensors and constants in a simulator's memory: the same on every device.
#pragma once

#include <stdint.h>

#include "doorstep.h"
#include "exec/tensor_table.h"
#include "sim/world_model.h"

namespace doorstep {

// Parts of one memory, one after the other.
struct Parts {
    int64_t bytes = 0;  // sum of all parts

    // Adds a part, aligned as tensors are, and returns its offset.
    int64_t place(int64_t part_bytes);
};

// Offsets in bytes from the start of the memory; -1 for parts that the simulator does not have.
struct ArenaLayout : Parts {
    int64_t worlds;
    int64_t tensors[DS_TENSOR_COUNT];
    int64_t constants[DS_STATE_COUNT];  // state fields that the model fixes; -1: the blocks contain it
};

ArenaLayout lay_out_arena(const ds_simulator_config& config, const WorldModel& model);

Dimensions dimensions_of(const ds_simulator_config& config, const WorldModel& model);

// Bytes from the start of the first to the end of the last element of a field of the table, in one world.
int64_t constant_bytes(const WorldModel& model, int field);

// Sets the addresses of worlds and tensors in a memory that starts at `base`.
void locate(const ArenaLayout& layout, char* base, Simulation* simulation);

void* tensor_address(const TensorPointers& tensors, int tensor);
void set_tensor_address(TensorPointers* tensors, int tensor, void* address);

}  // namespace doorstep
