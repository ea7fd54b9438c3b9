// The kernel's work, as a template over a crew: the threads of a CUDA block, or those that the tests emulate. Beside
// what policy/linear.h asks of a crew, it has the block's index(), the grid's count() of blocks, shared(), the block's
// shared memory, and add(), an atomic addition.
//
// The formulas are those of the CPU; only products are divided otherwise: a thread keeps the sums of a few outputs and
// rows, for which the block brings weights into shared memory, piece by piece. A sum is the same chain of multiply-adds
// over the inputs, so it has the same bits. Tensor cores add in another order: policy/tensor_cores.h.
#pragma once

#include "policy/act_loop.h"
#include "policy/kernels.h"

namespace doorstep {

struct MultiplyAdds;

struct BlockShape {
    using Products = MultiplyAdds;  // how products are computed
    using Float = NarrowFloat;
    static constexpr int kVectors = 1;
    static constexpr int kLanes = 1;
    static constexpr int kRows = kActRows;
    static constexpr int kRun = 8;
};

struct alignas(16) FourFloats {
    float values[4];
};

DS_INLINE FourFloats load_four(const float* from) {
    DS_ASSERT(reinterpret_cast<uint64_t>(from) % alignof(FourFloats) == 0);
    return *reinterpret_cast<const FourFloats*>(from);
}

// ---- Products

// Of a thread: each of an output for four rows, which a SumsPlace tells.
struct Sums {
    FourFloats of[4];
};

// A piece of the weights: some outputs, from `output` on, of some inputs, from `input` on.
struct Piece {
    int64_t output, input;
    int outputs, inputs;
};

// SumsPlace tells of sums.of[k] the output, by its place in the piece, and the first row.
template <class SumsPlace>
DS_INLINE void begin_sums(const Product& product, const Piece& piece, Part part, Sums& sums) {
    const SumsPlace place(part);
    for (int k = 0; k < 4; k++) {
        if (place.output(k) >= piece.outputs) continue;
        const int64_t output = piece.output + place.output(k);
        const float bias = product.biases.or_else(output, 0.f);
        for (int r = 0; r < 4; r++) sums.of[k].values[r] = bias;
        if (product.begin != Begin::kBiasesAndOutputs) continue;
        const FourFloats before = load_four(product.outputs + output * product.step * kActRows + place.row(k));
        for (int r = 0; r < 4; r++) sums.of[k].values[r] = bias + before.values[r];
    }
}

template <class SumsPlace>
DS_INLINE void end_sums(const Product& product, const Piece& piece, Part part, const Sums& sums) {
    const SumsPlace place(part);
    for (int k = 0; k < 4; k++) {
        if (place.output(k) >= piece.outputs) continue;
        const int64_t output = piece.output + place.output(k);
        float* const rows = product.outputs + output * product.step * kActRows + place.row(k);
        *reinterpret_cast<FourFloats*>(rows) = sums.of[k];
    }
}

// The weights of a piece that a thread copies to shared memory: every kRun-th of an output's, of every
// kActThreads / kRun-th output. A warp reads runs of whole sectors, of four outputs, and writes to all banks.
struct StagedPlace {
    static constexpr int kRuns = kStagedInputs / BlockShape::kRun;  // of an output
    int output, input;  // of the piece
    DS_METHOD StagedPlace(Part part, int k)
        : output(part.first / BlockShape::kRun + k / kRuns * (kActThreads / BlockShape::kRun)),
          input(part.first % BlockShape::kRun + k % kRuns * BlockShape::kRun) {}
};

// They wait in registers while the piece before is multiplied with.
struct FetchedWeights {
    static constexpr int kCount = kStagedInputs * kStagedOutputs / kActThreads;
    float of[kCount];
};

// All loads come first: none waits for another, or for a store that might be to the same address.
template <class Weight>
DS_INLINE void fetch_weights(const Weight* weights, int64_t num_inputs, const Piece& piece, Part part,
                             FetchedWeights& fetched) {
    const Weight* const first = weights + piece.output * num_inputs + piece.input;
    DS_UNROLLED for (int k = 0; k < FetchedWeights::kCount; k++) {
        const StagedPlace place(part, k);
        const bool exists = place.output < piece.outputs && place.input < piece.inputs;
        fetched.of[k] = exists ? as_float(DS_LOAD_CONSTANT(first + place.output * num_inputs + place.input)) : 0.f;
    }
}
DS_INLINE void fetch_weights(const Product& product, const Piece& piece, Part part, FetchedWeights& fetched) {
    DS_ASSERT(part.stride == kActThreads);
    const WeightArray& weights = product.weights;
    if (weights.widened)
        fetch_weights(static_cast<const uint16_t*>(weights.data), product.num_inputs, piece, part, fetched);
    else fetch_weights(static_cast<const float*>(weights.data), product.num_inputs, piece, part, fetched);
}

DS_INLINE int at_most(int64_t left, int most) { return left < most ? static_cast<int>(left) : most; }

DS_INLINE Piece piece_at(const Product& product, int64_t output, int64_t input) {
    return {output, input, at_most(product.num_outputs - output, kStagedOutputs),
            at_most(product.num_inputs - input, kStagedInputs)};
}

// Without outputs after the last one.
DS_INLINE Piece piece_after(const Product& product, const Piece& piece) {
    const int64_t input = piece.input + kStagedInputs;
    return input < product.num_inputs ? piece_at(product, piece.output, input)
                                      : piece_at(product, piece.output + kStagedOutputs, 0);
}

// The next piece is fetched while one is multiplied with.
template <class Shape, class Crew>
    requires requires { typename Shape::Products; }
DS_NOINLINE void multiply(const Crew& crew, const Product& given) {
    using Products = typename Shape::Products;
    using SumsPlace = typename Products::SumsPlace;
    Product product = given;  // the copy is in registers, where stores do not change it
    product.widened = crew.shared();  // the same, but known to be in shared memory
    DS_ASSERT(product.num_inputs > 0);
    typename Crew::template PerThread<Sums> sums(crew);
    typename Crew::template PerThread<FetchedWeights> fetched(crew);
    Piece piece = piece_at(product, 0, 0);
    crew.each([&](Part part) { fetch_weights(product, piece, part, fetched[part]); });
    while (piece.outputs > 0) {
        const Piece next = piece_after(product, piece);
        crew.each([&](Part part) { Products::stage(crew, product, piece, part, fetched[part]); });
        crew.each([&](Part part) {
            fetch_weights(product, next, part, fetched[part]);
            if (piece.input == 0) begin_sums<SumsPlace>(product, piece, part, sums[part]);
            Products::add(crew, product, piece, part, sums[part]);
            if (next.output != piece.output) end_sums<SumsPlace>(product, piece, part, sums[part]);
        });
        piece = next;
    }
}

// As on the CPU.
struct MultiplyAdds {
    // Four outputs for four rows. Threads of a warp share rows and weights.
    struct SumsPlace {
        int first_row, first_output;
        DS_METHOD explicit SumsPlace(Part part)
            : first_row(part.first % (kActRows / 4) * 4), first_output(part.first / (kActRows / 4) * 4) {}
        DS_METHOD int output(int k) const { return first_output + k; }
        DS_METHOD int row(int) const { return first_row; }
    };
    static_assert(kActThreads / (kActRows / 4) * 4 == kStagedOutputs);

