// What evaluating a policy reads: plain data, for loops that are compiled for other instruction sets than the rest.
#pragma once

#include "doorstep.h"
#include "math/base.h"

namespace doorstep {

using Sampling = ds_sampling;
using SamplingKey = ds_sampling_key;
using ActCall = ds_policy_call;  // null `actions`: only logits and states; `struct_size` and `num_rows` are not read

// Rows that are evaluated together, at most. Ranges of multiples of it waste no work; every range gives the same bits.
constexpr int64_t kTileRows = 64;

// Outputs of a layer that are computed together, at most.
constexpr int64_t kBlockOutputs = 12;

constexpr int64_t kScratchAlignment = 64;

struct Network {
    const ds_layer_config* layers;
    int64_t num_layers;
    int64_t num_heads;  // the last layers, which take the same inputs
    bool has_value;     // the last head gives no logits, but the value
    int64_t num_inputs;
    int64_t state_size;
    // Sizes of scratch memory, in floats
    int64_t width;      // per row: the most values between two layers
    int64_t workspace;  // per row: the most further values of a recurrent layer
    int64_t widened;    // weights of 16 bits, widened, of the most inputs of a layer

    int64_t scratch_floats() const { return (2 * width + workspace) * kTileRows + widened; }
};

// Blocks of O rows that the weights of a layer consist of.
DS_INLINE int64_t num_gates(int32_t kind) { return kind == DS_LAYER_LSTM ? 4 : kind == DS_LAYER_GRU ? 3 : 1; }
DS_INLINE bool is_norm(int32_t kind) { return kind == DS_LAYER_LAYER_NORM || kind == DS_LAYER_RMS_NORM; }
DS_INLINE bool is_recurrent(int32_t kind) { return kind == DS_LAYER_LSTM || kind == DS_LAYER_GRU; }
// Whether it works per element, for any number of them.
DS_INLINE bool is_activation(int32_t kind) { return kind >= DS_LAYER_RELU; }

// Values of a recurrent state, per row.
DS_INLINE int64_t state_size(const ds_layer_config& layer) {
    return layer.kind == DS_LAYER_LSTM ? 2 * layer.num_outputs : layer.kind == DS_LAYER_GRU ? layer.num_outputs : 0;
}
// The state, and the gates: those of a GRU have two parts, which are combined in more than one way.
DS_INLINE int64_t workspace(const ds_layer_config& layer) {
    return layer.kind == DS_LAYER_LSTM ? 6 * layer.num_outputs : layer.kind == DS_LAYER_GRU ? 7 * layer.num_outputs : 0;
}

// Evaluate the rows [first, first + count) of a call, by 8 or 16 at a time; the bits are the same. Return the number of
// rows that got the neutral action because of their logits. scratch: scratch_floats(), aligned to kScratchAlignment.
int64_t act_with_avx2(const Network& network, const ActCall& call, int64_t first, int64_t count, float* scratch);
int64_t act_with_avx512(const Network& network, const ActCall& call, int64_t first, int64_t count, float* scratch);

}  // namespace doorstep
