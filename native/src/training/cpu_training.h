// The training kernels on the CPU.
#pragma once

#include "training/kernels.h"

namespace doorstep {

// Executes a call, whose arguments have been checked, on the calling thread. The CPU must have the instruction sets
// that worlds are compiled for.
#define DS_TRAINING_FUNCTION(name, Call, items) void name##_on_cpu(const Call& call);
DS_TRAINING_KERNEL_TABLE(DS_TRAINING_FUNCTION)
#undef DS_TRAINING_FUNCTION

}  // namespace doorstep
