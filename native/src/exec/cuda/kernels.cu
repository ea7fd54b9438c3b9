// The kernels of a module, for one kind of worlds (DS_KIND, its number).
#include "exec/cuda/block.h"

namespace doorstep {

struct CudaBlock {
    DS_METHOD int index() const { return static_cast<int>(blockIdx.x); }
    DS_METHOD int count() const { return static_cast<int>(gridDim.x); }
    template <class Stage>
    DS_METHOD void each(const Stage& stage) const {
        stage(ThreadShare{static_cast<int>(threadIdx.x), kBlockThreads});
        __syncthreads();
    }
};

using DeviceWorld = CompiledWorld<DS_KIND>::W;

alignas(16) extern __shared__ char shared_memory[];

}  // namespace doorstep

#define DS_KERNEL(name, sentence)                                                                            \
    extern "C" __global__ void __launch_bounds__(doorstep::kBlockThreads)                                    \
        doorstep_##name(const __grid_constant__ doorstep::KernelArguments arguments) {                       \
        doorstep::CudaBlock block;                                                                           \
        auto& memory = *reinterpret_cast<doorstep::BlockMemory<doorstep::DeviceWorld>*>(doorstep::shared_memory); \
        doorstep::Kernels<doorstep::DeviceWorld>::name(block, arguments, memory);                            \
    }
DS_KERNEL_TABLE(DS_KERNEL)

// The number of the kind of worlds that the module is compiled for; the loader reads it.
extern "C" __constant__ int doorstep_kind_of_worlds = DS_KIND;
