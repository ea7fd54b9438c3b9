// Attention of a row's tokens to each other: Vaswani et al., "Attention is all you need" (2017).
//
// The workspace has queries, keys and values of each token, one behind the other, and then scores. What a head of a
// token attends to replaces its query, which nothing else reads.
#pragma once

#include "policy/layers.h"

namespace doorstep {

// One head of one token, for a vector of rows: the keys' products with the query, their softmax, the values' sum.
// scores: one vector for each token, `stride` floats apart.
template <class Shape>
DS_METHOD void attend(const ds_layer_config& layer, float* query, const float* keys, const float* values,
                      float* scores, int64_t stride) {
    using Float = typename Shape::Float;
    const int tokens = num_tokens(layer), size = token_inputs(layer) / layer.shape.num_attention_heads;
    const int64_t step = int64_t{3} * token_inputs(layer) * Shape::kRows;  // from a token to the next one
    const Float scale = Float(1.f) / square_root(Float(static_cast<float>(size)));
    Float largest = -infinity<float>(), total = 0.f;
    for (int token = 0; token < tokens; token++) {
        Float sum = 0.f;
        for (int i = 0; i < size; i++)
            sum = multiply_add(Float::load(query + i * Shape::kRows),
                               Float::load(keys + token * step + i * Shape::kRows), sum);
        sum = sum * scale;
        largest = maximum(largest, sum);
        sum.store(scores + token * stride);
    }
    for (int token = 0; token < tokens; token++) {
        const Float weight = decay(Float::load(scores + token * stride) - largest);
        total = total + weight;
        weight.store(scores + token * stride);
    }
    for (int i = 0; i < size; i++) {
        Float sum = 0.f;
        for (int token = 0; token < tokens; token++)
            sum = multiply_add(Float::load(scores + token * stride),
                               Float::load(values + token * step + i * Shape::kRows), sum);
        (sum / total).store(query + i * Shape::kRows);
    }
}

template <class Shape>
DS_NOINLINE void attend_part(const ds_layer_config& layer, Part part, float* projected, float* scores) {
    constexpr int kVectors = Shape::kRows / Shape::kLanes;
    const int heads = layer.shape.num_attention_heads, items = num_tokens(layer) * heads * kVectors;
    const int64_t width = int64_t{token_inputs(layer)} * Shape::kRows;
    for (int at = part.first; at < items; at += part.stride) {
        const int token = at / kVectors / heads, head = at / kVectors % heads;
        const int first_of_head = head * (token_inputs(layer) / heads);
        float* const first = projected + int64_t{first_of_head} * Shape::kRows + at % kVectors * Shape::kLanes;
        attend<Shape>(layer, first + token * 3 * width, first + width, first + 2 * width,
                      scores + part.first * Shape::kLanes, int64_t{part.stride} * Shape::kLanes);
    }
}

template <class Shape, class Crew>
DS_NOINLINE void apply_attention(const Crew& crew, const ds_layer_config& layer, const TileMemory& memory) {
    const int64_t width = token_inputs(layer);
    float *const projected = memory.workspace, *const scores = projected + 3 * layer.num_inputs * Shape::kRows;
    const Matrix in = {layer.weights, layer.biases, width, 3 * width};
    const Matrix out = {layer.hidden_weights, layer.hidden_biases, width, width};
    const auto project = [&](const Matrix& matrix, const float* inputs, float* outputs) {
        multiply<Shape>(crew, product_of(layer, matrix, inputs, outputs, Begin::kBiases, memory.widened));
    };
    for (int64_t at = 0; at < layer.num_inputs; at += width)
        project(in, memory.values + at * Shape::kRows, projected + 3 * at * Shape::kRows);
    crew.each([&](Part part) { attend_part<Shape>(layer, part, projected, scores); });
    for (int64_t at = 0; at < layer.num_inputs; at += width)
        project(out, projected + 3 * at * Shape::kRows, memory.next + at * Shape::kRows);
}

}  // namespace doorstep
