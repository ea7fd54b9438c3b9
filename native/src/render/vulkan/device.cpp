#include "render/vulkan/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

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

}  // namespace

ds_status fail_vulkan(VkResult result, const char* function) {
    if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "", "use smaller or fewer views, or renderer=\"raycast\"",
                    "Vulkan's device has too little memory (%s)", function);
    }
    return fail(DS_STATUS_RENDERER, "renderer", "update the Vulkan driver, or use renderer=\"raycast\"",
                "%s failed: %s (%d)", function, name_of(result), static_cast<int>(result));
}

namespace {

// ---- The loader and the instance, which ends with the last device ----

struct VulkanInstance {
    LoaderFunctions loader;
    InstanceFunctions functions;
    VkInstance handle;  // null: not created
};

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

void destroy_instance(VulkanInstance* instance) {
    if (instance->handle && instance->functions.vkDestroyInstance) {
        instance->functions.vkDestroyInstance(instance->handle, nullptr);
    }
    instance->handle = nullptr;
}

// On failure the handle stays null.
ds_status create_instance(VulkanInstance* instance) {
    if (const ds_status status = open_loader(&instance->loader)) return status;
    VkApplicationInfo application;
    application.pApplicationName = application.pEngineName = "doorstep";
    application.apiVersion = kVulkan13;
    VkInstanceCreateInfo info;
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

// ---- The open devices ----

constexpr uint32_t kMaxDevices = 16;  // further ones are ignored
constexpr uint32_t kMaxQueueFamilies = 16, kMaxExtensions = 512;
constexpr const char* kSharingExtensions[] = {"VK_KHR_external_memory_fd", "VK_KHR_external_semaphore_fd"};

// The open devices of this process. The process that opened them is known without the mutex, which a forked child may
// have inherited in the held state.
constinit Mutex registry_mutex;
constinit VulkanInstance instance{};
constinit VulkanDevice* devices[kMaxDevices]{};  // those to reuse
constinit int open_devices = 0;                   // including retired ones
constinit std::atomic<pid_t> opened_by{0};

// ---- Properties of a physical device ----

struct Features {
    VkPhysicalDeviceVulkan13Features vulkan13;
    VkPhysicalDeviceVulkan12Features vulkan12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, &vulkan13};
    VkPhysicalDeviceVulkan11Features vulkan11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &vulkan12};
    VkPhysicalDeviceFeatures2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &vulkan11};

    Features() = default;
    Features(const Features&) = delete;  // it contains pointers to itself
};

// X(feature): features required of a device in addition to Vulkan 1.3.
#define DS_VULKAN_FEATURES(X)                                                                            \
    X(all.features.robustBufferAccess) X(all.features.shaderClipDistance) X(all.features.shaderInt16)    \
        X(vulkan11.storageBuffer16BitAccess) X(vulkan12.timelineSemaphore) X(vulkan13.dynamicRendering)  \
            X(vulkan13.synchronization2)

struct Candidate {
    VkPhysicalDevice physical;
    VkPhysicalDeviceProperties properties;
    uint8_t uuid[kUuidBytes];
    uint32_t queue_family;
    uint64_t largest_buffer;
    const char* lacks;  // null: usable
};

uint32_t find_queue_family(VkPhysicalDevice physical) {
    VkQueueFamilyProperties families[kMaxQueueFamilies];
    uint32_t count = kMaxQueueFamilies;
    instance.functions.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    const VkQueueFlags wanted = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
    for (uint32_t i = 0; i < count; ++i) {
        if ((families[i].queueFlags & wanted) == wanted) return i;
    }
    return UINT32_MAX;
}

const char* missing_feature(VkPhysicalDevice physical) {
    Features features;
    instance.functions.vkGetPhysicalDeviceFeatures2(physical, &features.all);
#define DS_VULKAN_LOOK(feature) \
    if (!features.feature) return #feature;
    DS_VULKAN_FEATURES(DS_VULKAN_LOOK)
#undef DS_VULKAN_LOOK
    return nullptr;
}

