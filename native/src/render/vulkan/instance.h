// Vulkan's loader, opened when Vulkan is first used, and the instance, which ends with the last device.
#pragma once

#include "doorstep.h"
#include "render/vulkan/vulkan_functions.h"

namespace doorstep {

struct VulkanInstance {
    LoaderFunctions loader;
    InstanceFunctions functions;
    VkInstance handle;  // null: not created
};

// Opens the loader and creates the instance. RENDERER, with the thread's error set, on failure.
ds_status create_instance(VulkanInstance* instance);
void destroy_instance(VulkanInstance* instance);

// Records that a Vulkan function returned `result`: OUT_OF_MEMORY or RENDERER.
ds_status fail_vulkan(VkResult result, const char* function);

// Hint for machines where Vulkan cannot be used.
constexpr const char* kInstallHint =
    "install a Vulkan 1.3 driver and the loader libvulkan.so.1 (Debian, Ubuntu: mesa-vulkan-drivers, which also draws "
    "without a GPU; NVIDIA's driver brings its own and needs libvulkan1), or use renderer=\"raycast\"";

}  // namespace doorstep
