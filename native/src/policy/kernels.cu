// The policies' module.
#include "policy/cuda_crew.h"

extern "C" __global__ void __launch_bounds__(doorstep::kActThreads)
    doorstep_act(const __grid_constant__ doorstep::ActArguments arguments) {
    doorstep::act_with_block<doorstep::BlockShape>(doorstep::CudaCrew{}, arguments);
}

extern "C" __global__ void __launch_bounds__(doorstep::kPrepareThreads)
    doorstep_prepare_rows(const __grid_constant__ doorstep::PlayedRows call) {
    const int64_t row = static_cast<int64_t>(blockIdx.x) * doorstep::kPrepareThreads + threadIdx.x;
    if (row < call.num_rows) doorstep::prepare_row(call, row);
}

extern "C" __global__ void __launch_bounds__(1) doorstep_count_step(uint32_t* const counter) { *counter += 1; }