Candidate look_at(VkPhysicalDevice physical) {
    VkPhysicalDeviceMaintenance4Properties buffers;
    VkPhysicalDeviceMaintenance3Properties allocations{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES,
                                                       &buffers};
    VkPhysicalDeviceIDProperties identity{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES, &allocations};
    VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &identity};
    instance.functions.vkGetPhysicalDeviceProperties2(physical, &properties);
    Candidate candidate{physical, properties.properties, {}, find_queue_family(physical), 0, nullptr};
    memcpy(candidate.uuid, identity.deviceUUID, kUuidBytes);
    candidate.largest_buffer = buffers.maxBufferSize < allocations.maxMemoryAllocationSize
                                   ? buffers.maxBufferSize
                                   : allocations.maxMemoryAllocationSize;
    const bool is_13 = properties.properties.apiVersion >= kVulkan13;
    candidate.lacks = !is_13                                ? "Vulkan 1.3"
                      : candidate.queue_family == UINT32_MAX ? "a queue that draws and computes"
                                                             : missing_feature(physical);
    return candidate;
}

int rank_of(const Candidate& candidate) {
    switch (candidate.properties.deviceType) {
        case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 3;
        case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 2;
        case VK_PHYSICAL_DEVICE_TYPE_CPU: return 0;
        default: return 1;
    }
}

// The usable device of this UUID, or of the highest rank.
ds_status choose_device(const uint8_t* uuid, Candidate* chosen) {
    VkPhysicalDevice physical[kMaxDevices];
    uint32_t count = kMaxDevices;
    const VkResult result = instance.functions.vkEnumeratePhysicalDevices(instance.handle, &count, physical);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) return fail_vulkan(result, "vkEnumeratePhysicalDevices");
    if (count == 0) {
        return fail(DS_STATUS_RENDERER, "renderer", kInstallHint, "Vulkan reports no device");
    }
    bool found = false, seen = false;
    Candidate unusable{};
    for (uint32_t i = 0; i < count; ++i) {
        const Candidate candidate = look_at(physical[i]);
        if (uuid && memcmp(uuid, candidate.uuid, kUuidBytes) != 0) continue;
        seen = true;
        if (candidate.lacks) {
            unusable = candidate;
        } else if (!found || rank_of(candidate) > rank_of(*chosen)) {
            *chosen = candidate;
            found = true;
        }
    }
    if (found) return DS_STATUS_OK;
    if (!seen) {
        return fail(DS_STATUS_RENDERER, "renderer", kInstallHint,
                    "Vulkan does not report the GPU that the simulator runs on (no device has its UUID)");
    }
    return fail(DS_STATUS_RENDERER, "renderer", kInstallHint, "%s cannot draw: it lacks %s",
                unusable.properties.deviceName, unusable.lacks);
}

bool has_sharing_extensions(VkPhysicalDevice physical) {
    uint32_t count = kMaxExtensions;
    auto* extensions = static_cast<VkExtensionProperties*>(calloc(kMaxExtensions, sizeof(VkExtensionProperties)));
    if (!extensions) return false;
    instance.functions.vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, extensions);
    uint32_t found = 0;
    for (const char* wanted : kSharingExtensions) {
        for (uint32_t i = 0; i < count; ++i) {
            if (strcmp(extensions[i].extensionName, wanted) == 0) {
                ++found;
                break;
            }
        }
    }
    free(extensions);
    return found == 2;
}

// ---- The logical device ----

ds_status create_logical_device(VulkanDevice* device) {
    const float priority = 1.f;
    VkDeviceQueueCreateInfo queue;
    queue.queueFamilyIndex = device->queue_family;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    Features features;
#define DS_VULKAN_ASK(feature) features.feature = 1;
    DS_VULKAN_FEATURES(DS_VULKAN_ASK)
#undef DS_VULKAN_ASK
    VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features.all};
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue;
    info.enabledExtensionCount = device->shares_with_cuda ? 2 : 0;
    info.ppEnabledExtensionNames = kSharingExtensions;
    const VkResult result = instance.functions.vkCreateDevice(device->physical, &info, nullptr, &device->handle);
    if (result != VK_SUCCESS) return fail_vulkan(result, "vkCreateDevice");

    const char* missing = nullptr;
