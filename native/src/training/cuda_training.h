// The training kernels on CUDA devices: one launch on the caller's stream, which may be captured. The kernels are
// loaded beforehand, because loading is impossible during a capture.
#pragma once

#include "training/kernels.h"

namespace doorstep {

// Loaded per device from the first prepare() until as many releases.
ds_status prepare_training_on_cuda(int64_t device_index);
ds_status release_training_on_cuda(int64_t device_index);

// Begins a call, whose arguments have been checked.
#define DS_TRAINING_FUNCTION(name, Call, items) ds_status name##_on_cuda(const Call& call);
DS_TRAINING_KERNEL_TABLE(DS_TRAINING_FUNCTION)
#undef DS_TRAINING_FUNCTION

}  // namespace doorstep
