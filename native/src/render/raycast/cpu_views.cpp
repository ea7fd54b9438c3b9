#include "render/raycast/world_views.h"

namespace doorstep {

void draw_views_on_cpu(const ViewsCall& call, int64_t first_world, int64_t count, DrawingMemory& memory) {
    for (int64_t world = first_world; world < first_world + count; world++) draw_world<WideFloat>(call, world, memory);
}

}  // namespace doorstep
