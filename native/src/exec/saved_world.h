// The bytes of one world in a save: its block, and its rows of the tensors that determine its future or contain its
// latest step's results. The rest (observations, steps_remaining) is recomputed from the block; final_* is not saved.
#pragma once

#include <stdint.h>

#include "exec/simulator.h"

namespace doorstep {

constexpr int kSavedParts = 9;
constexpr int kBlockPart = 0, kActionPart = 1;

// The parts of a world in a save, in order: the part of world i is at start + i * bytes.
struct SavedParts {
    struct Part {
        char* start;
        int64_t bytes;
    } parts[kSavedParts];

    int64_t bytes() const;  // per world
    void save(int64_t world, char* saved) const;
    void restore(int64_t world, const char* saved) const;
};

// In the simulator's own memory, on its device.
SavedParts saved_parts(const Simulator& simulator);

int64_t saved_world_bytes(const Simulator& simulator);

// False if the block's indices or counters are impossible under the simulator's rules.
bool saved_world_is_valid(const Simulator& simulator, const char* saved);

}  // namespace doorstep
