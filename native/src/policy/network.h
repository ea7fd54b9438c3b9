// What evaluating a policy reads: plain data, for loops that are compiled for other instruction sets than the rest.
#pragma once

#include "doorstep/policies_and_rollouts.h"
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
    int32_t precision;  // ds_precision, of products
    int64_t num_inputs;
    int64_t state_size;
    // Sizes of scratch memory, in floats
    int64_t width;      // per row: the most values between two layers
    int64_t workspace;  // per row: the most further values of a layer
    int64_t kept;       // per row: the most values that are kept at once
    int64_t widened;    // weights of 16 bits, widened, of the most inputs of a product

    DS_METHOD int64_t row_floats() const { return 2 * width + workspace + kept; }
    DS_METHOD int64_t scratch_floats() const { return row_floats() * kTileRows + widened; }
};

// Rows of scores that attention has at once, per row of a tile: the threads of a block of CUDA for each of its rows.
constexpr int64_t kScoresPerRow = 4;

// Blocks of O rows that the weights of a layer consist of.
DS_INLINE int64_t num_gates(int32_t kind) { return kind == DS_LAYER_LSTM ? 4 : kind == DS_LAYER_GRU ? 3 : 1; }
DS_INLINE bool is_norm(int32_t kind) { return kind == DS_LAYER_LAYER_NORM || kind == DS_LAYER_RMS_NORM; }
DS_INLINE bool is_recurrent(int32_t kind) { return kind == DS_LAYER_LSTM || kind == DS_LAYER_GRU; }
// Whether a window moves over an image.
DS_INLINE bool has_window(int32_t kind) { return kind >= DS_LAYER_CONV && kind <= DS_LAYER_AVG_POOL; }
// Whether its outputs are as many as its inputs, and `num_outputs` is 0.
DS_INLINE bool keeps_size(int32_t kind) { return is_norm(kind) || kind == DS_LAYER_KEEP || kind == DS_LAYER_ADD; }
// Whether it works per element, for any number of them.
DS_INLINE bool is_activation(int32_t kind) { return kind >= DS_LAYER_RELU; }

// Values of a recurrent state, per row.
DS_INLINE int64_t state_size(const ds_layer_config& layer) {
    return layer.kind == DS_LAYER_LSTM ? 2 * layer.num_outputs : layer.kind == DS_LAYER_GRU ? layer.num_outputs : 0;
}

// Of a layer whose inputs are divided into tokens. 32 bits: widths are at most DS_MAX_LAYER_WIDTH, and GPUs divide
// numbers of 64 bits slowly.
DS_INLINE int num_tokens(const ds_layer_config& layer) {
    return layer.shape.num_tokens > 1 ? layer.shape.num_tokens : 1;
}
DS_INLINE int token_inputs(const ds_layer_config& layer) {
    return static_cast<int>(layer.num_inputs) / num_tokens(layer);
}
DS_INLINE int token_outputs(const ds_layer_config& layer) {
    return static_cast<int>(layer.num_outputs) / num_tokens(layer);
}

// Places of a window.
struct Places {
    int rows, columns;
    DS_METHOD int count() const { return rows * columns; }
};
DS_INLINE Places places_of(const ds_layer_shape& shape) {
    return {(shape.height + 2 * shape.pad_height - shape.kernel_height) / shape.stride_height + 1,
            (shape.width + 2 * shape.pad_width - shape.kernel_width) / shape.stride_width + 1};
}
// Inputs that a window covers, of all channels.
DS_INLINE int64_t window_inputs(const ds_layer_shape& shape) {
    return int64_t{shape.channels} * shape.kernel_height * shape.kernel_width;
}

// Numbers of the arrays of a layer, whether it has them or not.
struct ArrayCounts {
    int64_t weights, biases, hidden_weights, hidden_biases;
};
DS_INLINE ArrayCounts array_counts(const ds_layer_config& layer) {
    const int64_t inputs = token_inputs(layer), outputs = token_outputs(layer);  // products need 64 bits
    switch (layer.kind) {
        case DS_LAYER_LINEAR: return {outputs * inputs, outputs, 0, 0};
        case DS_LAYER_LAYER_NORM: return {inputs, inputs, 0, 0};
        case DS_LAYER_RMS_NORM: return {inputs, 0, 0, 0};
        case DS_LAYER_ATTENTION: return {3 * inputs * inputs, 3 * inputs, inputs * inputs, inputs};
        case DS_LAYER_CONV: {
            const int channels = static_cast<int>(layer.num_outputs) / places_of(layer.shape).count();
            return {channels * window_inputs(layer.shape), channels, 0, 0};
        }
        case DS_LAYER_LSTM:
        case DS_LAYER_GRU: {
            const int64_t gates = num_gates(layer.kind) * outputs;
            return {gates * inputs, gates, gates * outputs, gates};
        }
    }
    return {};
}

// The most inputs of the products that the layer consists of; 0 without one.
DS_INLINE int64_t product_inputs(const ds_layer_config& layer) {
    if (layer.kind == DS_LAYER_CONV) return window_inputs(layer.shape);
    const int64_t inputs = token_inputs(layer), state = is_recurrent(layer.kind) ? layer.num_outputs : 0;
    return inputs > state ? inputs : state;
}

// Values per row that a layer has besides inputs and outputs. LSTM, GRU: the state, and the gates: those of a GRU have
// two parts, which are combined in more than one way. Attention: queries, keys, values, and scores.
DS_INLINE int64_t workspace(const ds_layer_config& layer) {
    switch (layer.kind) {
        case DS_LAYER_LSTM: return 6 * layer.num_outputs;
        case DS_LAYER_GRU: return 7 * layer.num_outputs;
        case DS_LAYER_CONV: return window_inputs(layer.shape);
        case DS_LAYER_ATTENTION: return 3 * layer.num_inputs + kScoresPerRow * num_tokens(layer);
        case DS_LAYER_FUNCTION: return layer.num_inputs + layer.num_outputs;
    }
    return 0;
}

// Evaluate the rows [first, first + count) of a call, by 8 or 16 at a time; the bits are the same. Return the number of
// rows that got the neutral action because of their logits. scratch: scratch_floats(), aligned to kScratchAlignment.
int64_t act_with_avx2(const Network& network, const ActCall& call, int64_t first, int64_t count, float* scratch);
int64_t act_with_avx512(const Network& network, const ActCall& call, int64_t first, int64_t count, float* scratch);

}  // namespace doorstep
