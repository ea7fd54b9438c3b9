// The kernels of the CUDA executor on the host: the same code, one float per lane, with the threads of a block executed
// one after the other between two barriers. Whether a thread sees another's write before a barrier depends on their
// order, so a missing barrier shows as a result that depends on the order.
#pragma once

#include "exec/cuda/kernels.h"
#include "thread_order.h"

namespace doorstep {

using EmulatedKernel = void (*)(const KernelArguments& arguments, uint32_t grid, uint32_t threads, ThreadOrder order);

// name: as in kKernelNames. Null for other names.
EmulatedKernel find_emulated_kernel(int num_agents, const char* name);

}  // namespace doorstep
