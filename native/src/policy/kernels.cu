// The policies' module.
#include "policy/block_loop.h"

namespace doorstep {

alignas(16) extern __shared__ float shared_memory[];

struct CudaCrew {
    static constexpr bool kCallsHost = false;
    template <class Value>
    struct PerThread {
        DS_METHOD explicit PerThread(const CudaCrew&) {}
        DS_METHOD Value& operator[](Part) { return value; }
        Value value;
    };

    DS_METHOD int64_t index() const { return blockIdx.x; }
    DS_METHOD int64_t count() const { return gridDim.x; }
    DS_METHOD float* shared() const { return shared_memory; }
    template <class Stage>
    DS_METHOD void each(const Stage& stage) const {
        stage(Part{static_cast<int>(threadIdx.x), kActThreads});
        __syncthreads();
    }
    DS_METHOD void add(unsigned long long* sum, unsigned long long more) const { atomicAdd(sum, more); }
};

}  // namespace doorstep

extern "C" __global__ void __launch_bounds__(doorstep::kActThreads)
    doorstep_act(const __grid_constant__ doorstep::ActArguments arguments) {
    doorstep::act_with_block(doorstep::CudaCrew{}, arguments);
}

extern "C" __global__ void __launch_bounds__(doorstep::kPrepareThreads)
    doorstep_prepare_rows(const __grid_constant__ doorstep::PlayedRows call) {
    const int64_t row = static_cast<int64_t>(blockIdx.x) * doorstep::kPrepareThreads + threadIdx.x;
    if (row < call.num_rows) doorstep::prepare_row(call, row);
}

extern "C" __global__ void __launch_bounds__(1) doorstep_count_step(uint32_t* const counter) { *counter += 1; }
