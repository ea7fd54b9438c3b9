// A timeline semaphore: a number that only grows. Submitted work may wait for a value and set another.
#pragma once

#include <stdint.h>

#include "render/vulkan/device.h"

namespace doorstep {

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
