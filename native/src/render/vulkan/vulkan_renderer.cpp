// The rasteriser. host_renderer.cpp and shared_renderer.cpp read worlds and write views where Vulkan's device can
// access them.
#include <stdio.h>

#include "render/api/core.h"
#include "render/cameras/renderers.h"
#include "render/vulkan/device.h"
#include "render/vulkan/vulkan_parts.h"

namespace doorstep {

ds_status create_vulkan_renderer(const CameraSetup& setup, BatchRenderer** renderer) {
    return setup.info.device_kind == DS_DEVICE_CPU ? create_host_renderer(setup, renderer)
                                                   : create_shared_renderer(setup, renderer);
}

ds_status describe_vulkan_renderer(ds_renderer_info* info) {
    DeviceUse device;
    if (const ds_status status = device.find(nullptr)) return status;
    snprintf(info->description, sizeof info->description, "%s", device->name);
    return DS_STATUS_OK;
}

}  // namespace doorstep
