#include "render/vulkan/instance.h"

#include <dlfcn.h>

#include "render/api/core.h"

namespace doorstep {
namespace {

constexpr uint32_t kVulkan13 = 1u << 22 | 3u << 12;

const char* name_of(VkResult result) {
    switch (result) {
        case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
        case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
        case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
        case VK_ERROR_INVALID_EXTERNAL_HANDLE: return "VK_ERROR_INVALID_EXTERNAL_HANDLE";
        default: return "VkResult";
    }
}

// The loader is never closed: not all libraries that it loads survive being unloaded.
ds_status open_loader(LoaderFunctions* functions) {
    void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char* reason = dlerror();
        return fail(DS_STATUS_RENDERER, "renderer", kInstallHint, "Vulkan's loader cannot be opened: %s",
                    reason ? reason : "unknown reason");
    }
    functions->vkGetInstanceProcAddr = reinterpret_cast<decltype(functions->vkGetInstanceProcAddr)>(
        dlsym(library, "vkGetInstanceProcAddr"));
    bool complete = functions->vkGetInstanceProcAddr != nullptr;
#define DS_VULKAN_FIND(result, name, parameters)                                                          \
    if (complete) {                                                                                       \
        functions->name = reinterpret_cast<decltype(functions->name)>(                                    \
            functions->vkGetInstanceProcAddr(nullptr, #name));                                            \
        complete = functions->name != nullptr;                                                            \
    }
    DS_VULKAN_GLOBAL_TABLE(DS_VULKAN_FIND)
#undef DS_VULKAN_FIND
    if (complete) return DS_STATUS_OK;
    return fail(DS_STATUS_RENDERER, "renderer", kInstallHint, "libvulkan.so.1 is not a loader of Vulkan 1.1 or newer");
}

ds_status find_functions(VulkanInstance* instance) {
    const char* missing = nullptr;
#define DS_VULKAN_FIND(result, name, parameters)                                                  \
    instance->functions.name = reinterpret_cast<decltype(instance->functions.name)>(              \
        instance->loader.vkGetInstanceProcAddr(instance->handle, #name));                         \
    if (!instance->functions.name) missing = #name;
    DS_VULKAN_INSTANCE_TABLE(DS_VULKAN_FIND)
#undef DS_VULKAN_FIND
    if (!missing) return DS_STATUS_OK;
    return fail(DS_STATUS_RENDERER, "renderer", kInstallHint, "Vulkan's loader lacks %s", missing);
}

}  // namespace

ds_status fail_vulkan(VkResult result, const char* function) {
    if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "", "use smaller or fewer views, or renderer=\"raycast\"",
                    "Vulkan's device has too little memory (%s)", function);
    }
    return fail(DS_STATUS_RENDERER, "renderer", "update the Vulkan driver, or use renderer=\"raycast\"",
                "%s failed: %s (%d)", function, name_of(result), static_cast<int>(result));
}

ds_status create_instance(VulkanInstance* instance) {
    if (const ds_status status = open_loader(&instance->loader)) return status;
    VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.pApplicationName = application.pEngineName = "doorstep";
    application.apiVersion = kVulkan13;
    VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    info.pApplicationInfo = &application;
    const VkResult result = instance->loader.vkCreateInstance(&info, nullptr, &instance->handle);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
        instance->handle = nullptr;
        return fail(DS_STATUS_RENDERER, "renderer", kInstallHint, "Vulkan's loader finds no driver");
    }
    if (result != VK_SUCCESS) {
        instance->handle = nullptr;
        return fail_vulkan(result, "vkCreateInstance");
    }
    const ds_status status = find_functions(instance);
    if (status) destroy_instance(instance);
    return status;
}

void destroy_instance(VulkanInstance* instance) {
    if (instance->handle && instance->functions.vkDestroyInstance) {
        instance->functions.vkDestroyInstance(instance->handle, nullptr);
    }
    instance->handle = nullptr;
}

}  // namespace doorstep
