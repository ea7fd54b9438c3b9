#include <stdio.h>

#include "render/raycast/raycasters.h"

namespace doorstep {

ds_status create_raycast_renderer(const CameraSetup& setup, BatchRenderer** renderer) {
    return setup.info.device_kind == DS_DEVICE_CPU ? create_cpu_raycaster(setup, renderer)
                                                   : create_cuda_raycaster(setup, renderer);
}

ds_status describe_raycast_renderer(ds_renderer_info* info) {
    snprintf(info->description, sizeof info->description, "doorstep's ray caster, on the CPU and on CUDA");
    return DS_STATUS_OK;
}

}  // namespace doorstep
