// Where the worlds, tensors and constants of a simulator are in its memory: the same on every device. And the parts of
// it that are one world's in a save.
#pragma once

#include <stdint.h>
#include <string.h>

#include <algorithm>

#include "doorstep/rooms.h"
#include "exec/tensors.h"
#include "sim/world_model.h"

namespace doorstep {

// ---- Layout

// Parts of one memory, one after the other.
struct Parts {
    int64_t bytes = 0;  // sum of all parts

    // Adds a part, aligned as tensors are, and returns its offset.
    int64_t place(int64_t part_bytes);
};

// Offsets in bytes from the start of the memory; -1 for parts that the simulator does not have.
struct ArenaLayout : Parts {
    int64_t worlds;
    int64_t levels;
    int64_t tensors[DS_TENSOR_COUNT];
    int64_t constants[DS_STATE_COUNT];  // state fields that the model fixes; -1: the blocks contain it
};

// The worlds of a simulator.
inline WorldKind kind_of(const ds_simulator_config& config) {
    return {static_cast<int>(config.num_agents), config.max_levels > 0};
}

ArenaLayout lay_out_arena(const ds_simulator_config& config, const WorldModel& model);

Dimensions dimensions_of(const ds_simulator_config& config, const WorldModel& model);

// Bytes from the start of the first to the end of the last element of a field of the table, in one world.
int64_t constant_bytes(const WorldModel& model, int field);

// ---- Addresses

// The pointers are in the order of the table.
static_assert(sizeof(TensorPointers) == DS_TENSOR_COUNT * sizeof(void*));

inline TensorPointers tensors_of(void* const* addresses) {
    TensorPointers tensors;
    memcpy(&tensors, addresses, sizeof tensors);
    return tensors;
}

void* tensor_address(const TensorPointers& tensors, int tensor);
void set_tensor_address(TensorPointers* tensors, int tensor, void* address);

// Sets the addresses of worlds and tensors in a memory that starts at `base`.
void locate(const ArenaLayout& layout, char* base, Simulation* simulation);

// ---- Saves

// The part of a saved tensor, below: the block is the first part, then come the saved tensors in the table's order.
constexpr int part_of(int tensor) {
    return 1 + static_cast<int>(std::count_if(kTensorRows, kTensorRows + tensor, [](auto& row) { return row.saved; }));
}
constexpr int kBlockPart = 0, kActionPart = part_of(DS_TENSOR_actions), kSavedParts = part_of(DS_TENSOR_COUNT);
static_assert(kTensorRows[DS_TENSOR_actions].saved);

// One world in a save: its block, and its rows of the tensors that determine its future or contain its latest step's
// results. The rest is recomputed from the block (observations, steps_remaining), or left as it is (final_*).
// The part of world i is at start + i * bytes.
struct SavedParts {
    struct Part {
        char* start;
        int64_t bytes;
    } parts[kSavedParts];

    int64_t bytes() const;  // per world
    void save(int64_t world, char* saved) const;
    void restore(int64_t world, const char* saved) const;
};

// At the simulation's own addresses, on its device.
SavedParts saved_parts(const Simulation& simulation, const WorldModel& model);

}  // namespace doorstep
