// Actions of a network in the model.
#pragma once

#include "measured.h"

namespace gpu_model {

// Evaluates a perceptron of three layers of 256 values for so many rows, by the PTX and by the CPU; ends the process
// unless all bytes are equal.
Measured measure_act(int64_t num_rows);

}  // namespace gpu_model
