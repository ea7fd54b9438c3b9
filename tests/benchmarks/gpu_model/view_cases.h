// Camera views in the model.
#pragma once

#include "measured.h"

namespace gpu_model {

// Draws 64 x 64 pixels, colours and depths, by the PTX and by the CPU; ends the process unless all bytes are equal.
// plays_levels: the worlds have as much room as any level; they play the reference's.
Measured measure_views(bool plays_levels, int num_agents, int num_worlds);

}  // namespace gpu_model
