// Views on the CPU, eight pixels at a time; compiled for AVX2.
#pragma once

#include "render/raycast/world_views.h"

namespace doorstep {

// Draws all views of some worlds, in the default float environment, which the simulator's threads have.
void draw_views_on_cpu(const ViewsCall& call, int64_t first_world, int64_t count, DrawingMemory& memory);

}  // namespace doorstep
