// The layers of a network, evaluated for the rows of a tile.
#pragma once

#include "policy/lane_functions.h"
#include "policy/linear.h"

namespace doorstep {

// Scratch memory of a tile; see Network.
struct TileMemory {
    float* values;     // the outputs of the layer before
    float* next;       // those of this layer
    float* workspace;
    float* kept;       // where the next layer that keeps its values puts them
    float* widened;

    DS_METHOD void swap() {
        float* const outputs = next;
        next = values;
        values = outputs;
    }
};

// Calls function(offset) for each vector of the values of `features` features.
template <class Shape, class Function>
DS_METHOD void for_each_vector(Part part, int64_t features, const Function& function) {
    constexpr int kLanes = Shape::kLanes;
    for (int64_t at = part.first * kLanes; at < features * Shape::kRows; at += part.stride * kLanes) function(at);
}

// ---- Per element

template <class Shape, class Function>
DS_METHOD void activate(Part part, int64_t features, float* values, const Function& function) {
    using Float = typename Shape::Float;
    for_each_vector<Shape>(part, features, [&](int64_t at) { function(Float::load(values + at)).store(values + at); });
}

template <class Shape>
DS_NOINLINE void activate_part(const ds_layer_config& layer, Part part, int64_t features, float* values) {
    using Float = typename Shape::Float;
    const float parameter = layer.parameter;
    switch (layer.kind) {
        case DS_LAYER_RELU: return activate<Shape>(part, features, values, [](Float x) { return relu(x); });
        case DS_LAYER_RELU6: return activate<Shape>(part, features, values, [](Float x) { return relu6(x); });
        case DS_LAYER_LEAKY_RELU:
            return activate<Shape>(part, features, values, [=](Float x) { return leaky_relu(x, parameter); });
        case DS_LAYER_ELU: return activate<Shape>(part, features, values, [=](Float x) { return elu(x, parameter); });
        case DS_LAYER_CELU: return activate<Shape>(part, features, values, [=](Float x) { return celu(x, parameter); });
        case DS_LAYER_SELU: return activate<Shape>(part, features, values, [](Float x) { return selu(x); });
        case DS_LAYER_SILU: return activate<Shape>(part, features, values, [](Float x) { return silu(x); });
        case DS_LAYER_MISH: return activate<Shape>(part, features, values, [](Float x) { return mish(x); });
        case DS_LAYER_SIGMOID: return activate<Shape>(part, features, values, [](Float x) { return sigmoid(x); });
        case DS_LAYER_HARDSIGMOID:
            return activate<Shape>(part, features, values, [](Float x) { return hard_sigmoid(x); });
        case DS_LAYER_HARDSWISH: return activate<Shape>(part, features, values, [](Float x) { return hard_swish(x); });
        case DS_LAYER_TANH:
            return activate<Shape>(part, features, values, [](Float x) { return hyperbolic_tangent(x); });
        case DS_LAYER_SOFTSIGN: return activate<Shape>(part, features, values, [](Float x) { return softsign(x); });
        case DS_LAYER_SOFTPLUS:
            return activate<Shape>(part, features, values, [=](Float x) { return softplus(x, parameter); });
        case DS_LAYER_GELU: return activate<Shape>(part, features, values, [](Float x) { return gelu(x); });
        case DS_LAYER_GELU_TANH: return activate<Shape>(part, features, values, [](Float x) { return gelu_tanh(x); });
    }
}

// ---- Over all features of a row

// Ba, Kiros, Hinton: "Layer normalization" (2016): mean and variance of a row's features become 0 and 1, then each
// feature has a scale and an offset. Zhang, Sennrich: "Root mean square layer normalization" (2019) takes 0 for the
// mean. values: of a token, of the first of kVectors vectors of rows.
template <class Shape>
DS_NOINLINE void normalize_rows(const ds_layer_config& layer, float* values) {
    using Float = typename Shape::Float;
    constexpr int kVectors = Shape::kVectors;
    const int64_t count = token_inputs(layer);
    const WeightArray scales = {layer.weights, layer.weight_type == DS_WEIGHT_BFLOAT16};
    const WeightArray offsets = {layer.biases, layer.weight_type == DS_WEIGHT_BFLOAT16};
    const Float size = static_cast<float>(count);
    Float means[kVectors], factors[kVectors];
    for (int v = 0; v < kVectors; v++) means[v] = factors[v] = Float(0.f);
    const int64_t summed = layer.kind == DS_LAYER_LAYER_NORM ? count : 0;
    for (int64_t i = 0; i < summed; i++)
        for (int v = 0; v < kVectors; v++)
            means[v] = means[v] + Float::load(values + i * Shape::kRows + v * Shape::kLanes);
    for (int v = 0; v < kVectors; v++) means[v] = means[v] / size;
    for (int64_t i = 0; i < count; i++)
        for (int v = 0; v < kVectors; v++) {
            const Float distance = Float::load(values + i * Shape::kRows + v * Shape::kLanes) - means[v];
            factors[v] = multiply_add(distance, distance, factors[v]);
        }
    for (int v = 0; v < kVectors; v++)
        factors[v] = Float(1.f) / square_root(factors[v] / size + Float(layer.parameter));
    for (int64_t i = 0; i < count; i++) {
        const Float scale = scales.or_else(i, 1.f), offset = offsets.or_else(i, 0.f);
        for (int v = 0; v < kVectors; v++) {
            float* const at = values + i * Shape::kRows + v * Shape::kLanes;
            multiply_add((Float::load(at) - means[v]) * factors[v], scale, offset).store(at);
        }
    }
}

template <class Shape>
DS_METHOD void normalize_part(const ds_layer_config& layer, Part part, float* values) {
    constexpr int kTogether = Shape::kVectors * Shape::kLanes, kParts = Shape::kRows / kTogether;
    const int64_t size = int64_t{token_inputs(layer)} * Shape::kRows;
    for (int at = part.first; at < num_tokens(layer) * kParts; at += part.stride)
        normalize_rows<Shape>(layer, values + at / kParts * size + at % kParts * kTogether);
}

// ---- Products

struct Matrix {
    const void *weights, *biases;
    int64_t num_inputs, num_outputs;
};

DS_INLINE Product product_of(const ds_layer_config& layer, const Matrix& matrix, const float* inputs, float* outputs,
                             Begin begin, float* widened) {
    const bool is_narrow = layer.weight_type == DS_WEIGHT_BFLOAT16;
    return {{matrix.weights, is_narrow}, {matrix.biases, is_narrow}, matrix.num_inputs, matrix.num_outputs,
            inputs,  outputs, 1, begin, widened};
}

template <class Shape, class Crew>
DS_METHOD void apply_linear(const Crew& crew, const ds_layer_config& layer, const float* inputs, float* outputs,
                            float* widened) {
    const Matrix matrix = {layer.weights, layer.biases, token_inputs(layer), token_outputs(layer)};
    for (int64_t token = 0; token < num_tokens(layer); token++) {
        const float* const from = inputs + token * matrix.num_inputs * Shape::kRows;
        float* const to = outputs + token * matrix.num_outputs * Shape::kRows;
        multiply<Shape>(crew, product_of(layer, matrix, from, to, Begin::kBiases, widened));
    }
}

// ---- Recurrent layers. The workspace begins with the state, by feature as all values are; the new one replaces it.

// gates = biases + weights * inputs, and its part that depends on the state: hidden biases + hidden weights * h.
template <class Shape, class Crew>
DS_METHOD void multiply_gates(const Crew& crew, const ds_layer_config& layer, const TileMemory& memory, float* gates,
                              float* hidden_gates, Begin begin) {
    const int64_t num_rows = num_gates(layer.kind) * layer.num_outputs;
    const Matrix by_input = {layer.weights, layer.biases, layer.num_inputs, num_rows};
    const Matrix by_state = {layer.hidden_weights, layer.hidden_biases, layer.num_outputs, num_rows};
    multiply<Shape>(crew, product_of(layer, by_input, memory.values, gates, Begin::kBiases, memory.widened));
    multiply<Shape>(crew, product_of(layer, by_state, memory.workspace, hidden_gates, begin, memory.widened));
}

// Hochreiter, Schmidhuber: "Long short-term memory" (1997), with the forget gate of Gers et al. (2000).
template <class Shape, class Crew>
DS_NOINLINE void apply_lstm(const Crew& crew, const ds_layer_config& layer, const TileMemory& memory) {
    using Float = typename Shape::Float;
    const int64_t part = layer.num_outputs * Shape::kRows;
    float *const h = memory.workspace, *const c = h + part, *const gates = c + part;
    multiply_gates<Shape>(crew, layer, memory, gates, gates, Begin::kBiasesAndOutputs);
    const auto update = [&](int64_t at) {
        const Float input = sigmoid(Float::load(gates + at)), forget = sigmoid(Float::load(gates + part + at));
        const Float candidate = hyperbolic_tangent(Float::load(gates + 2 * part + at));
        const Float output = sigmoid(Float::load(gates + 3 * part + at));
        const Float cell = multiply_add(forget, Float::load(c + at), input * candidate);
        const Float result = output * hyperbolic_tangent(cell);
        cell.store(c + at);
        result.store(h + at);
        result.store(memory.next + at);
    };
    crew.each([&](Part part) { for_each_vector<Shape>(part, layer.num_outputs, update); });
}

// Cho et al.: "Learning phrase representations using RNN encoder-decoder" (2014), in the form of cuDNN: the reset gate
// multiplies the product with the state, biases included.
template <class Shape, class Crew>
DS_NOINLINE void apply_gru(const Crew& crew, const ds_layer_config& layer, const TileMemory& memory) {
    using Float = typename Shape::Float;
    const int64_t part = layer.num_outputs * Shape::kRows;
    float *const h = memory.workspace, *const gates = h + part, *const hidden_gates = gates + 3 * part;
    multiply_gates<Shape>(crew, layer, memory, gates, hidden_gates, Begin::kBiases);
    const auto update = [&](int64_t at) {
        const auto gate = [&](int64_t k) { return Float::load(gates + k * part + at); };
        const auto hidden_gate = [&](int64_t k) { return Float::load(hidden_gates + k * part + at); };
        const Float reset = sigmoid(gate(0) + hidden_gate(0)), update = sigmoid(gate(1) + hidden_gate(1));
        const Float candidate = hyperbolic_tangent(multiply_add(reset, hidden_gate(2), gate(2)));
        const Float result = multiply_add(update, Float::load(h + at) - candidate, candidate);
        result.store(h + at);
        result.store(memory.next + at);
    };
    crew.each([&](Part part) { for_each_vector<Shape>(part, layer.num_outputs, update); });
}

}  // namespace doorstep
