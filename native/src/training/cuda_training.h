// The training kernels on CUDA devices: one launch on the caller's stream, which may be recorded. The kernels are
// loaded beforehand, because that cannot be done during a recording.
#pragma once

#include "training/kernels.h"

namespace doorstep {

// Kept from the first prepare to as many releases, for a device.
ds_status prepare_training_on_cuda(int64_t device_index);
ds_status release_training_on_cuda(int64_t device_index);

// Begins a call, whose arguments have been checked.
#define DS_TRAINING_FUNCTION(name, Call, items) ds_status name##_on_cuda(const Call& call);
DS_TRAINING_KERNEL_TABLE(DS_TRAINING_FUNCTION)
#undef DS_TRAINING_FUNCTION

}  // namespace doorstep
