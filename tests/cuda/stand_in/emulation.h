// The kernels on the host: the same code, one float per lane, with the threads of a block executed one after the other
// between two barriers. Whether a thread sees another's write before a barrier depends on their order, so a missing
// barrier shows as a result that depends on the order.
#pragma once

#include "exec/cuda/kernels.h"
#include "thread_order.h"
#include "training/kernels.h"

namespace doorstep {

// The kernels of the executor, by their names in kKernelNames. Null for other names and kinds.
using EmulatedKernel = void (*)(const KernelArguments& arguments, uint32_t grid, uint32_t threads, ThreadOrder order);
EmulatedKernel find_emulated_kernel(int kind_of_worlds, const char* name);

// The training kernels, one item per thread, by their names in the module. Null for other names.
using EmulatedTrainingKernel = void (*)(const void* call, uint32_t grid, uint32_t threads, ThreadOrder order);
EmulatedTrainingKernel find_emulated_training_kernel(const char* name);

}  // namespace doorstep
