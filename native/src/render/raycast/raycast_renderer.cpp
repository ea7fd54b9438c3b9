#include <stdio.h>

#include "render/api/core.h"
#include "render/raycast/raycasters.h"

namespace doorstep {

ds_status create_raycast_renderer(const CameraSetup& setup, BatchRenderer** renderer) {
    if (setup.info.device_kind == DS_DEVICE_CPU) return create_cpu_raycaster(setup, renderer);
    return fail(DS_STATUS_RENDERER, "renderer", "choose another renderer", "this build has no ray caster for CUDA");
}

ds_status describe_raycast_renderer(ds_renderer_info* info) {
    snprintf(info->description, sizeof info->description, "doorstep's ray caster, on the CPU and on CUDA");
    return DS_STATUS_OK;
}

}  // namespace doorstep
