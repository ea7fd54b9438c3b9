// doorstep's ray caster on the CPU and on CUDA. Both draw the same bits.
#pragma once

#include "render/cameras/renderers.h"

namespace doorstep {

ds_status create_cpu_raycaster(const CameraSetup& setup, BatchRenderer** renderer);
ds_status create_cuda_raycaster(const CameraSetup& setup, BatchRenderer** renderer);

}  // namespace doorstep
