// The module of the views' kernels.
#include "render/raycast/block_views.h"

namespace doorstep {

struct CudaViewBlock {
    DS_METHOD uint32_t index() const { return blockIdx.x; }
    DS_METHOD uint32_t count() const { return gridDim.x; }
    template <class Stage>
    DS_METHOD void each(const Stage& stage) const {
        stage(ViewShare{static_cast<int>(threadIdx.x), kViewThreads});
        __syncthreads();
    }
};

alignas(32) extern __shared__ char shared_memory[];

}  // namespace doorstep

extern "C" __global__ void __launch_bounds__(doorstep::kViewThreads, doorstep::kViewBlocks)
    doorstep_draw_views(const __grid_constant__ doorstep::ViewsCall call) {
    doorstep::CudaViewBlock block;
    doorstep::draw_views<doorstep::ReferenceScene>(block, call, doorstep::shared_memory);
}

extern "C" __global__ void __launch_bounds__(doorstep::kViewThreads, doorstep::kLevelViewBlocks)
    doorstep_draw_level_views(const __grid_constant__ doorstep::ViewsCall call) {
    doorstep::CudaViewBlock block;
    doorstep::draw_views<doorstep::LevelScene>(block, call, doorstep::shared_memory);
}
