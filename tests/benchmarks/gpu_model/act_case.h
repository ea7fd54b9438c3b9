// Actions of a network in the model.
#pragma once

#include "doorstep/policies_and_rollouts.h"
#include "measured.h"

namespace gpu_model {

// Evaluates a perceptron of three layers of 256 values for so many rows, by the PTX and by the CPU; ends the process
// unless all bytes are equal, or for DS_PRECISION_BFLOAT16 the logits near.
Measured measure_act(int64_t num_rows, ds_precision precision);

}  // namespace gpu_model
