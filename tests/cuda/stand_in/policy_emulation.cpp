#include "emulation.h"

#include <string.h>

#include <memory>
#include <vector>

#include "policy/kernels.h"
#include "policy/tensor_cores.h"

namespace doorstep {
namespace {

class EmulatedCrew : public EmulatedBlock<Part, int64_t> {
public:
    static constexpr bool kCallsHost = false;
    template <class Value>
    struct PerThread {
        explicit PerThread(const EmulatedCrew&) : values(kActThreads) {}
        Value& operator[](Part part) { return values[static_cast<size_t>(part.first)]; }
        std::vector<Value> values;
    };

    EmulatedCrew(uint32_t index, uint32_t count, const std::vector<int>& threads, float* shared)
        : EmulatedBlock(index, count, threads), shared_(shared) {}
    float* shared() const { return shared_; }
    void add(unsigned long long* sum, unsigned long long more) const { *sum += more; }

    uint32_t rounded_pair(float low, float high) const { return nearest_bfloat16(high) << 16 | nearest_bfloat16(low); }
    void multiply_matrices(Part part, const auto& fragments_of, Sums& sums) const {
        const int lane = part.first % kWarpThreads;
        Fragments of_lane[kWarpThreads];
        for (int k = 0; k < kWarpThreads; k++) of_lane[k] = fragments_of(Part{part.first - lane + k, part.stride});
        for (int k = 0; k < 4; k++)
            for (int matrix = 0; matrix < 4; matrix++) {
                float& sum = sums.of[k].values[matrix];
                for (int input = 0; input < kMatrixInputs; input++)
                    sum += weight_at(of_lane, lane / 4 + k / 2 * 8, input) *
                           value_at(of_lane, matrix, input, lane % 4 * 2 + k % 2);
            }
    }

private:
    // A number: the upper half of what is half a unit larger, or a little less where that half is even.
    static uint32_t nearest_bfloat16(float value) {
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        return value != value ? 0x7FFF : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    }
    static float half_of(uint32_t pair, int half) { return as_float(static_cast<uint16_t>(pair >> 16 * half)); }

    // Elements of the matrices, by the layout of mma.m16n8k16 in the PTX ISA.
    static float weight_at(const Fragments* of_lane, int row, int input) {
        const Fragments& fragments = of_lane[row % 8 * 4 + input % 8 / 2];
        return half_of(fragments.weights[input / 8].values[row / 8], input % 2);
    }
    static float value_at(const Fragments* of_lane, int matrix, int input, int column) {
        const Fragments& fragments = of_lane[column * 4 + input % 8 / 2];
        return half_of(fragments.values[input / 8].values[matrix], input % 2);
    }

    float* shared_;
};

}  // namespace

void emulate_act(const ActArguments& arguments, uint32_t grid, uint32_t shared_bytes, ThreadOrder order) {
    const std::vector<int> threads = threads_in(order, kActThreads);
    std::vector<FourFloats> shared(shared_bytes / sizeof(FourFloats));
    for (uint32_t index = 0; index < grid; index++) {
        memset(static_cast<void*>(shared.data()), 0xA5, shared_bytes);  // initial shared memory is undefined
        const EmulatedCrew crew(index, grid, threads, shared[0].values);
        if (arguments.network.precision == DS_PRECISION_BFLOAT16) act_with_block<TensorShape>(crew, arguments);
        else act_with_block<BlockShape>(crew, arguments);
    }
}

void emulate_prepare_rows(const PlayedRows& call) {
    for (int64_t row = call.num_rows - 1; row >= 0; row--) prepare_row(call, row);
}

}  // namespace doorstep
