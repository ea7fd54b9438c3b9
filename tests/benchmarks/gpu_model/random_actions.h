// Actions in range, drawn uniformly.
#pragma once

#include <stdint.h>

#include "draws.h"

namespace gpu_model {

// row: of `slots` agents, one after the other.
inline void write_random_actions(Draws& draws, int32_t* row, int64_t slots) {
    for (int64_t slot = 0; slot < slots; ++slot, row += 4) {
        row[0] = static_cast<int32_t>(draws.below(4));
        row[1] = static_cast<int32_t>(draws.below(8));
        row[2] = static_cast<int32_t>(draws.below(5));
        row[3] = static_cast<int32_t>(draws.below(2));
    }
}

}  // namespace gpu_model
