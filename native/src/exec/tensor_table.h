// The tables of doorstep.h as data: names, types and shapes of tensors and state fields.
#pragma once

#include <stdint.h>

#include "doorstep.h"

namespace doorstep {

struct TensorRow {
    const char* name;
    ds_dtype dtype;
    const char* shape;  // "N,A,4"
    ds_access access;
};

extern const TensorRow kTensorRows[DS_TENSOR_COUNT];
extern const TensorRow kStateRows[DS_STATE_COUNT];

// Flat observations: written if their address is not null.
constexpr bool may_be_null(int64_t tensor) {
    return tensor == DS_TENSOR_observations || tensor == DS_TENSOR_final_observations;
}

// final_*, episode_returns and episode_lengths: written when an episode ends, and kept until the next one does.
constexpr bool outlives_step(int64_t tensor) { return tensor >= DS_TENSOR_final_steps_remaining; }

// The values of a shape's symbols in one simulator.
struct Dimensions {
    int64_t num_worlds;             // N
    int64_t num_agents;             // A
    int64_t flat_observation_size;  // F
};

int64_t dtype_bytes(int32_t dtype);

// Fills in dtype, access, rank, shape and C-contiguous strides of a tensor; not its address.
void describe_tensor(const TensorRow& row, const Dimensions& dimensions, ds_tensor_info* info);

// Bytes of a described C-contiguous tensor.
int64_t tensor_bytes(const ds_tensor_info& info);

}  // namespace doorstep
