// The training kernels, run on the host as CUDA would: one item a thread, threads in any order.
#pragma once

#include "emulation.h"
#include "training/kernels.h"

namespace doorstep {

using EmulatedTrainingKernel = void (*)(const void* call, uint32_t grid, uint32_t threads, ThreadOrder order);

// name: as in the module. Null if there is no such kernel.
EmulatedTrainingKernel find_emulated_training_kernel(const char* name);

}  // namespace doorstep
