// The kernels that draw views on the host, as on CUDA: the threads of a block in any order between two barriers.
#pragma once

#include "render/raycast/block_views.h"
#include "thread_order.h"

namespace doorstep {

void emulate_draw_views(const ViewsCall& call, uint32_t grid, ThreadOrder order);

}  // namespace doorstep
