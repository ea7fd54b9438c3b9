// The tensors of a replica's simulator as its thread reads and writes them: those of the CPU, or copies of a device's.
#pragma once

#include <stdint.h>

#include "math/base.h"
#include "sim/action_table.h"

namespace doorstep {

struct HostTensors {
    float* observations;
    const float* rewards;
    const uint8_t *terminations, *truncations;
    int32_t* actions;
    int64_t num_inputs;  // floats of an observation

    float* observations_of(int64_t row) const { return observations + row * num_inputs; }
    int32_t* actions_of(int64_t row) const { return actions + row * kActionComponents; }
};

}  // namespace doorstep
