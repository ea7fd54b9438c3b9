// A Vulkan device with one queue, shared by everything in the process that draws on it. What is submitted waits for what
// others submitted before, and so for the CUDA streams that these wait for.
//
// It does not survive a fork: in a forked child finding a device is refused, and what the child inherited is abandoned.
#pragma once

#include <stdint.h>

#include "render/vulkan/instance.h"
#include "runtime/futex.h"

namespace doorstep {

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
    uint64_t largest_binding;     // bytes of a storage buffer that a shader may see
    uint32_t binding_alignment;   // of its first byte
    bool shares_with_cuda;        // it has what external memory and semaphores need
    uint8_t uuid[kUuidBytes];
    char name[256];               // with Vulkan's version
    int users;                    // guarded by the registry's mutex
};

// A use of a device: the device lives while one of these holds it.
class DeviceUse {
public:
    DeviceUse() = default;
    DeviceUse(const DeviceUse&) = delete;
    DeviceUse& operator=(const DeviceUse&) = delete;
    ~DeviceUse() { release(); }

    // uuid: of the GPU it must be; null: the best there is, a discrete GPU rather than an integrated one, a GPU rather
    // than a processor. RENDERER, OUT_OF_MEMORY.
    ds_status find(const uint8_t* uuid);
    void release();

    VulkanDevice* get() const { return device_; }
    VulkanDevice* operator->() const { return device_; }

private:
    VulkanDevice* device_ = nullptr;
};

// For a device that is lost, or whose work does not end: it stays as it is for those that use it, and the next one that
// finds a device opens another.
void retire_device(const VulkanDevice* device);

// RENDERER, with the thread's error set, in a process that was forked from one that uses Vulkan.
ds_status check_not_forked();

}  // namespace doorstep
