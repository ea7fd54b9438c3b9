#include "render/vulkan/resources.h"

#include <unistd.h>

#include "render/api/core.h"

namespace doorstep {
namespace {

constexpr uint64_t kPatience = 120'000'000'000;  // nanoseconds

// The first type among `types` (a bit each) with all of these properties; UINT32_MAX without one.
uint32_t find_memory_type(const VulkanDevice& device, uint32_t types, VkMemoryPropertyFlags properties) {
    for (uint32_t i = 0; i < device.memory.memoryTypeCount; ++i) {
        const bool fits = (device.memory.memoryTypes[i].propertyFlags & properties) == properties;
        if ((types >> i & 1) && fits) return i;
    }
    return UINT32_MAX;
}

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kVisible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

// By HostAccess: the preferred properties, and those that every device has. Host reads of uncached memory are very
// slow.
constexpr VkMemoryPropertyFlags kPreferences[][2] = {
    {kLocal, kLocal},
    {kVisible | kLocal, kVisible},
    {kVisible | kCached, kVisible},
};

ds_status allocate(VulkanDevice* device, const VkMemoryRequirements& requirements, HostAccess access,
                   VkDeviceMemory* memory) {
    VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    for (const VkMemoryPropertyFlags properties : kPreferences[static_cast<int>(access)]) {
        VkMemoryAllocateInfo info;
        info.allocationSize = requirements.size;
        info.memoryTypeIndex = find_memory_type(*device, requirements.memoryTypeBits, properties);
        if (info.memoryTypeIndex == UINT32_MAX) continue;
        result = device->functions.vkAllocateMemory(device->handle, &info, nullptr, memory);
        if (result == VK_SUCCESS) return DS_STATUS_OK;
    }
    return fail_vulkan(result, "vkAllocateMemory");
}

}  // namespace

ds_status Buffer::create_handle(VulkanDevice* device, uint64_t bytes, const void* next) {
    if (bytes > device->largest_buffer) {
        return fail(DS_STATUS_RENDERER, "cameras", "use fewer worlds or smaller views, or renderer=\"raycast\"",
                    "%s has no buffers of %lu bytes, only up to %lu", device->name, bytes, device->largest_buffer);
    }
    device_ = device;
    bytes_ = bytes;
    VkBufferCreateInfo info;
    info.pNext = next;
    info.size = bytes;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    const VkResult result = device->functions.vkCreateBuffer(device->handle, &info, nullptr, &buffer_);
    return result == VK_SUCCESS ? DS_STATUS_OK : fail_vulkan(result, "vkCreateBuffer");
}

ds_status Buffer::create(VulkanDevice* device, uint64_t bytes, HostAccess access) {
    if (const ds_status status = create_handle(device, bytes, nullptr)) return status;
    VkMemoryRequirements requirements;
    device->functions.vkGetBufferMemoryRequirements(device->handle, buffer_, &requirements);
    if (const ds_status status = allocate(device, requirements, access, &memory_)) return status;
    VkResult result = device->functions.vkBindBufferMemory(device->handle, buffer_, memory_, 0);
    if (result != VK_SUCCESS) return fail_vulkan(result, "vkBindBufferMemory");
    if (access == HostAccess::kNone) return DS_STATUS_OK;
    void* host = nullptr;
    result = device->functions.vkMapMemory(device->handle, memory_, 0, ~uint64_t{0}, 0, &host);
    if (result != VK_SUCCESS) return fail_vulkan(result, "vkMapMemory");
    host_ = static_cast<char*>(host);
    return DS_STATUS_OK;
}

ds_status Buffer::import(VulkanDevice* device, uint64_t bytes, int fd, uint64_t allocated_bytes) {
    VkExternalMemoryBufferCreateInfo external;
    external.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    VkImportMemoryFdInfoKHR handed;
    handed.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    handed.fd = fd;
    VkMemoryAllocateInfo info;
    info.pNext = &handed;
    info.allocationSize = allocated_bytes;
    ds_status status = create_handle(device, bytes, &external);
    if (!status) {
        VkMemoryRequirements requirements;
        device->functions.vkGetBufferMemoryRequirements(device->handle, buffer_, &requirements);
        info.memoryTypeIndex = find_memory_type(*device, requirements.memoryTypeBits, kLocal);
        const VkResult result = device->functions.vkAllocateMemory(device->handle, &info, nullptr, &memory_);
        if (result != VK_SUCCESS) status = fail_vulkan(result, "vkAllocateMemory of CUDA's memory");
    }
    if (status) {
        close(fd);
        return status;
    }
    const VkResult result = device->functions.vkBindBufferMemory(device->handle, buffer_, memory_, 0);
    return result == VK_SUCCESS ? DS_STATUS_OK : fail_vulkan(result, "vkBindBufferMemory");
}

void Buffer::destroy() {
    if (!device_) return;
    device_->functions.vkDestroyBuffer(device_->handle, buffer_, nullptr);
    device_->functions.vkFreeMemory(device_->handle, memory_, nullptr);
    device_ = nullptr;
}

ds_status Image::create(VulkanDevice* device, uint32_t width, uint32_t height, VkFormat format, VkImageUsageFlags usage,
                        VkImageAspectFlags aspect) {
    device_ = device;
    VkImageCreateInfo info;
    info.imageType = VK_IMAGE_TYPE_2D;
    info.format = format;
    info.extent = {width, height, 1};
    info.mipLevels = info.arrayLayers = 1;
    info.samples = VK_SAMPLE_COUNT_1_BIT;
    info.usage = usage;
    VkResult result = device->functions.vkCreateImage(device->handle, &info, nullptr, &image_);
    if (result != VK_SUCCESS) return fail_vulkan(result, "vkCreateImage");
    VkMemoryRequirements requirements;
    device->functions.vkGetImageMemoryRequirements(device->handle, image_, &requirements);
    if (const ds_status status = allocate(device, requirements, HostAccess::kNone, &memory_)) return status;
    result = device->functions.vkBindImageMemory(device->handle, image_, memory_, 0);
    if (result != VK_SUCCESS) return fail_vulkan(result, "vkBindImageMemory");
    VkImageViewCreateInfo view;
    view.image = image_;
    view.viewType = VK_IMAGE_VIEW_TYPE_2D;
    view.format = format;
    view.subresourceRange = {aspect, 0, 1, 0, 1};
    result = device->functions.vkCreateImageView(device->handle, &view, nullptr, &view_);
    return result == VK_SUCCESS ? DS_STATUS_OK : fail_vulkan(result, "vkCreateImageView");
}

Image::~Image() {
    if (!device_) return;
    device_->functions.vkDestroyImageView(device_->handle, view_, nullptr);
    device_->functions.vkDestroyImage(device_->handle, image_, nullptr);
    device_->functions.vkFreeMemory(device_->handle, memory_, nullptr);
}

Timeline::~Timeline() {
    if (device_) device_->functions.vkDestroySemaphore(device_->handle, semaphore_, nullptr);
}

ds_status Timeline::create(VulkanDevice* device, bool shared) {
    device_ = device;
    VkExportSemaphoreCreateInfo exported;
    exported.handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
    VkSemaphoreTypeCreateInfo type;
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    type.pNext = shared ? &exported : nullptr;
    VkSemaphoreCreateInfo info;
    info.pNext = &type;
    const VkResult result = device->functions.vkCreateSemaphore(device->handle, &info, nullptr, &semaphore_);
    return result == VK_SUCCESS ? DS_STATUS_OK : fail_vulkan(result, "vkCreateSemaphore");
}

ds_status Timeline::export_fd(int* fd) const {
    VkSemaphoreGetFdInfoKHR info;
    info.semaphore = semaphore_;
    info.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
    const VkResult result = device_->functions.vkGetSemaphoreFdKHR(device_->handle, &info, fd);
    return result == VK_SUCCESS ? DS_STATUS_OK : fail_vulkan(result, "vkGetSemaphoreFdKHR");
}

ds_status Timeline::wait(uint64_t value) const {
    VkSemaphoreWaitInfo info;
    info.semaphoreCount = 1;
    info.pSemaphores = &semaphore_;
    info.pValues = &value;
    const VkResult result = device_->functions.vkWaitSemaphores(device_->handle, &info, kPatience);
    if (result != VK_SUCCESS) retire_device(device_);
    if (result == VK_TIMEOUT) {
        return fail(DS_STATUS_RENDERER, "renderer", "check that the material ends, or use fewer or smaller views",
                    "%s has not drawn the views within two minutes and is abandoned", device_->name);
    }
    return result == VK_SUCCESS ? DS_STATUS_OK : fail_vulkan(result, "vkWaitSemaphores");
}

}  // namespace doorstep
