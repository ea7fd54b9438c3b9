// The module of policies of DS_PRECISION_BFLOAT16, for devices of compute capability 8.0 or newer.
#include "policy/cuda_crew.h"
#include "policy/tensor_cores.h"

namespace doorstep {

struct TensorCrew : CudaCrew {
    DS_METHOD uint32_t rounded_pair(float low, float high) const {
        uint32_t pair;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
        return pair;
    }

    template <class FragmentsOf>
    DS_METHOD void multiply_matrices(Part part, const FragmentsOf& fragments_of, Sums& sums) const {
        const Fragments own = fragments_of(part);
        DS_UNROLLED for (int j = 0; j < 4; j++)
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                "{%0, %1, %2, %3};"
                : "+f"(sums.of[0].values[j]), "+f"(sums.of[1].values[j]), "+f"(sums.of[2].values[j]),
                  "+f"(sums.of[3].values[j])
                : "r"(own.weights[0].values[0]), "r"(own.weights[0].values[1]), "r"(own.weights[1].values[0]),
                  "r"(own.weights[1].values[1]), "r"(own.values[0].values[j]), "r"(own.values[1].values[j]));
    }
};

// That a multiprocessor holds, at least: the compiler keeps to their share of its registers.
constexpr int kBlocks = 3;

}  // namespace doorstep

extern "C" __global__ void __launch_bounds__(doorstep::kActThreads, doorstep::kBlocks)
    doorstep_act_bf16(const __grid_constant__ doorstep::ActArguments arguments) {
    doorstep::act_with_block<doorstep::TensorShape>(doorstep::TensorCrew{}, arguments);
}
