// The training kernels' module.
#include "training/kernels.h"

#include "training/advantages.h"
#include "training/multi_discrete.h"

#define DS_TRAINING_KERNEL(name, Call, items, Float, suffix)                                                        \
    extern "C" __global__ void __launch_bounds__(doorstep::kTrainingThreads)                                        \
        doorstep_##name##_##suffix(const __grid_constant__ Call call) {                                             \
        const int64_t stride = static_cast<int64_t>(gridDim.x) * doorstep::kTrainingThreads;                        \
        int64_t item = static_cast<int64_t>(blockIdx.x) * doorstep::kTrainingThreads + threadIdx.x;                 \
        for (; item < call.items; item += stride) doorstep::name<Float, 1>(call, item, 1);                          \
    }
#define DS_TRAINING_KERNELS(name, Call, items)             \
    DS_TRAINING_KERNEL(name, Call, items, float, float32)  \
    DS_TRAINING_KERNEL(name, Call, items, double, float64)
DS_TRAINING_KERNEL_TABLE(DS_TRAINING_KERNELS)
