// The kernel's work, as a template over a crew: the threads of a CUDA block, or those that the tests emulate.
//
// The formulas are those of the CPU; only products are divided otherwise: a thread keeps the sums of a few outputs and
// rows, for which the block brings weights into shared memory, piece by piece. A sum is the same chain of multiply-adds
// over the inputs, so it has the same bits. Tensor cores would add in another order.
#pragma once

#include "policy/act_loop.h"
#include "policy/kernels.h"

namespace doorstep {

struct BlockShape {
    using Float = NarrowFloat;
    static constexpr int kVectors = 1;
    static constexpr int kLanes = 1;
    static constexpr int kRows = kActRows;
    static constexpr int kRun = 8;
};

struct alignas(16) FourFloats {
    float values[4];
};

DS_INLINE FourFloats load_four(const float* from) { return *reinterpret_cast<const FourFloats*>(from); }

// ---- Products

// Of four outputs with four rows, per thread.
struct Sums {
    FourFloats of[4];
};

// Where a thread's outputs and rows begin. Threads of a warp share rows and weights.
struct SumsPlace {
    int row, output;
    DS_METHOD explicit SumsPlace(Part part)
        : row(part.first % (kActRows / 4) * 4), output(part.first / (kActRows / 4) * 4) {}
};
static_assert(kActThreads / (kActRows / 4) * 4 == kStagedOutputs);

// A piece of the weights: some outputs, from `output` on, of some inputs, from `input` on.
struct Piece {
    int64_t output, input;
    int outputs, inputs;
};

DS_INLINE void begin_sums(const Product& product, const Piece& piece, Part part, Sums& sums) {
    const SumsPlace place(part);
    for (int o = 0; o < 4; o++) {
        if (place.output + o >= piece.outputs) continue;
        const int64_t output = piece.output + place.output + o;
        const float bias = product.biases.or_else(output, 0.f);
        for (int r = 0; r < 4; r++) sums.of[o].values[r] = bias;
        if (product.begin != Begin::kBiasesAndOutputs) continue;
        const FourFloats before = load_four(product.outputs + output * product.step * kActRows + place.row);
        for (int r = 0; r < 4; r++) sums.of[o].values[r] = bias + before.values[r];
    }
}

// A warp reads whole sectors, of four outputs, and writes to all banks.
DS_INLINE void stage_weights(const Product& product, const Piece& piece, Part part) {
    constexpr int kRun = BlockShape::kRun;
    for (int o = part.first / kRun; o < piece.outputs; o += part.stride / kRun) {
        const int64_t row = (piece.output + o) * product.num_inputs + piece.input;
        for (int i = part.first % kRun; i < piece.inputs; i += kRun)
            product.widened[i * kStagedPitch + o] = product.weights[row + i];
    }
}

DS_INLINE void add_products(const Product& product, const Piece& piece, Part part, Sums& sums) {
    const SumsPlace place(part);
    if (place.output >= piece.outputs) return;
    const float* values = product.inputs + piece.input * kActRows + place.row;
    const float* weights = product.widened + place.output;
    DS_UNROLLED for (int i = 0; i < piece.inputs; i++) {
        const FourFloats value = load_four(values + i * kActRows), weight = load_four(weights + i * kStagedPitch);
        for (int o = 0; o < 4; o++)
            for (int r = 0; r < 4; r++)
                sums.of[o].values[r] = multiply_add(weight.values[o], value.values[r], sums.of[o].values[r]);
    }
}

DS_INLINE void end_sums(const Product& product, const Piece& piece, Part part, const Sums& sums) {
    const SumsPlace place(part);
    for (int o = 0; o < 4; o++) {
        if (place.output + o >= piece.outputs) continue;
        const int64_t output = piece.output + place.output + o;
        *reinterpret_cast<FourFloats*>(product.outputs + output * product.step * kActRows + place.row) = sums.of[o];
    }
}

DS_INLINE int at_most(int64_t left, int most) { return left < most ? static_cast<int>(left) : most; }

template <class Shape, class Crew>
    requires SameAs<Shape, BlockShape>
DS_NOINLINE void multiply(const Crew& crew, const Product& product) {
    typename Crew::template PerThread<Sums> sums(crew);
    for (int64_t output = 0; output < product.num_outputs; output += kStagedOutputs) {
        Piece piece = {output, 0, at_most(product.num_outputs - output, kStagedOutputs), 0};
        for (; piece.input < product.num_inputs; piece.input += kStagedInputs) {
            piece.inputs = at_most(product.num_inputs - piece.input, kStagedInputs);
            crew.each([&](Part part) { stage_weights(product, piece, part); });
            crew.each([&](Part part) {
                if (piece.input == 0) begin_sums(product, piece, part, sums[part]);
                add_products(product, piece, part, sums[part]);
            });
        }
        crew.each([&](Part part) { end_sums(product, piece, part, sums[part]); });
    }
}

// ---- The kernel

// shared: kStagedFloats, then the tile's scratch memory if it is not elsewhere; aligned to 16 bytes.
template <class Crew>
DS_METHOD void act_with_block(const Crew& crew, const ActArguments& arguments, float* shared) {
    float* const scratch =
        arguments.scratch ? arguments.scratch + crew.index() * arguments.scratch_floats : shared + kStagedFloats;
    const ActCall& call = arguments.call;
    const RowRange range = arguments.range ? *arguments.range : RowRange{0, call.num_rows};
    const int64_t end = range.first + range.count, stride = int64_t{kActRows} * crew.count();
    for (int64_t first = range.first + int64_t{kActRows} * crew.index(); first < end; first += stride) {
        const TileRows rows = {call, first, at_most(end - first, kActRows)};
        act_on_tile<BlockShape>(crew, arguments.network, rows, scratch, shared, [&](int64_t nonfinite) {
            if (nonfinite) crew.add(arguments.nonfinite_rows, static_cast<unsigned long long>(nonfinite));
        });
    }
}

}  // namespace doorstep
