// Products by tensor cores, for policies of DS_PRECISION_BFLOAT16: inputs and weights are rounded to bfloat16, their
// products are added in single precision, in the hardware's order. All else is as in policy/block_loop.h.
//
// A warp multiplies 16 outputs with the rows of the tile, 16 inputs at a time, by four instructions mma.m16n8k16 of the
// PTX ISA: sums[16, 8] += weights[16, 16] * values[16, 8]. Each thread holds a fragment of every matrix: with `group`
// its lane / 4 and `place` its lane % 4, rows `group` and `group + 8` of sums and weights, column `group` of values; of
// these, columns of sums and inputs by `place`. Which outputs, rows and inputs of the product these are is free, as
// long as the matrices agree. Here those of a thread are side by side, so that it loads and stores vectors: row i of
// sums and weights is output 2 (i % 8) + i / 8 of the warp, column i of matrix j is row 4 i + j of the tile. What a
// register holds, two inputs beside each other in the matrices, are inputs i and i + 8 of 16: a thread fetches the
// weights of both.
//
// A crew has, beside what policy/block_loop.h asks of it, rounded_pair(low, high), two numbers as bfloat16, and
// multiply_matrices(part, fragments_of, sums), which adds a thread's part of the products of the four matrices;
// fragments_of(part) is what a thread of the warp contributes. All threads of a warp call it, or none.
#pragma once

#include "policy/block_loop.h"

namespace doorstep {

// ---- Staged: for each pair of inputs the weights of all outputs, then the values of all rows

constexpr int kMatrixInputs = 16, kMatrixPairs = kMatrixInputs / 2;  // the inputs of a pair are kMatrixPairs apart
constexpr int kWarpThreads = 32, kWarpOutputs = 16;
constexpr int kPairs = kStagedInputs / 2;
constexpr int kWeightPitch = kStagedOutputs + 8, kValuePitch = kActRows + 8;  // words; a warp reads from all banks
static_assert(kPairs * (kWeightPitch + kValuePitch) <= kStagedFloats);
static_assert(BlockShape::kRun == kMatrixPairs && kActThreads == kPairs * (kActRows / 4));

struct alignas(16) FourPairs {
    uint32_t values[4];
};
struct alignas(8) TwoPairs {
    uint32_t values[2];
};

struct StagedPairs {
    uint32_t *weights, *values;
    DS_METHOD explicit StagedPairs(const Product& product)
        : weights(reinterpret_cast<uint32_t*>(product.widened)), values(weights + kPairs * kWeightPitch) {}
};

DS_INLINE int first_input(int pair) { return pair % kMatrixPairs + pair / kMatrixPairs * kMatrixInputs; }
DS_INLINE int pair_of(int first) { return first % kMatrixPairs + first / kMatrixInputs * kMatrixPairs; }

// ---- Fragments

// Of the four registers of weights, two for each pair; the two registers of values of each matrix.
struct Fragments {
    TwoPairs weights[2];
    FourPairs values[2];
};

// Of inputs from kMatrixInputs * step on.
DS_INLINE Fragments fragments_of(const StagedPairs& staged, int step, Part part) {
    const int warp = part.first / kWarpThreads, group = part.first % kWarpThreads / 4, place = part.first % 4;
    Fragments fragments;
    for (int k = 0; k < 2; k++) {
        const int pair = step * kMatrixPairs + k * 4 + place;
        const uint32_t* const weights = staged.weights + pair * kWeightPitch + warp * kWarpOutputs + group * 2;
        const uint32_t* const values = staged.values + pair * kValuePitch + group * 4;
        fragments.weights[k] = *reinterpret_cast<const TwoPairs*>(weights);
        fragments.values[k] = *reinterpret_cast<const FourPairs*>(values);
    }
    return fragments;
}

struct TensorCores {
    // A thread's sums of a matrix are its numbers in sums.of[0] to sums.of[3]: rows `group` and `group + 8`, of each
    // columns `2 place` and `2 place + 1`.
    struct SumsPlace {
        int first_output, first_row;
        DS_METHOD explicit SumsPlace(Part part)
            : first_output(part.first / kWarpThreads * kWarpOutputs + part.first % kWarpThreads / 4 * 2),
              first_row(part.first % 4 * 8) {}
        DS_METHOD int output(int k) const { return first_output + k / 2; }
        DS_METHOD int row(int k) const { return first_row + k % 2 * 4; }
    };
    static_assert(kActThreads / kWarpThreads * kWarpOutputs == kStagedOutputs && kActRows == 4 * 8);

    // A thread's weights, and a pair of inputs of four rows. Inputs that do not exist are zeros in both.
    template <class Crew>
    static DS_METHOD void stage(const Crew& crew, const Product& product, const Piece& piece, Part part,
                                const FetchedWeights& fetched) {
        const StagedPairs staged(product);
        DS_UNROLLED for (int k = 0; k < FetchedWeights::kCount; k += 2) {
            const StagedPlace place(part, k);
            staged.weights[pair_of(place.input) * kWeightPitch + place.output] =
                crew.rounded_pair(fetched.of[k], fetched.of[k + 1]);
        }
        const int row = part.first % (kActRows / 4) * 4, pair = part.first / (kActRows / 4), input = first_input(pair);
        const auto values_of = [&](int i) {
            return i < piece.inputs ? load_four(product.inputs + (piece.input + i) * kActRows + row) : FourFloats{};
        };
        const FourFloats low = values_of(input), high = values_of(input + kMatrixPairs);
        FourPairs rounded;
        for (int r = 0; r < 4; r++) rounded.values[r] = crew.rounded_pair(low.values[r], high.values[r]);
        *reinterpret_cast<FourPairs*>(staged.values + pair * kValuePitch + row) = rounded;
    }

    template <class Crew>
    static DS_METHOD void add(const Crew& crew, const Product& product, const Piece& piece, Part part, Sums& sums) {
        if (part.first / kWarpThreads * kWarpOutputs >= piece.outputs) return;  // the whole warp
        const StagedPairs staged(product);
        DS_UNROLLED for (int step = 0; step < kStagedInputs / kMatrixInputs; step++)
            crew.multiply_matrices(part, [&](Part one) { return fragments_of(staged, step, one); }, sums);
    }
};

struct TensorShape : BlockShape {
    using Products = TensorCores;
};

}  // namespace doorstep
