// Buffers and images of a Vulkan device, each with memory of its own, and timelines.
#pragma once

#include <stdint.h>

#include "render/vulkan/device.h"

namespace doorstep {

// Who accesses a buffer besides shaders.
enum class HostAccess {
    kNone,
    kWrites,
    kReads,
};

class Buffer {
public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { destroy(); }

    // OUT_OF_MEMORY, RENDERER.
    ds_status create(VulkanDevice* device, uint64_t bytes, HostAccess access);
    // Imports memory exported by CUDA; allocated_bytes: its size there. Takes fd over, also on failure.
    ds_status import(VulkanDevice* device, uint64_t bytes, int fd, uint64_t allocated_bytes);
    void destroy();

    VkBuffer handle() const { return buffer_; }
    uint64_t bytes() const { return bytes_; }
    char* host() const { return host_; }  // null without HostAccess

private:
    ds_status create_handle(VulkanDevice* device, uint64_t bytes, const void* next);

    VulkanDevice* device_ = nullptr;
    VkBuffer buffer_ = nullptr;
    VkDeviceMemory memory_ = nullptr;
    uint64_t bytes_ = 0;
    char* host_ = nullptr;
};

// An image to draw to.
class Image {
public:
    Image() = default;
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;
    ~Image();

    ds_status create(VulkanDevice* device, uint32_t width, uint32_t height, VkFormat format, VkImageUsageFlags usage,
                     VkImageAspectFlags aspect);

    VkImage handle() const { return image_; }
    VkImageView view() const { return view_; }

private:
    VulkanDevice* device_ = nullptr;
    VkImage image_ = nullptr;
    VkImageView view_ = nullptr;
    VkDeviceMemory memory_ = nullptr;
};

// A timeline semaphore: a number that only grows. Submitted work may wait for a value and set another.
class Timeline {
public:
    Timeline() = default;
    Timeline(const Timeline&) = delete;
    Timeline& operator=(const Timeline&) = delete;
    ~Timeline();

    // shared: CUDA can import it.
    ds_status create(VulkanDevice* device, bool shared);
    // A new file descriptor, for CUDA.
    ds_status export_fd(int* fd) const;
    // RENDERER if the device is lost, or does not reach the value within two minutes. It is then retired.
    ds_status wait(uint64_t value) const;

    VkSemaphore handle() const { return semaphore_; }

private:
    VulkanDevice* device_ = nullptr;
    VkSemaphore semaphore_ = nullptr;
};

}  // namespace doorstep
