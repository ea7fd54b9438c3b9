// Products of a layer's weights with the rows of a tile, on the CPU.
//
// A tile's values are stored by feature: all rows of the first one, then those of the second. So the lanes of a vector
// are rows, a weight is broadcast to all of them, and weights are read as PyTorch stores them: [outputs, inputs].
//
// An output is one chain of fused multiply-adds, over the inputs in ascending order. It has the same bits whatever the
// lanes, the tile and the block of outputs that it is computed with.
#pragma once

#include "math/fused_lanes.h"
#include "policy/network.h"

#if defined(__CUDACC__)
#define DS_UNROLLED _Pragma("unroll 16")
#define DS_LOAD_CONSTANT(address) __ldg(address)  // of memory that no kernel is writing
#else
#define DS_UNROLLED _Pragma("GCC unroll 16")
#define DS_LOAD_CONSTANT(address) *(address)
#endif

namespace doorstep {

// Who evaluates a tile of rows: one thread on the CPU, the threads of a block on CUDA.
//
// A crew has each(stage), which calls stage(part) for the part of every thread and returns when all are done; and
// PerThread<Value>, a value of each thread between two stages. Variables set between two calls of each() are set to the
// same values by every thread. kCallsHost: it can call functions of the host.

// The items of a thread: first, first + stride, ...
struct Part {
    int first, stride;
};

struct OneThread {
    static constexpr bool kCallsHost = true;
    template <class Stage>
    DS_METHOD void each(const Stage& stage) const {
        stage(Part{0, 1});
    }
};

// ---- Products

// Values of a layer for the rows of a tile: kRows for each feature. A thread processes kVectors vectors together;
// kRun: neighbouring threads that read a run of a row's features from the caller's arrays.
template <FusedLanes FloatT, int kVectorsT>
struct TileShape {
    using Float = FloatT;
    static constexpr int kVectors = kVectorsT;
    static constexpr int kLanes = Float::kLanes;
    static constexpr int kRows = kVectors * kLanes;
    static constexpr int kRun = 1;

    // Outputs of a block: as many sums as registers hold beside the inputs, and enough to hide the latency of a
    // multiply-add. Measured; blocks of other sizes are slower.
    static constexpr int kOutputs = kLanes == 16 ? (kVectors == 1 ? 12 : kVectors == 4 ? 6 : 8)
                                                 : (kVectors == 1 ? 12 : 12 / kVectors);
    static_assert(kOutputs <= kBlockOutputs);
    static_assert(kRows <= kTileRows);
};

// A weight as a float; those of 16 bits are its upper half.
DS_INLINE float as_float(float weight) { return weight; }
DS_INLINE float as_float(uint16_t weight) {
    const uint32_t bits = uint32_t{weight} << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// An array of weights or biases of either type, or null: zeros.
struct WeightArray {
    const void* data;
    bool widened;  // 16 bits

    DS_METHOD float operator[](int64_t index) const {
        return widened ? as_float(static_cast<const uint16_t*>(data)[index])
                       : as_float(static_cast<const float*>(data)[index]);
    }
    DS_METHOD float or_else(int64_t index, float otherwise) const { return data ? (*this)[index] : otherwise; }
};

// What begins the sums of a product.
enum class Begin {
    kBiases,           // and nothing else
    kBiasesAndOutputs  // and what the outputs are before
};

struct Product {
    WeightArray weights, biases;
    int64_t num_inputs, num_outputs;
    const float* inputs;
    float* outputs;
    int64_t step;  // from an output to the next one, in features
    Begin begin;
    float* widened;  // memory for the weights of a block
};

// Blocks between the weights that are used and those that are fetched into the cache of the core. The latter are in
// order in memory, which the processor does not see in the order of their use. Addresses beyond the array do no harm.
constexpr int64_t kBlocksAhead = 2;

// weights: of the block's first output; a row each.
template <class Shape, int kOutputs>
DS_METHOD void multiply_block(const Product& product, int64_t first, const float* __restrict weights) {
    using Float = typename Shape::Float;
    Float sums[kOutputs][Shape::kVectors];
    float* const outputs = product.outputs + first * product.step * Shape::kRows;
    const int64_t step = product.step * Shape::kRows;
    DS_ASSERT(first >= 0 && first + kOutputs <= product.num_outputs && product.inputs != product.outputs);
    DS_UNROLLED for (int o = 0; o < kOutputs; o++) {
        const Float bias = product.biases.or_else(first + o, 0.f);
        DS_UNROLLED for (int v = 0; v < Shape::kVectors; v++) {
            sums[o][v] = bias;
            if (product.begin == Begin::kBiasesAndOutputs)
                sums[o][v] = bias + Float::load(outputs + o * step + v * Shape::kLanes);
        }
    }
    const float* __restrict inputs = product.inputs;
    const int64_t num_inputs = product.num_inputs;
    const float* const ahead = weights + kBlocksAhead * kOutputs * num_inputs;
    for (int64_t i = 0; i < num_inputs; i++) {
        if constexpr (Shape::kVectors == 1) __builtin_prefetch(ahead + i * kOutputs, 0, 2);  // more rows hide it
        Float values[Shape::kVectors];
        DS_UNROLLED for (int v = 0; v < Shape::kVectors; v++)
            values[v] = Float::load(inputs + i * Shape::kRows + v * Shape::kLanes);
        DS_UNROLLED for (int o = 0; o < kOutputs; o++) {
            const Float weight = weights[o * num_inputs + i];
            DS_UNROLLED for (int v = 0; v < Shape::kVectors; v++)
                sums[o][v] = multiply_add(weight, values[v], sums[o][v]);
        }
    }
    DS_UNROLLED for (int o = 0; o < kOutputs; o++)
        DS_UNROLLED for (int v = 0; v < Shape::kVectors; v++)
            sums[o][v].store(outputs + o * step + v * Shape::kLanes);
}

// The weights of some outputs as floats.
DS_INLINE const float* widened_rows(const Product& product, int64_t first, int64_t count) {
    const int64_t begin = first * product.num_inputs;
    if (!product.weights.widened) return static_cast<const float*>(product.weights.data) + begin;
    const uint16_t* from = static_cast<const uint16_t*>(product.weights.data) + begin;
    for (int64_t i = 0; i < count * product.num_inputs; i++) {
        const uint32_t bits = uint32_t{from[i]} << 16;
        memcpy(product.widened + i, &bits, sizeof bits);
    }
    return product.widened;
}

// Of at most kOutputs outputs.
template <class Shape, int kOutputs>
DS_METHOD void multiply_some(const Product& product, int64_t first, int64_t count, const float* weights) {
    DS_ASSERT(count >= 1 && count <= kOutputs);
    if (count == kOutputs) return multiply_block<Shape, kOutputs>(product, first, weights);
    if constexpr (kOutputs > 1) multiply_some<Shape, kOutputs - 1>(product, first, count, weights);
}

template <class Shape>
DS_NOINLINE void multiply(const OneThread&, const Product& product) {
    for (int64_t first = 0; first < product.num_outputs; first += Shape::kOutputs) {
        const int64_t left = product.num_outputs - first;
        const int64_t count = left < Shape::kOutputs ? left : Shape::kOutputs;
        multiply_some<Shape, Shape::kOutputs>(product, first, count, widened_rows(product, first, count));
    }
}

}  // namespace doorstep
