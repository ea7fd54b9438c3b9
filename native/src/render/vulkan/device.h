// Vulkan's loader, opened when Vulkan is first used, and its devices. A device has one queue and is shared by all
// cameras of the process that draw on it. Submitted work waits for work submitted before by any of them, and so for the
// CUDA streams that it waits for.
//
// It does not survive a fork: in a forked child no device can be opened, and inherited devices are leaked.
#pragma once

#include <stdint.h>

#include "doorstep/rooms.h"
#include "render/vulkan/vulkan.h"
#include "runtime/futex.h"

namespace doorstep {

// Records that a Vulkan function returned `result`: OUT_OF_MEMORY or RENDERER.
ds_status fail_vulkan(VkResult result, const char* function);

// Hint for machines where Vulkan cannot be used.
constexpr const char* kInstallHint =
    "install a Vulkan 1.3 driver and the loader libvulkan.so.1 (Debian, Ubuntu: mesa-vulkan-drivers, which also draws "
    "without a GPU; NVIDIA's driver brings its own and needs libvulkan1), or use renderer=\"raycast\"";

constexpr int kUuidBytes = 16;

struct VulkanDevice {
    InstanceFunctions instance;
    DeviceFunctions functions;
    VkPhysicalDevice physical;
    VkDevice handle;
    VkQueue queue;
    uint32_t queue_family;
    Mutex queue_mutex;  // around vkQueueSubmit2
    VkPhysicalDeviceMemoryProperties memory;
    uint64_t largest_buffer;      // bytes
    uint64_t largest_binding;     // bytes of a storage buffer binding
    uint32_t binding_alignment;   // of its offset
    bool shares_with_cuda;        // it has the extensions of external memory and semaphores
    uint8_t uuid[kUuidBytes];
    char name[256];               // with Vulkan's version
    int users;                    // guarded by the registry's mutex
};

// A use of a device: the device lives while such an object exists.
class DeviceUse {
public:
    DeviceUse() = default;
    DeviceUse(const DeviceUse&) = delete;
    DeviceUse& operator=(const DeviceUse&) = delete;
    ~DeviceUse() { release(); }

    // uuid: of the required GPU; null: the best device, discrete GPUs before integrated ones, GPUs before processors.
    // RENDERER, OUT_OF_MEMORY.
    ds_status find(const uint8_t* uuid);
    void release();

    VulkanDevice* get() const { return device_; }
    VulkanDevice* operator->() const { return device_; }

private:
    VulkanDevice* device_ = nullptr;
};

// For a device that is lost, or whose work does not end: its users keep it, and the next request opens another device.
void retire_device(const VulkanDevice* device);

// RENDERER, with the thread's error set, in a process that was forked from one that uses Vulkan.
ds_status check_not_forked();

}  // namespace doorstep