    template <class Crew>
    static DS_METHOD void stage(const Crew&, const Product& product, const Piece&, Part part,
                                const FetchedWeights& fetched) {
        DS_UNROLLED for (int k = 0; k < FetchedWeights::kCount; k++) {
            const StagedPlace place(part, k);
            product.widened[place.input * kStagedPitch + place.output] = fetched.of[k];
        }
    }

    template <class Crew>
    static DS_METHOD void add(const Crew&, const Product& product, const Piece& piece, Part part, Sums& sums) {
        const SumsPlace place(part);
        if (place.first_output >= piece.outputs) return;
        const float* values = product.inputs + piece.input * kActRows + place.first_row;
        const float* weights = product.widened + place.first_output;
        DS_UNROLLED for (int i = 0; i < piece.inputs; i++) {
            const FourFloats value = load_four(values + i * kActRows), weight = load_four(weights + i * kStagedPitch);
            for (int o = 0; o < 4; o++)
                for (int r = 0; r < 4; r++)
                    sums.of[o].values[r] = multiply_add(weight.values[o], value.values[r], sums.of[o].values[r]);
        }
    }
};

// ---- The kernel

// In shared memory: kStagedFloats, then the tile's scratch memory if it is not elsewhere; aligned to 16 bytes.
template <class Shape, class Crew>
DS_METHOD void act_with_block(const Crew& crew, const ActArguments& arguments) {
    float* const shared = crew.shared();
    float* const scratch =
        arguments.scratch ? arguments.scratch + crew.index() * arguments.scratch_floats : shared + kStagedFloats;
    const ActCall& call = arguments.call;
    const RowRange range = arguments.range ? *arguments.range : RowRange{0, call.num_rows};
    DS_ASSERT(range.first >= 0 && range.count >= 0 && range.first + range.count <= call.num_rows);
    const int64_t end = range.first + range.count, stride = int64_t{kActRows} * crew.count();
    for (int64_t first = range.first + int64_t{kActRows} * crew.index(); first < end; first += stride) {
        const TileRows rows = {call, first, at_most(end - first, kActRows)};
        act_on_tile<Shape>(crew, arguments.network, rows, scratch, shared, [&](int64_t nonfinite) {
            if (nonfinite) crew.add(arguments.nonfinite_rows, static_cast<unsigned long long>(nonfinite));
        });
    }
}

}  // namespace doorstep