#define DS_VULKAN_FIND(result, name, parameters)                                      \
    device->functions.name = reinterpret_cast<decltype(device->functions.name)>(      \
        instance.functions.vkGetDeviceProcAddr(device->handle, #name));
#define DS_VULKAN_NEED(result, name, parameters) \
    DS_VULKAN_FIND(result, name, parameters)     \
    if (!device->functions.name) missing = #name;
    DS_VULKAN_DEVICE_TABLE(DS_VULKAN_NEED)
    DS_VULKAN_SHARING_TABLE(DS_VULKAN_FIND)
#undef DS_VULKAN_NEED
#undef DS_VULKAN_FIND
    if (missing) {
        if (device->functions.vkDestroyDevice) device->functions.vkDestroyDevice(device->handle, nullptr);
        return fail(DS_STATUS_RENDERER, "renderer", kInstallHint, "the Vulkan driver lacks %s", missing);
    }
    device->functions.vkGetDeviceQueue(device->handle, device->queue_family, 0, &device->queue);
    return DS_STATUS_OK;
}

ds_status open_device(const Candidate& chosen, VulkanDevice** opened) {
    auto* device = static_cast<VulkanDevice*>(calloc(1, sizeof(VulkanDevice)));
    if (!device) return fail(DS_STATUS_OUT_OF_MEMORY, "", "", "no memory for a Vulkan device");
    const VkPhysicalDeviceProperties& properties = chosen.properties;
    device->instance = instance.functions;
    device->physical = chosen.physical;
    device->queue_family = chosen.queue_family;
    device->largest_buffer = chosen.largest_buffer;
    device->largest_binding = properties.limits.maxStorageBufferRange;
    device->binding_alignment = static_cast<uint32_t>(properties.limits.minStorageBufferOffsetAlignment);
    device->shares_with_cuda = has_sharing_extensions(chosen.physical);
    memcpy(device->uuid, chosen.uuid, kUuidBytes);
    snprintf(device->name, sizeof device->name, "%.200s (Vulkan %u.%u.%u)", properties.deviceName,
             properties.apiVersion >> 22 & 127, properties.apiVersion >> 12 & 1023, properties.apiVersion & 4095);
    instance.functions.vkGetPhysicalDeviceMemoryProperties(chosen.physical, &device->memory);
    if (const ds_status status = create_logical_device(device)) {
        free(device);
        return status;
    }
    *opened = device;
    return DS_STATUS_OK;
}

// ---- The registry; its mutex is held ----

ds_status find_or_open(const uint8_t* uuid, VulkanDevice** found) {
    if (!instance.handle) {
        if (const ds_status status = create_instance(&instance)) return status;
    }
    Candidate chosen{};
    if (const ds_status status = choose_device(uuid, &chosen)) return status;
    VulkanDevice** free_slot = nullptr;
    for (VulkanDevice*& slot : devices) {
        if (slot && slot->physical == chosen.physical) {
            *found = slot;
            return DS_STATUS_OK;
        }
        if (!slot) free_slot = &slot;
    }
    const ds_status status = open_device(chosen, free_slot);  // a slot is free: there are no more devices than slots
    if (!status) ++open_devices;
    *found = *free_slot;
    return status;
}

void forget(const VulkanDevice* device) {
    for (VulkanDevice*& slot : devices) {
        if (slot == device) slot = nullptr;
    }
}

void close_if_unused(VulkanDevice* device) {
    if (device && device->users == 0) {
        forget(device);
        device->functions.vkDestroyDevice(device->handle, nullptr);
        free(device);
        --open_devices;
    }
    if (open_devices > 0) return;
    destroy_instance(&instance);
    opened_by.store(0);
}

bool is_forked() {
    const pid_t opener = opened_by.load();
    return opener != 0 && opener != getpid();
}

}  // namespace

ds_status check_not_forked() {
    if (!is_forked()) return DS_STATUS_OK;
    return fail(DS_STATUS_RENDERER, "renderer",
                "create the simulator in the child, in a process started with \"spawn\", or use "
                "renderer=\"raycast\"",
                "Vulkan cannot be used in a process that was forked from one that uses it");
}

void retire_device(const VulkanDevice* device) {
    MutexGuard guard(registry_mutex);
    forget(device);
}

ds_status DeviceUse::find(const uint8_t* uuid) {
    if (const ds_status status = check_not_forked()) return status;
    MutexGuard guard(registry_mutex);
    opened_by.store(getpid());
    VulkanDevice* found = nullptr;
    const ds_status status = find_or_open(uuid, &found);
    if (status) {
        close_if_unused(nullptr);
        return status;
    }
    ++found->users;
    device_ = found;
    return DS_STATUS_OK;
}

void DeviceUse::release() {
    if (!device_ || is_forked()) return;
    MutexGuard guard(registry_mutex);
    --device_->users;
    close_if_unused(device_);
    device_ = nullptr;
}

}  // namespace doorstep
