// The kernels of policies on the host, as on CUDA: the threads of a block in any order between two barriers.
#pragma once

#include "policy/kernels.h"
#include "thread_order.h"

namespace doorstep {

void emulate_act(const ActArguments& arguments, uint32_t grid, uint32_t shared_bytes, ThreadOrder order);
void emulate_prepare_rows(const PlayedRows& call);

}  // namespace doorstep
