// The Vulkan functions that doorstep calls. X(result, name, parameters): parameters as Khronos declares them.
#pragma once

#include "render/vulkan/vulkan_types.h"

namespace doorstep {

// Functions without an instance.
#define DS_VULKAN_GLOBAL_TABLE(X)                                                                                     \
    X(VkResult, vkCreateInstance, (const VkInstanceCreateInfo* pCreateInfo,                                           \
      const VkAllocationCallbacks* pAllocator, VkInstance* pInstance))

// Functions of an instance.
#define DS_VULKAN_INSTANCE_TABLE(X)                                                                                   \
    X(void, vkDestroyInstance, (VkInstance instance, const VkAllocationCallbacks* pAllocator))                        \
    X(VkResult, vkEnumeratePhysicalDevices, (VkInstance instance, uint32_t* pPhysicalDeviceCount,                     \
      VkPhysicalDevice* pPhysicalDevices))                                                                            \
    X(void, vkGetPhysicalDeviceProperties2, (VkPhysicalDevice physicalDevice,                                         \
      VkPhysicalDeviceProperties2* pProperties))                                                                      \
    X(void, vkGetPhysicalDeviceFeatures2, (VkPhysicalDevice physicalDevice, VkPhysicalDeviceFeatures2* pFeatures))    \
    X(void, vkGetPhysicalDeviceQueueFamilyProperties, (VkPhysicalDevice physicalDevice,                               \
      uint32_t* pQueueFamilyPropertyCount, VkQueueFamilyProperties* pQueueFamilyProperties))                          \
    X(void, vkGetPhysicalDeviceMemoryProperties, (VkPhysicalDevice physicalDevice,                                    \
      VkPhysicalDeviceMemoryProperties* pMemoryProperties))                                                           \
    X(VkResult, vkEnumerateDeviceExtensionProperties, (VkPhysicalDevice physicalDevice, const char* pLayerName,       \
      uint32_t* pPropertyCount, VkExtensionProperties* pProperties))                                                  \
    X(VkResult, vkCreateDevice, (VkPhysicalDevice physicalDevice, const VkDeviceCreateInfo* pCreateInfo,              \
      const VkAllocationCallbacks* pAllocator, VkDevice* pDevice))                                                    \
    X(PFN_vkVoidFunction, vkGetDeviceProcAddr, (VkDevice device, const char* pName))

// Functions of a device.
#define DS_VULKAN_DEVICE_TABLE(X)                                                                                     \
    X(VkResult, vkAllocateCommandBuffers, (VkDevice device, const VkCommandBufferAllocateInfo* pAllocateInfo,         \
      VkCommandBuffer* pCommandBuffers))                                                                              \
    X(VkResult, vkAllocateDescriptorSets, (VkDevice device, const VkDescriptorSetAllocateInfo* pAllocateInfo,         \
      VkDescriptorSet* pDescriptorSets))                                                                              \
    X(VkResult, vkAllocateMemory, (VkDevice device, const VkMemoryAllocateInfo* pAllocateInfo,                        \
      const VkAllocationCallbacks* pAllocator, VkDeviceMemory* pMemory))                                              \
    X(VkResult, vkBeginCommandBuffer, (VkCommandBuffer commandBuffer, const VkCommandBufferBeginInfo* pBeginInfo))    \
    X(VkResult, vkBindBufferMemory, (VkDevice device, VkBuffer buffer, VkDeviceMemory memory,                         \
      VkDeviceSize memoryOffset))                                                                                     \
    X(VkResult, vkBindImageMemory, (VkDevice device, VkImage image, VkDeviceMemory memory,                            \
      VkDeviceSize memoryOffset))                                                                                     \
    X(void, vkCmdBeginRendering, (VkCommandBuffer commandBuffer, const VkRenderingInfo* pRenderingInfo))              \
    X(void, vkCmdBindDescriptorSets, (VkCommandBuffer commandBuffer, VkPipelineBindPoint pipelineBindPoint,           \
      VkPipelineLayout layout, uint32_t firstSet, uint32_t descriptorSetCount,                                        \
      const VkDescriptorSet* pDescriptorSets, uint32_t dynamicOffsetCount, const uint32_t* pDynamicOffsets))          \
    X(void, vkCmdBindPipeline, (VkCommandBuffer commandBuffer, VkPipelineBindPoint pipelineBindPoint,                 \
      VkPipeline pipeline))                                                                                           \
    X(void, vkCmdDispatch, (VkCommandBuffer commandBuffer, uint32_t groupCountX, uint32_t groupCountY,                \
      uint32_t groupCountZ))                                                                                          \
    X(void, vkCmdDraw, (VkCommandBuffer commandBuffer, uint32_t vertexCount, uint32_t instanceCount,                  \
      uint32_t firstVertex, uint32_t firstInstance))                                                                  \
    X(void, vkCmdEndRendering, (VkCommandBuffer commandBuffer))                                                       \
    X(void, vkCmdPipelineBarrier2, (VkCommandBuffer commandBuffer, const VkDependencyInfo* pDependencyInfo))          \
    X(void, vkCmdPushConstants, (VkCommandBuffer commandBuffer, VkPipelineLayout layout,                              \
      VkShaderStageFlags stageFlags, uint32_t offset, uint32_t size, const void* pValues))                            \
    X(VkResult, vkCreateBuffer, (VkDevice device, const VkBufferCreateInfo* pCreateInfo,                              \
      const VkAllocationCallbacks* pAllocator, VkBuffer* pBuffer))                                                    \
    X(VkResult, vkCreateCommandPool, (VkDevice device, const VkCommandPoolCreateInfo* pCreateInfo,                    \
      const VkAllocationCallbacks* pAllocator, VkCommandPool* pCommandPool))                                          \
    X(VkResult, vkCreateComputePipelines, (VkDevice device, VkPipelineCache pipelineCache,                            \
      uint32_t createInfoCount, const VkComputePipelineCreateInfo* pCreateInfos,                                      \
      const VkAllocationCallbacks* pAllocator, VkPipeline* pPipelines))                                               \
    X(VkResult, vkCreateDescriptorPool, (VkDevice device, const VkDescriptorPoolCreateInfo* pCreateInfo,              \
      const VkAllocationCallbacks* pAllocator, VkDescriptorPool* pDescriptorPool))                                    \
    X(VkResult, vkCreateDescriptorSetLayout, (VkDevice device,                                                        \
      const VkDescriptorSetLayoutCreateInfo* pCreateInfo, const VkAllocationCallbacks* pAllocator,                    \
      VkDescriptorSetLayout* pSetLayout))                                                                             \
    X(VkResult, vkCreateGraphicsPipelines, (VkDevice device, VkPipelineCache pipelineCache,                           \
      uint32_t createInfoCount, const VkGraphicsPipelineCreateInfo* pCreateInfos,                                     \
      const VkAllocationCallbacks* pAllocator, VkPipeline* pPipelines))                                               \
    X(VkResult, vkCreateImage, (VkDevice device, const VkImageCreateInfo* pCreateInfo,                                \
      const VkAllocationCallbacks* pAllocator, VkImage* pImage))                                                      \
    X(VkResult, vkCreateImageView, (VkDevice device, const VkImageViewCreateInfo* pCreateInfo,                        \
      const VkAllocationCallbacks* pAllocator, VkImageView* pView))                                                   \
    X(VkResult, vkCreatePipelineLayout, (VkDevice device, const VkPipelineLayoutCreateInfo* pCreateInfo,              \
      const VkAllocationCallbacks* pAllocator, VkPipelineLayout* pPipelineLayout))                                    \
    X(VkResult, vkCreateSemaphore, (VkDevice device, const VkSemaphoreCreateInfo* pCreateInfo,                        \
      const VkAllocationCallbacks* pAllocator, VkSemaphore* pSemaphore))                                              \
    X(VkResult, vkCreateShaderModule, (VkDevice device, const VkShaderModuleCreateInfo* pCreateInfo,                  \
      const VkAllocationCallbacks* pAllocator, VkShaderModule* pShaderModule))                                        \
    X(void, vkDestroyBuffer, (VkDevice device, VkBuffer buffer, const VkAllocationCallbacks* pAllocator))             \
    X(void, vkDestroyCommandPool, (VkDevice device, VkCommandPool commandPool,                                        \
      const VkAllocationCallbacks* pAllocator))                                                                       \
    X(void, vkDestroyDescriptorPool, (VkDevice device, VkDescriptorPool descriptorPool,                               \
      const VkAllocationCallbacks* pAllocator))                                                                       \
    X(void, vkDestroyDescriptorSetLayout, (VkDevice device, VkDescriptorSetLayout descriptorSetLayout,                \
      const VkAllocationCallbacks* pAllocator))                                                                       \
    X(void, vkDestroyDevice, (VkDevice device, const VkAllocationCallbacks* pAllocator))                              \
    X(void, vkDestroyImage, (VkDevice device, VkImage image, const VkAllocationCallbacks* pAllocator))                \
    X(void, vkDestroyImageView, (VkDevice device, VkImageView imageView, const VkAllocationCallbacks* pAllocator))    \
    X(void, vkDestroyPipeline, (VkDevice device, VkPipeline pipeline, const VkAllocationCallbacks* pAllocator))       \
    X(void, vkDestroyPipelineLayout, (VkDevice device, VkPipelineLayout pipelineLayout,                               \
      const VkAllocationCallbacks* pAllocator))                                                                       \
    X(void, vkDestroySemaphore, (VkDevice device, VkSemaphore semaphore, const VkAllocationCallbacks* pAllocator))    \
    X(void, vkDestroyShaderModule, (VkDevice device, VkShaderModule shaderModule,                                     \
      const VkAllocationCallbacks* pAllocator))                                                                       \
    X(VkResult, vkEndCommandBuffer, (VkCommandBuffer commandBuffer))                                                  \
    X(void, vkFreeMemory, (VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* pAllocator))          \
    X(void, vkGetBufferMemoryRequirements, (VkDevice device, VkBuffer buffer,                                         \
      VkMemoryRequirements* pMemoryRequirements))                                                                     \
    X(void, vkGetDeviceQueue, (VkDevice device, uint32_t queueFamilyIndex, uint32_t queueIndex, VkQueue* pQueue))     \
    X(void, vkGetImageMemoryRequirements, (VkDevice device, VkImage image,                                            \
      VkMemoryRequirements* pMemoryRequirements))                                                                     \
    X(VkResult, vkMapMemory, (VkDevice device, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize size,         \
      VkMemoryMapFlags flags, void** ppData))                                                                         \
    X(VkResult, vkQueueSubmit2, (VkQueue queue, uint32_t submitCount, const VkSubmitInfo2* pSubmits, VkFence fence))  \
    X(void, vkUpdateDescriptorSets, (VkDevice device, uint32_t descriptorWriteCount,                                  \
      const VkWriteDescriptorSet* pDescriptorWrites, uint32_t descriptorCopyCount,                                    \
      const VkCopyDescriptorSet* pDescriptorCopies))                                                                  \
    X(VkResult, vkWaitSemaphores, (VkDevice device, const VkSemaphoreWaitInfo* pWaitInfo, uint64_t timeout))

// Functions of a device that shares memory with CUDA; otherwise null.
#define DS_VULKAN_SHARING_TABLE(X)                                                                                    \
    X(VkResult, vkGetSemaphoreFdKHR, (VkDevice device, const VkSemaphoreGetFdInfoKHR* pGetFdInfo, int* pFd))

#define DS_VULKAN_POINTER(result, name, parameters) result(*name) parameters;
struct LoaderFunctions {
    void (*(*vkGetInstanceProcAddr)(VkInstance instance, const char* name))();
    DS_VULKAN_GLOBAL_TABLE(DS_VULKAN_POINTER)
};
struct InstanceFunctions {
    DS_VULKAN_INSTANCE_TABLE(DS_VULKAN_POINTER)
};
struct DeviceFunctions {
    DS_VULKAN_DEVICE_TABLE(DS_VULKAN_POINTER)
    DS_VULKAN_SHARING_TABLE(DS_VULKAN_POINTER)
};
#undef DS_VULKAN_POINTER

}  // namespace doorstep
