// The kernels of the CUDA executor, run on the host: the same code, one float per lane, with the threads of a block
// taken one after the other between two barriers. What a thread must not read before a barrier it may or may not find
// written here, depending on the order, so that a missing barrier shows as a result that depends on the order.
#pragma once

#include "exec/cuda/kernels.h"
#include "thread_order.h"

namespace doorstep {

using EmulatedKernel = void (*)(const KernelArguments& arguments, uint32_t grid, uint32_t threads, ThreadOrder order);

// name: as in kKernelNames. Null if there is no such kernel.
EmulatedKernel find_emulated_kernel(int num_agents, const char* name);

}  // namespace doorstep
