// A crew for so few rows that most lanes of a vector of rows would be empty: the lanes of its products are outputs.
//
// Weights are transposed in registers, four inputs of eight outputs at a time. An output is the same chain of
// multiply-adds as in policy/linear.h, so it has the same bits.
#pragma once

#include "math/quad_lanes.h"
#include "policy/act_loop.h"

namespace doorstep {

// Fewer than half of a vector's lanes, and as many as a tile has.
using FewRowsShape = TileShape<QuadFloat, 1>;
constexpr int kFewRows = FewRowsShape::kRows;

struct FewRows : OneThread {
    int count;  // of the tile; the others are not multiplied
};

// ---- Products

constexpr int kGroupOutputs = WideFloat::kLanes;  // the lanes of a sum
constexpr int kGroupInputs = 4;                   // which are transposed together

// Groups of a block: as many sums as registers hold beside weights, and enough to hide the latency of a multiply-add.
constexpr int kGroups = 2;
constexpr int kBlock = kGroups * kGroupOutputs;

// Floats between the weights that are used and those that are fetched into the cache of the core: with few rows the
// weights of many policies come from memory. Addresses beyond the array do no harm. Measured, as are the groups.
constexpr int64_t kFloatsAhead = 4096;
constexpr int kFloatsOfLine = 16;

DS_INLINE float* place_of(const Product& product, int64_t output) {
    return product.outputs + output * product.step * kFewRows;
}

// What the outputs from `first` on begin with: the four rows of a group.
DS_INLINE void begin_group(const Product& product, int64_t first, WideFloat (&sums)[kFewRows]) {
    float biases[kGroupOutputs];
    for (int o = 0; o < kGroupOutputs; o++) biases[o] = product.biases.or_else(first + o, 0.f);
    const WideFloat bias = WideFloat::load(biases);
    if (product.begin == Begin::kBiases) {
        for (WideFloat& sum : sums) sum = bias;
        return;
    }
    for (int o = 0; o < 4; o++) {
        const float *const low = place_of(product, first + o), *const high = place_of(product, first + o + 4);
        sums[o] = join(QuadFloat::load(low), QuadFloat::load(high));
    }
    transpose_halves(sums);
    for (WideFloat& sum : sums) sum = bias + sum;
}

// Adds the products of kGroupInputs inputs from `input` on, but for the first `skipped` of them. weights: of the first
// output.
template <int kRows>
DS_INLINE void add_to_group(const Product& product, const float* __restrict weights, int64_t input, int skipped,
                            WideFloat (&sums)[kFewRows]) {
    const auto row = [&](int o) { return QuadFloat::load(weights + o * product.num_inputs + input); };
    WideFloat columns[kGroupInputs];
    DS_UNROLLED for (int o = 0; o < 4; o++) columns[o] = join(row(o), row(o + 4));
    transpose_halves(columns);
    const float* __restrict values = product.inputs + input * kFewRows;
    DS_UNROLLED for (int i = 0; i < kGroupInputs; i++) {
        if (i < skipped) continue;
        DS_UNROLLED for (int r = 0; r < kRows; r++)
            sums[r] = multiply_add(columns[i], WideFloat(values[i * kFewRows + r]), sums[r]);
    }
}

template <int kRows, int kNumGroups>
DS_INLINE void add_to_groups(const Product& product, const float* __restrict weights, int64_t input, int skipped,
                             WideFloat (&sums)[kNumGroups][kFewRows]) {
    DS_UNROLLED for (int g = 0; g < kNumGroups; g++)
        add_to_group<kRows>(product, weights + g * kGroupOutputs * product.num_inputs, input, skipped, sums[g]);
}

// kept: the outputs at the end of the group that are stored.
DS_INLINE void end_group(const Product& product, int64_t first, int kept, WideFloat (&sums)[kFewRows]) {
    transpose_halves(sums);
    for (int o = kGroupOutputs - kept; o < kGroupOutputs; o++)
        (o < 4 ? low_half(sums[o]) : high_half(sums[o - 4])).store(place_of(product, first + o));
}

// Groups of outputs from `first` on; kept: of each, as in end_group(). weights: of the first output.
template <int kRows, int kNumGroups>
DS_METHOD void multiply_groups(const Product& given, int64_t first, int kept, const float* __restrict weights) {
    const Product product = given;  // the copy is in registers, where stores do not change it
    constexpr int kOutputs = kNumGroups * kGroupOutputs;
    DS_ASSERT(first >= 0 && first + kOutputs <= product.num_outputs && product.inputs != product.outputs);
    WideFloat sums[kNumGroups][kFewRows];
    DS_UNROLLED for (int g = 0; g < kNumGroups; g++) begin_group(product, first + g * kGroupOutputs, sums[g]);
    const int64_t rest = product.num_inputs % kGroupInputs, end = product.num_inputs - rest;
    for (int64_t i = 0; i < end; i += kGroupInputs) {
        DS_UNROLLED for (int at = 0; at < kOutputs * kGroupInputs; at += kFloatsOfLine)
            __builtin_prefetch(weights + kFloatsAhead + i * kOutputs + at, 0, 2);
        add_to_groups<kRows>(product, weights, i, 0, sums);
    }
    const int repeated = static_cast<int>(kGroupInputs - rest);
    if (rest > 0) add_to_groups<kRows>(product, weights, end - repeated, repeated, sums);
    DS_UNROLLED for (int g = 0; g < kNumGroups; g++) end_group(product, first + g * kGroupOutputs, kept, sums[g]);
}

// The last group repeats outputs of the one before, which are not stored again.
template <int kRows>
DS_NOINLINE void multiply_rows(const Product& product) {
    int64_t first = 0;
    for (; first + kBlock <= product.num_outputs; first += kBlock)
        multiply_groups<kRows, kGroups>(product, first, kGroupOutputs, widened_rows(product, first, kBlock));
    while (first < product.num_outputs) {
        const int64_t left = product.num_outputs - first, kept = left < kGroupOutputs ? left : kGroupOutputs;
        first += kept;
        const float* const weights = widened_rows(product, first - kGroupOutputs, kGroupOutputs);
        multiply_groups<kRows, 1>(product, first - kGroupOutputs, static_cast<int>(kept), weights);
    }
}

template <class Shape>
    requires SameAs<Shape, FewRowsShape>
DS_METHOD void multiply(const FewRows& crew, const Product& product) {
    DS_ASSERT(crew.count >= 1 && crew.count <= kFewRows);
    if (product.num_outputs < kGroupOutputs || product.num_inputs < kGroupInputs)
        return multiply<Shape>(static_cast<const OneThread&>(crew), product);
    switch (crew.count) {
        case 1: return multiply_rows<1>(product);
        case 2: return multiply_rows<2>(product);
        case 3: return multiply_rows<3>(product);
        default: return multiply_rows<4>(product);
    }
}

// ---- Activations: of two features' rows at once

template <class Shape>
    requires SameAs<Shape, FewRowsShape>
DS_METHOD void activate_part(const ds_layer_config& layer, Part part, int64_t features, float* values) {
    using Pairs = TileShape<WideFloat, 1>;
    static_assert(Pairs::kRows == 2 * kFewRows);
    activate_part<Pairs>(layer, part, features / 2, values);
    if (features % 2 == 0) return;
    float *const last = values + (features - 1) * kFewRows, pair[Pairs::kRows] = {};
    memcpy(pair, last, kFewRows * sizeof *last);
    activate_part<Pairs>(layer, part, 1, pair);
    memcpy(last, pair, kFewRows * sizeof *last);
}

// ---- The loop

DS_INLINE int64_t act_on_few_rows(const Network& network, const TileRows& rows, float* scratch) {
    int64_t nonfinite = 0;
    // The other rows of a tile leave more memory than the weights of a block need, as row_floats() are at least the
    // inputs of any product.
    static_assert(kTileRows - kFewRows >= kBlock);
    float* const widened = scratch + network.row_floats() * kFewRows;
    act_on_tile<FewRowsShape>(FewRows{{}, rows.count}, network, rows, scratch, widened,
                              [&](int64_t found) { nonfinite += found; });
    return nonfinite;
}

// act_on_rows(), but for the last rows if they are few.
template <class Float>
DS_METHOD int64_t act_on_many_or_few_rows(const Network& network, const ActCall& call, int64_t first, int64_t count,
                                          float* scratch) {
    int64_t few = 0, nonfinite = 0;
    if constexpr (Float::kLanes == WideFloat::kLanes) {
        const int64_t last = count % (2 * Float::kLanes);
        if (last <= kFewRows) few = last;
        if (few > 0) nonfinite += act_on_few_rows(network, {call, first + count - few, static_cast<int>(few)}, scratch);
    }
    return nonfinite + act_on_rows<Float>(network, call, first, count - few, scratch);
}

}  // namespace doorstep
