#include "render/raycast/world_views.h"

namespace doorstep {

template <class Limits>
void draw_views_on_cpu(const ViewsCall& call, int64_t first_world, int64_t count, DrawingMemory<Limits>& memory) {
    for (int64_t world = first_world; world < first_world + count; world++) draw_world<WideFloat>(call, world, memory);
}

template void draw_views_on_cpu(const ViewsCall&, int64_t, int64_t, DrawingMemory<ReferenceScene>&);
template void draw_views_on_cpu(const ViewsCall&, int64_t, int64_t, DrawingMemory<LevelScene>&);

}  // namespace doorstep
