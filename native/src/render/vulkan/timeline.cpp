#include "render/vulkan/timeline.h"

#include "render/api/core.h"

namespace doorstep {
namespace {

constexpr uint64_t kPatience = 120'000'000'000;  // nanoseconds

}  // namespace

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
