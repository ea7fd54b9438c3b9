// The training kernels on the host, as on CUDA: one item per thread, threads in any order.
#pragma once

#include "emulation.h"
#include "training/kernels.h"

namespace doorstep {

using EmulatedTrainingKernel = void (*)(const void* call, uint32_t grid, uint32_t threads, ThreadOrder order);

// name: as in the module. Null for other names.
EmulatedTrainingKernel find_emulated_training_kernel(const char* name);

}  // namespace doorstep
