// The types, numbers and functions of Vulkan that doorstep uses. They are declared here so that no headers are needed;
// names and values are Khronos's (Vulkan 1.3). tests/render/test_vulkan_header.py compares every one with Khronos's
// header.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace doorstep {

using PFN_vkVoidFunction = void (*)();
constexpr uint32_t VK_QUEUE_FAMILY_IGNORED = ~0u, VK_QUEUE_FAMILY_EXTERNAL = ~1u;

using VkFlags = uint32_t;
using VkBufferCreateFlags = VkFlags;
using VkDeviceSize = uint64_t;
using VkBufferUsageFlags = VkFlags;
using VkFlags64 = uint64_t;
using VkPipelineStageFlags2 = VkFlags64;
using VkAccessFlags2 = VkFlags64;
using VkCommandBufferUsageFlags = VkFlags;
using VkCommandPoolCreateFlags = VkFlags;
using VkPipelineCreateFlags = VkFlags;
using VkPipelineShaderStageCreateFlags = VkFlags;
using VkCullModeFlags = VkFlags;
using VkDependencyFlags = VkFlags;
using VkImageAspectFlags = VkFlags;
using VkDescriptorPoolCreateFlags = VkFlags;
using VkShaderStageFlags = VkFlags;
using VkDescriptorSetLayoutCreateFlags = VkFlags;
using VkDeviceCreateFlags = VkFlags;
using VkDeviceQueueCreateFlags = VkFlags;
using VkBool32 = uint32_t;
using VkExternalSemaphoreHandleTypeFlags = VkFlags;
using VkExternalMemoryHandleTypeFlags = VkFlags;
using VkPipelineVertexInputStateCreateFlags = VkFlags;
using VkPipelineInputAssemblyStateCreateFlags = VkFlags;
using VkPipelineViewportStateCreateFlags = VkFlags;
using VkPipelineRasterizationStateCreateFlags = VkFlags;
using VkPipelineMultisampleStateCreateFlags = VkFlags;
using VkSampleMask = uint32_t;
using VkPipelineDepthStencilStateCreateFlags = VkFlags;
using VkPipelineColorBlendStateCreateFlags = VkFlags;
using VkColorComponentFlags = VkFlags;
using VkImageCreateFlags = VkFlags;
using VkImageUsageFlags = VkFlags;
using VkImageViewCreateFlags = VkFlags;
using VkInstanceCreateFlags = VkFlags;
using VkMemoryMapFlags = VkFlags;
using VkMemoryPropertyFlags = VkFlags;
using VkMemoryHeapFlags = VkFlags;
using VkSampleCountFlags = VkFlags;
using VkPipelineLayoutCreateFlags = VkFlags;
using VkQueueFlags = VkFlags;
using VkRenderingFlags = VkFlags;
using VkSemaphoreCreateFlags = VkFlags;
using VkSemaphoreWaitFlags = VkFlags;
using VkShaderModuleCreateFlags = VkFlags;
using VkSubmitFlags = VkFlags;
using VkAccessFlagBits2 = VkFlags64;
using VkPipelineStageFlagBits2 = VkFlags64;

using VkBuffer = struct VkBuffer_T*;
using VkCommandBuffer = struct VkCommandBuffer_T*;
using VkCommandPool = struct VkCommandPool_T*;
using VkShaderModule = struct VkShaderModule_T*;
using VkPipelineLayout = struct VkPipelineLayout_T*;
using VkPipeline = struct VkPipeline_T*;
using VkImage = struct VkImage_T*;
using VkSampler = struct VkSampler_T*;
using VkImageView = struct VkImageView_T*;
using VkDescriptorPool = struct VkDescriptorPool_T*;
using VkDescriptorSet = struct VkDescriptorSet_T*;
using VkDescriptorSetLayout = struct VkDescriptorSetLayout_T*;
using VkDevice = struct VkDevice_T*;
using VkDeviceMemory = struct VkDeviceMemory_T*;
using VkFence = struct VkFence_T*;
using VkRenderPass = struct VkRenderPass_T*;
using VkInstance = struct VkInstance_T*;
using VkPhysicalDevice = struct VkPhysicalDevice_T*;
using VkPipelineCache = struct VkPipelineCache_T*;
using VkQueue = struct VkQueue_T*;
using VkSemaphore = struct VkSemaphore_T*;
using VkBufferView = struct VkBufferView_T*;

struct VkAllocationCallbacks;  // always null
struct VkCommandBufferInheritanceInfo;  // always null
struct VkSpecializationInfo;  // always null
struct VkCopyDescriptorSet;  // always null
struct VkVertexInputBindingDescription;  // always null
struct VkVertexInputAttributeDescription;  // always null
struct VkPipelineTessellationStateCreateInfo;  // always null
struct VkPipelineDynamicStateCreateInfo;  // always null

enum VkStructureType : int32_t {
    VK_STRUCTURE_TYPE_APPLICATION_INFO = 0,
    VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO = 1,
    VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO = 2,
    VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO = 3,
    VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO = 5,
    VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO = 9,
    VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO = 12,
    VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO = 14,
    VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO = 15,
    VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO = 16,
    VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO = 18,
    VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO = 19,
    VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO = 20,
    VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO = 22,
    VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO = 23,
    VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO = 24,
    VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO = 25,
    VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO = 26,
    VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO = 28,
    VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO = 29,
    VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO = 30,
    VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO = 32,
    VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO = 33,
    VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO = 34,
    VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET = 35,
    VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO = 39,
    VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO = 40,
    VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO = 42,
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES = 49,
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES = 51,
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES = 53,
    VK_STRUCTURE_TYPE_RENDERING_INFO = 1000044000,
    VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO = 1000044001,
    VK_STRUCTURE_TYPE_PIPELINE_RENDERING_CREATE_INFO = 1000044002,
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2 = 1000059000,
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2 = 1000059001,
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES = 1000071004,
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES = 1000168000,
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES = 1000413001,
    VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO = 1000072000,
    VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR = 1000074000,
    VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO = 1000077000,
    VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR = 1000079001,
    VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO = 1000207002,
    VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO = 1000207004,
    VK_STRUCTURE_TYPE_MEMORY_BARRIER_2 = 1000314000,
    VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER_2 = 1000314001,
    VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2 = 1000314002,
    VK_STRUCTURE_TYPE_DEPENDENCY_INFO = 1000314003,
    VK_STRUCTURE_TYPE_SUBMIT_INFO_2 = 1000314004,
    VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO = 1000314005,
    VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO = 1000314006,
};
enum VkSharingMode : int32_t {};
enum VkCommandBufferLevel : int32_t {
    VK_COMMAND_BUFFER_LEVEL_PRIMARY = 0,
};
enum VkShaderStageFlagBits : int32_t {
    VK_SHADER_STAGE_VERTEX_BIT = 0x00000001,
    VK_SHADER_STAGE_FRAGMENT_BIT = 0x00000010,
    VK_SHADER_STAGE_COMPUTE_BIT = 0x00000020,
};
enum VkImageLayout : int32_t {
    VK_IMAGE_LAYOUT_UNDEFINED = 0,
    VK_IMAGE_LAYOUT_GENERAL = 1,
};
enum VkDescriptorType : int32_t {
    VK_DESCRIPTOR_TYPE_STORAGE_IMAGE = 3,
    VK_DESCRIPTOR_TYPE_STORAGE_BUFFER = 7,
};
enum VkFormat : int32_t {
    VK_FORMAT_R32_UINT = 98,
    VK_FORMAT_D32_SFLOAT = 126,
};
enum VkPrimitiveTopology : int32_t {
    VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST = 3,
};
enum VkPolygonMode : int32_t {};
enum VkFrontFace : int32_t {
    VK_FRONT_FACE_COUNTER_CLOCKWISE = 0,
};
enum VkSampleCountFlagBits : int32_t {
    VK_SAMPLE_COUNT_1_BIT = 0x00000001,
};
enum VkCompareOp : int32_t {
    VK_COMPARE_OP_GREATER = 4,
};
enum VkStencilOp : int32_t {};
enum VkLogicOp : int32_t {};
enum VkBlendFactor : int32_t {};
enum VkBlendOp : int32_t {};
enum VkImageType : int32_t {
    VK_IMAGE_TYPE_2D = 1,
};
enum VkImageTiling : int32_t {};
enum VkImageViewType : int32_t {
    VK_IMAGE_VIEW_TYPE_2D = 1,
};
enum VkComponentSwizzle : int32_t {};
enum VkExternalMemoryHandleTypeFlagBits : int32_t {
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT = 0x00000001,
};
enum VkPhysicalDeviceType : int32_t {
    VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU = 1,
    VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU = 2,
    VK_PHYSICAL_DEVICE_TYPE_CPU = 4,
};
enum VkPipelineBindPoint : int32_t {
    VK_PIPELINE_BIND_POINT_GRAPHICS = 0,
    VK_PIPELINE_BIND_POINT_COMPUTE = 1,
};
enum VkResolveModeFlagBits : int32_t {};
enum VkAttachmentLoadOp : int32_t {
    VK_ATTACHMENT_LOAD_OP_CLEAR = 1,
};
enum VkAttachmentStoreOp : int32_t {
    VK_ATTACHMENT_STORE_OP_STORE = 0,
    VK_ATTACHMENT_STORE_OP_DONT_CARE = 1,
};
enum VkResult : int32_t {
    VK_ERROR_INVALID_EXTERNAL_HANDLE = -1000072003,
    VK_ERROR_INCOMPATIBLE_DRIVER = -9,
    VK_ERROR_DEVICE_LOST = -4,
    VK_ERROR_INITIALIZATION_FAILED = -3,
    VK_ERROR_OUT_OF_DEVICE_MEMORY = -2,
    VK_ERROR_OUT_OF_HOST_MEMORY = -1,
    VK_SUCCESS = 0,
    VK_TIMEOUT = 2,
    VK_INCOMPLETE = 5,
};
enum VkExternalSemaphoreHandleTypeFlagBits : int32_t {
    VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT = 0x00000001,
};
enum VkSemaphoreType : int32_t {
    VK_SEMAPHORE_TYPE_TIMELINE = 1,
};
enum VkBufferUsageFlagBits : int32_t {
    VK_BUFFER_USAGE_STORAGE_BUFFER_BIT = 0x00000020,
};
enum VkColorComponentFlagBits : int32_t {
    VK_COLOR_COMPONENT_R_BIT = 0x00000001,
};
enum VkCullModeFlagBits : int32_t {
    VK_CULL_MODE_NONE = 0,
    VK_CULL_MODE_BACK_BIT = 0x00000002,
};
enum VkImageAspectFlagBits : int32_t {
    VK_IMAGE_ASPECT_COLOR_BIT = 0x00000001,
    VK_IMAGE_ASPECT_DEPTH_BIT = 0x00000002,
};
enum VkImageUsageFlagBits : int32_t {
    VK_IMAGE_USAGE_STORAGE_BIT = 0x00000008,
    VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT = 0x00000010,
    VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT = 0x00000020,
};
enum VkMemoryPropertyFlagBits : int32_t {
    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT = 0x00000001,
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT = 0x00000002,
    VK_MEMORY_PROPERTY_HOST_COHERENT_BIT = 0x00000004,
    VK_MEMORY_PROPERTY_HOST_CACHED_BIT = 0x00000008,
};
enum VkQueueFlagBits : int32_t {
    VK_QUEUE_GRAPHICS_BIT = 0x00000001,
    VK_QUEUE_COMPUTE_BIT = 0x00000002,
};

constexpr VkAccessFlagBits2 VK_ACCESS_2_HOST_READ_BIT = 0x00002000ULL;
constexpr VkAccessFlagBits2 VK_ACCESS_2_MEMORY_READ_BIT = 0x00008000ULL;
constexpr VkAccessFlagBits2 VK_ACCESS_2_MEMORY_WRITE_BIT = 0x00010000ULL;
constexpr VkPipelineStageFlagBits2 VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT = 0x00010000ULL;
constexpr VkPipelineStageFlagBits2 VK_PIPELINE_STAGE_2_HOST_BIT = 0x00004000ULL;

struct VkApplicationInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    const void* pNext{};
    const char* pApplicationName{};
    uint32_t applicationVersion{};
    const char* pEngineName{};
    uint32_t engineVersion{}, apiVersion{};
};
struct VkBufferCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    const void* pNext{};
    VkBufferCreateFlags flags{};
    VkDeviceSize size{};
    VkBufferUsageFlags usage{};
    VkSharingMode sharingMode{};
    uint32_t queueFamilyIndexCount{};
    const uint32_t* pQueueFamilyIndices{};
};
struct VkBufferMemoryBarrier2 {
    VkStructureType sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER_2;
    const void* pNext{};
    VkPipelineStageFlags2 srcStageMask{};
    VkAccessFlags2 srcAccessMask{};
    VkPipelineStageFlags2 dstStageMask{};
    VkAccessFlags2 dstAccessMask{};
    uint32_t srcQueueFamilyIndex{}, dstQueueFamilyIndex{};
    VkBuffer buffer{};
    VkDeviceSize offset{}, size{};
};
struct VkCommandBufferAllocateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    const void* pNext{};
    VkCommandPool commandPool{};
    VkCommandBufferLevel level{};
    uint32_t commandBufferCount{};
};
struct VkCommandBufferBeginInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    const void* pNext{};
    VkCommandBufferUsageFlags flags{};
    const VkCommandBufferInheritanceInfo* pInheritanceInfo{};
};
struct VkCommandBufferSubmitInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO;
    const void* pNext{};
    VkCommandBuffer commandBuffer{};
    uint32_t deviceMask{};
};
struct VkCommandPoolCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    const void* pNext{};
    VkCommandPoolCreateFlags flags{};
    uint32_t queueFamilyIndex{};
};
struct VkPipelineShaderStageCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    const void* pNext{};
    VkPipelineShaderStageCreateFlags flags{};
    VkShaderStageFlagBits stage{};
    VkShaderModule module{};
    const char* pName{};
    const VkSpecializationInfo* pSpecializationInfo{};
};
struct VkComputePipelineCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    const void* pNext{};
    VkPipelineCreateFlags flags{};
    VkPipelineShaderStageCreateInfo stage{};
    VkPipelineLayout layout{};
    VkPipeline basePipelineHandle{};
    int32_t basePipelineIndex{};
};
struct VkMemoryBarrier2 {
    VkStructureType sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2;
    const void* pNext{};
    VkPipelineStageFlags2 srcStageMask{};
    VkAccessFlags2 srcAccessMask{};
    VkPipelineStageFlags2 dstStageMask{};
    VkAccessFlags2 dstAccessMask{};
};
struct VkImageSubresourceRange {
    VkImageAspectFlags aspectMask{};
    uint32_t baseMipLevel{}, levelCount{}, baseArrayLayer{}, layerCount{};
};
struct VkImageMemoryBarrier2 {
    VkStructureType sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2;
    const void* pNext{};
    VkPipelineStageFlags2 srcStageMask{};
    VkAccessFlags2 srcAccessMask{};
    VkPipelineStageFlags2 dstStageMask{};
    VkAccessFlags2 dstAccessMask{};
    VkImageLayout oldLayout{}, newLayout{};
    uint32_t srcQueueFamilyIndex{}, dstQueueFamilyIndex{};
    VkImage image{};
    VkImageSubresourceRange subresourceRange{};
};
struct VkDependencyInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO;
    const void* pNext{};
    VkDependencyFlags dependencyFlags{};
    uint32_t memoryBarrierCount{};
    const VkMemoryBarrier2* pMemoryBarriers{};
    uint32_t bufferMemoryBarrierCount{};
    const VkBufferMemoryBarrier2* pBufferMemoryBarriers{};
    uint32_t imageMemoryBarrierCount{};
    const VkImageMemoryBarrier2* pImageMemoryBarriers{};
};
struct VkDescriptorBufferInfo {
    VkBuffer buffer{};
    VkDeviceSize offset{}, range{};
};
struct VkDescriptorImageInfo {
    VkSampler sampler{};
    VkImageView imageView{};
    VkImageLayout imageLayout{};
};
struct VkDescriptorPoolSize {
    VkDescriptorType type{};
    uint32_t descriptorCount{};
};
struct VkDescriptorPoolCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    const void* pNext{};
    VkDescriptorPoolCreateFlags flags{};
    uint32_t maxSets{}, poolSizeCount{};
    const VkDescriptorPoolSize* pPoolSizes{};
};
struct VkDescriptorSetAllocateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    const void* pNext{};
    VkDescriptorPool descriptorPool{};
    uint32_t descriptorSetCount{};
    const VkDescriptorSetLayout* pSetLayouts{};
};
struct VkDescriptorSetLayoutBinding {
    uint32_t binding{};
    VkDescriptorType descriptorType{};
    uint32_t descriptorCount{};
    VkShaderStageFlags stageFlags{};
    const VkSampler* pImmutableSamplers{};
};
struct VkDescriptorSetLayoutCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    const void* pNext{};
    VkDescriptorSetLayoutCreateFlags flags{};
    uint32_t bindingCount{};
    const VkDescriptorSetLayoutBinding* pBindings{};
};
struct VkDeviceQueueCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    const void* pNext{};
    VkDeviceQueueCreateFlags flags{};
    uint32_t queueFamilyIndex{}, queueCount{};
    const float* pQueuePriorities{};
};
struct VkPhysicalDeviceFeatures {
    VkBool32 robustBufferAccess{}, fullDrawIndexUint32{}, imageCubeArray{}, independentBlend{}, geometryShader{};
    VkBool32 tessellationShader{}, sampleRateShading{}, dualSrcBlend{}, logicOp{}, multiDrawIndirect{};
    VkBool32 drawIndirectFirstInstance{}, depthClamp{}, depthBiasClamp{}, fillModeNonSolid{}, depthBounds{};
    VkBool32 wideLines{}, largePoints{}, alphaToOne{}, multiViewport{}, samplerAnisotropy{}, textureCompressionETC2{};
    VkBool32 textureCompressionASTC_LDR{}, textureCompressionBC{}, occlusionQueryPrecise{}, pipelineStatisticsQuery{};
    VkBool32 vertexPipelineStoresAndAtomics{}, fragmentStoresAndAtomics{}, shaderTessellationAndGeometryPointSize{};
    VkBool32 shaderImageGatherExtended{}, shaderStorageImageExtendedFormats{}, shaderStorageImageMultisample{};
    VkBool32 shaderStorageImageReadWithoutFormat{}, shaderStorageImageWriteWithoutFormat{};
    VkBool32 shaderUniformBufferArrayDynamicIndexing{}, shaderSampledImageArrayDynamicIndexing{};
    VkBool32 shaderStorageBufferArrayDynamicIndexing{}, shaderStorageImageArrayDynamicIndexing{};
    VkBool32 shaderClipDistance{}, shaderCullDistance{}, shaderFloat64{}, shaderInt64{}, shaderInt16{};
    VkBool32 shaderResourceResidency{}, shaderResourceMinLod{}, sparseBinding{}, sparseResidencyBuffer{};
    VkBool32 sparseResidencyImage2D{}, sparseResidencyImage3D{}, sparseResidency2Samples{}, sparseResidency4Samples{};
    VkBool32 sparseResidency8Samples{}, sparseResidency16Samples{}, sparseResidencyAliased{};
    VkBool32 variableMultisampleRate{}, inheritedQueries{};
};
struct VkDeviceCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    const void* pNext{};
    VkDeviceCreateFlags flags{};
    uint32_t queueCreateInfoCount{};
    const VkDeviceQueueCreateInfo* pQueueCreateInfos{};
    uint32_t enabledLayerCount{};
    const char* const* ppEnabledLayerNames{};
    uint32_t enabledExtensionCount{};
    const char* const* ppEnabledExtensionNames{};
    const VkPhysicalDeviceFeatures* pEnabledFeatures{};
};
struct VkExportSemaphoreCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO;
    const void* pNext{};
    VkExternalSemaphoreHandleTypeFlags handleTypes{};
};
struct VkExtensionProperties {
    char extensionName[256U]{};
    uint32_t specVersion{};
};
struct VkExtent2D {
    uint32_t width{}, height{};
};
struct VkExternalMemoryBufferCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
    const void* pNext{};
    VkExternalMemoryHandleTypeFlags handleTypes{};
};
struct VkPipelineVertexInputStateCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO;
    const void* pNext{};
    VkPipelineVertexInputStateCreateFlags flags{};
    uint32_t vertexBindingDescriptionCount{};
    const VkVertexInputBindingDescription* pVertexBindingDescriptions{};
    uint32_t vertexAttributeDescriptionCount{};
    const VkVertexInputAttributeDescription* pVertexAttributeDescriptions{};
};
struct VkPipelineInputAssemblyStateCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO;
    const void* pNext{};
    VkPipelineInputAssemblyStateCreateFlags flags{};
    VkPrimitiveTopology topology{};
    VkBool32 primitiveRestartEnable{};
};
struct VkViewport {
    float x{}, y{}, width{}, height{}, minDepth{}, maxDepth{};
};
struct VkOffset2D {
    int32_t x{}, y{};
};
struct VkRect2D {
    VkOffset2D offset{};
    VkExtent2D extent{};
};
struct VkPipelineViewportStateCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO;
    const void* pNext{};
    VkPipelineViewportStateCreateFlags flags{};
    uint32_t viewportCount{};
    const VkViewport* pViewports{};
    uint32_t scissorCount{};
    const VkRect2D* pScissors{};
};
struct VkPipelineRasterizationStateCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO;
    const void* pNext{};
    VkPipelineRasterizationStateCreateFlags flags{};
    VkBool32 depthClampEnable{}, rasterizerDiscardEnable{};
    VkPolygonMode polygonMode{};
    VkCullModeFlags cullMode{};
    VkFrontFace frontFace{};
    VkBool32 depthBiasEnable{};
    float depthBiasConstantFactor{}, depthBiasClamp{}, depthBiasSlopeFactor{}, lineWidth{};
};
struct VkPipelineMultisampleStateCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO;
    const void* pNext{};
    VkPipelineMultisampleStateCreateFlags flags{};
    VkSampleCountFlagBits rasterizationSamples{};
    VkBool32 sampleShadingEnable{};
    float minSampleShading{};
    const VkSampleMask* pSampleMask{};
    VkBool32 alphaToCoverageEnable{}, alphaToOneEnable{};
};
struct VkStencilOpState {
    VkStencilOp failOp{}, passOp{}, depthFailOp{};
    VkCompareOp compareOp{};
    uint32_t compareMask{}, writeMask{}, reference{};
};
struct VkPipelineDepthStencilStateCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO;
    const void* pNext{};
    VkPipelineDepthStencilStateCreateFlags flags{};
    VkBool32 depthTestEnable{}, depthWriteEnable{};
    VkCompareOp depthCompareOp{};
    VkBool32 depthBoundsTestEnable{}, stencilTestEnable{};
    VkStencilOpState front{}, back{};
    float minDepthBounds{}, maxDepthBounds{};
};
struct VkPipelineColorBlendAttachmentState {
    VkBool32 blendEnable{};
    VkBlendFactor srcColorBlendFactor{}, dstColorBlendFactor{};
    VkBlendOp colorBlendOp{};
    VkBlendFactor srcAlphaBlendFactor{}, dstAlphaBlendFactor{};
    VkBlendOp alphaBlendOp{};
    VkColorComponentFlags colorWriteMask{};
};
struct VkPipelineColorBlendStateCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO;
    const void* pNext{};
    VkPipelineColorBlendStateCreateFlags flags{};
    VkBool32 logicOpEnable{};
    VkLogicOp logicOp{};
    uint32_t attachmentCount{};
    const VkPipelineColorBlendAttachmentState* pAttachments{};
    float blendConstants[4]{};
};
struct VkGraphicsPipelineCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO;
    const void* pNext{};
    VkPipelineCreateFlags flags{};
    uint32_t stageCount{};
    const VkPipelineShaderStageCreateInfo* pStages{};
    const VkPipelineVertexInputStateCreateInfo* pVertexInputState{};
    const VkPipelineInputAssemblyStateCreateInfo* pInputAssemblyState{};
    const VkPipelineTessellationStateCreateInfo* pTessellationState{};
    const VkPipelineViewportStateCreateInfo* pViewportState{};
    const VkPipelineRasterizationStateCreateInfo* pRasterizationState{};
    const VkPipelineMultisampleStateCreateInfo* pMultisampleState{};
    const VkPipelineDepthStencilStateCreateInfo* pDepthStencilState{};
    const VkPipelineColorBlendStateCreateInfo* pColorBlendState{};
    const VkPipelineDynamicStateCreateInfo* pDynamicState{};
    VkPipelineLayout layout{};
    VkRenderPass renderPass{};
    uint32_t subpass{};
    VkPipeline basePipelineHandle{};
    int32_t basePipelineIndex{};
};
struct VkExtent3D {
    uint32_t width{}, height{}, depth{};
};
struct VkImageCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
    const void* pNext{};
    VkImageCreateFlags flags{};
    VkImageType imageType{};
    VkFormat format{};
    VkExtent3D extent{};
    uint32_t mipLevels{}, arrayLayers{};
    VkSampleCountFlagBits samples{};
    VkImageTiling tiling{};
    VkImageUsageFlags usage{};
    VkSharingMode sharingMode{};
    uint32_t queueFamilyIndexCount{};
    const uint32_t* pQueueFamilyIndices{};
    VkImageLayout initialLayout{};
};
struct VkComponentMapping {
    VkComponentSwizzle r{}, g{}, b{}, a{};
};
struct VkImageViewCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO;
    const void* pNext{};
    VkImageViewCreateFlags flags{};
    VkImage image{};
    VkImageViewType viewType{};
    VkFormat format{};
    VkComponentMapping components{};
    VkImageSubresourceRange subresourceRange{};
};
struct VkImportMemoryFdInfoKHR {
    VkStructureType sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR;
    const void* pNext{};
    VkExternalMemoryHandleTypeFlagBits handleType{};
    int fd{};
};
struct VkInstanceCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    const void* pNext{};
    VkInstanceCreateFlags flags{};
    const VkApplicationInfo* pApplicationInfo{};
    uint32_t enabledLayerCount{};
    const char* const* ppEnabledLayerNames{};
    uint32_t enabledExtensionCount{};
    const char* const* ppEnabledExtensionNames{};
};
struct VkMemoryAllocateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    const void* pNext{};
    VkDeviceSize allocationSize{};
    uint32_t memoryTypeIndex{};
};
struct VkMemoryRequirements {
    VkDeviceSize size{}, alignment{};
    uint32_t memoryTypeBits{};
};
struct VkPhysicalDeviceFeatures2 {
    VkStructureType sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    void* pNext{};
    VkPhysicalDeviceFeatures features{};
};
struct VkPhysicalDeviceIDProperties {
    VkStructureType sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
    void* pNext{};
    uint8_t deviceUUID[16U]{}, driverUUID[16U]{}, deviceLUID[8U]{};
    uint32_t deviceNodeMask{};
    VkBool32 deviceLUIDValid{};
};
struct VkPhysicalDeviceMaintenance3Properties {
    VkStructureType sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
    void* pNext{};
    uint32_t maxPerSetDescriptors{};
    VkDeviceSize maxMemoryAllocationSize{};
};
struct VkPhysicalDeviceMaintenance4Properties {
    VkStructureType sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES;
    void* pNext{};
    VkDeviceSize maxBufferSize{};
};
struct VkMemoryType {
    VkMemoryPropertyFlags propertyFlags{};
    uint32_t heapIndex{};
};
struct VkMemoryHeap {
    VkDeviceSize size{};
    VkMemoryHeapFlags flags{};
};
struct VkPhysicalDeviceMemoryProperties {
    uint32_t memoryTypeCount{};
    VkMemoryType memoryTypes[32U]{};
    uint32_t memoryHeapCount{};
    VkMemoryHeap memoryHeaps[16U]{};
};
struct VkPhysicalDeviceLimits {
    uint32_t maxImageDimension1D{}, maxImageDimension2D{}, maxImageDimension3D{}, maxImageDimensionCube{};
    uint32_t maxImageArrayLayers{}, maxTexelBufferElements{}, maxUniformBufferRange{}, maxStorageBufferRange{};
    uint32_t maxPushConstantsSize{}, maxMemoryAllocationCount{}, maxSamplerAllocationCount{};
    VkDeviceSize bufferImageGranularity{}, sparseAddressSpaceSize{};
    uint32_t maxBoundDescriptorSets{}, maxPerStageDescriptorSamplers{}, maxPerStageDescriptorUniformBuffers{};
    uint32_t maxPerStageDescriptorStorageBuffers{}, maxPerStageDescriptorSampledImages{};
    uint32_t maxPerStageDescriptorStorageImages{}, maxPerStageDescriptorInputAttachments{}, maxPerStageResources{};
    uint32_t maxDescriptorSetSamplers{}, maxDescriptorSetUniformBuffers{}, maxDescriptorSetUniformBuffersDynamic{};
    uint32_t maxDescriptorSetStorageBuffers{}, maxDescriptorSetStorageBuffersDynamic{};
    uint32_t maxDescriptorSetSampledImages{}, maxDescriptorSetStorageImages{}, maxDescriptorSetInputAttachments{};
    uint32_t maxVertexInputAttributes{}, maxVertexInputBindings{}, maxVertexInputAttributeOffset{};
    uint32_t maxVertexInputBindingStride{}, maxVertexOutputComponents{}, maxTessellationGenerationLevel{};
    uint32_t maxTessellationPatchSize{}, maxTessellationControlPerVertexInputComponents{};
    uint32_t maxTessellationControlPerVertexOutputComponents{}, maxTessellationControlPerPatchOutputComponents{};
    uint32_t maxTessellationControlTotalOutputComponents{}, maxTessellationEvaluationInputComponents{};
    uint32_t maxTessellationEvaluationOutputComponents{}, maxGeometryShaderInvocations{};
    uint32_t maxGeometryInputComponents{}, maxGeometryOutputComponents{}, maxGeometryOutputVertices{};
    uint32_t maxGeometryTotalOutputComponents{}, maxFragmentInputComponents{}, maxFragmentOutputAttachments{};
    uint32_t maxFragmentDualSrcAttachments{}, maxFragmentCombinedOutputResources{}, maxComputeSharedMemorySize{};
    uint32_t maxComputeWorkGroupCount[3]{}, maxComputeWorkGroupInvocations{}, maxComputeWorkGroupSize[3]{};
    uint32_t subPixelPrecisionBits{}, subTexelPrecisionBits{}, mipmapPrecisionBits{}, maxDrawIndexedIndexValue{};
    uint32_t maxDrawIndirectCount{};
    float maxSamplerLodBias{}, maxSamplerAnisotropy{};
    uint32_t maxViewports{}, maxViewportDimensions[2]{};
    float viewportBoundsRange[2]{};
    uint32_t viewportSubPixelBits{};
    size_t minMemoryMapAlignment{};
    VkDeviceSize minTexelBufferOffsetAlignment{}, minUniformBufferOffsetAlignment{};
    VkDeviceSize minStorageBufferOffsetAlignment{};
    int32_t minTexelOffset{};
    uint32_t maxTexelOffset{};
    int32_t minTexelGatherOffset{};
    uint32_t maxTexelGatherOffset{};
    float minInterpolationOffset{}, maxInterpolationOffset{};
    uint32_t subPixelInterpolationOffsetBits{}, maxFramebufferWidth{}, maxFramebufferHeight{}, maxFramebufferLayers{};
    VkSampleCountFlags framebufferColorSampleCounts{}, framebufferDepthSampleCounts{};
    VkSampleCountFlags framebufferStencilSampleCounts{}, framebufferNoAttachmentsSampleCounts{};
    uint32_t maxColorAttachments{};
    VkSampleCountFlags sampledImageColorSampleCounts{}, sampledImageIntegerSampleCounts{};
    VkSampleCountFlags sampledImageDepthSampleCounts{}, sampledImageStencilSampleCounts{}, storageImageSampleCounts{};
    uint32_t maxSampleMaskWords{};
    VkBool32 timestampComputeAndGraphics{};
    float timestampPeriod{};
    uint32_t maxClipDistances{}, maxCullDistances{}, maxCombinedClipAndCullDistances{}, discreteQueuePriorities{};
    float pointSizeRange[2]{}, lineWidthRange[2]{}, pointSizeGranularity{}, lineWidthGranularity{};
    VkBool32 strictLines{}, standardSampleLocations{};
    VkDeviceSize optimalBufferCopyOffsetAlignment{}, optimalBufferCopyRowPitchAlignment{}, nonCoherentAtomSize{};
};
struct VkPhysicalDeviceSparseProperties {
    VkBool32 residencyStandard2DBlockShape{}, residencyStandard2DMultisampleBlockShape{};
    VkBool32 residencyStandard3DBlockShape{}, residencyAlignedMipSize{}, residencyNonResidentStrict{};
};
struct VkPhysicalDeviceProperties {
    uint32_t apiVersion{}, driverVersion{}, vendorID{}, deviceID{};
    VkPhysicalDeviceType deviceType{};
    char deviceName[256U]{};
    uint8_t pipelineCacheUUID[16U]{};
    VkPhysicalDeviceLimits limits{};
    VkPhysicalDeviceSparseProperties sparseProperties{};
};
struct VkPhysicalDeviceProperties2 {
    VkStructureType sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    void* pNext{};
    VkPhysicalDeviceProperties properties{};
};
struct VkPhysicalDeviceVulkan11Features {
    VkStructureType sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    void* pNext{};
    VkBool32 storageBuffer16BitAccess{}, uniformAndStorageBuffer16BitAccess{}, storagePushConstant16{};
    VkBool32 storageInputOutput16{}, multiview{}, multiviewGeometryShader{}, multiviewTessellationShader{};
    VkBool32 variablePointersStorageBuffer{}, variablePointers{}, protectedMemory{}, samplerYcbcrConversion{};
    VkBool32 shaderDrawParameters{};
};
struct VkPhysicalDeviceVulkan12Features {
    VkStructureType sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    void* pNext{};
    VkBool32 samplerMirrorClampToEdge{}, drawIndirectCount{}, storageBuffer8BitAccess{};
    VkBool32 uniformAndStorageBuffer8BitAccess{}, storagePushConstant8{}, shaderBufferInt64Atomics{};
    VkBool32 shaderSharedInt64Atomics{}, shaderFloat16{}, shaderInt8{}, descriptorIndexing{};
    VkBool32 shaderInputAttachmentArrayDynamicIndexing{}, shaderUniformTexelBufferArrayDynamicIndexing{};
    VkBool32 shaderStorageTexelBufferArrayDynamicIndexing{}, shaderUniformBufferArrayNonUniformIndexing{};
    VkBool32 shaderSampledImageArrayNonUniformIndexing{}, shaderStorageBufferArrayNonUniformIndexing{};
    VkBool32 shaderStorageImageArrayNonUniformIndexing{}, shaderInputAttachmentArrayNonUniformIndexing{};
    VkBool32 shaderUniformTexelBufferArrayNonUniformIndexing{}, shaderStorageTexelBufferArrayNonUniformIndexing{};
    VkBool32 descriptorBindingUniformBufferUpdateAfterBind{}, descriptorBindingSampledImageUpdateAfterBind{};
    VkBool32 descriptorBindingStorageImageUpdateAfterBind{}, descriptorBindingStorageBufferUpdateAfterBind{};
    VkBool32 descriptorBindingUniformTexelBufferUpdateAfterBind{};
    VkBool32 descriptorBindingStorageTexelBufferUpdateAfterBind{}, descriptorBindingUpdateUnusedWhilePending{};
    VkBool32 descriptorBindingPartiallyBound{}, descriptorBindingVariableDescriptorCount{}, runtimeDescriptorArray{};
    VkBool32 samplerFilterMinmax{}, scalarBlockLayout{}, imagelessFramebuffer{}, uniformBufferStandardLayout{};
    VkBool32 shaderSubgroupExtendedTypes{}, separateDepthStencilLayouts{}, hostQueryReset{}, timelineSemaphore{};
    VkBool32 bufferDeviceAddress{}, bufferDeviceAddressCaptureReplay{}, bufferDeviceAddressMultiDevice{};
    VkBool32 vulkanMemoryModel{}, vulkanMemoryModelDeviceScope{}, vulkanMemoryModelAvailabilityVisibilityChains{};
    VkBool32 shaderOutputViewportIndex{}, shaderOutputLayer{}, subgroupBroadcastDynamicId{};
};
struct VkPhysicalDeviceVulkan13Features {
    VkStructureType sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
    void* pNext{};
    VkBool32 robustImageAccess{}, inlineUniformBlock{}, descriptorBindingInlineUniformBlockUpdateAfterBind{};
    VkBool32 pipelineCreationCacheControl{}, privateData{}, shaderDemoteToHelperInvocation{};
    VkBool32 shaderTerminateInvocation{}, subgroupSizeControl{}, computeFullSubgroups{}, synchronization2{};
    VkBool32 textureCompressionASTC_HDR{}, shaderZeroInitializeWorkgroupMemory{}, dynamicRendering{};
    VkBool32 shaderIntegerDotProduct{}, maintenance4{};
};
struct VkPushConstantRange {
    VkShaderStageFlags stageFlags{};
    uint32_t offset{}, size{};
};
struct VkPipelineLayoutCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    const void* pNext{};
    VkPipelineLayoutCreateFlags flags{};
    uint32_t setLayoutCount{};
    const VkDescriptorSetLayout* pSetLayouts{};
    uint32_t pushConstantRangeCount{};
    const VkPushConstantRange* pPushConstantRanges{};
};
struct VkPipelineRenderingCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_PIPELINE_RENDERING_CREATE_INFO;
    const void* pNext{};
    uint32_t viewMask{}, colorAttachmentCount{};
    const VkFormat* pColorAttachmentFormats{};
    VkFormat depthAttachmentFormat{}, stencilAttachmentFormat{};
};
struct VkQueueFamilyProperties {
    VkQueueFlags queueFlags{};
    uint32_t queueCount{}, timestampValidBits{};
    VkExtent3D minImageTransferGranularity{};
};
union VkClearColorValue {
    float float32[4];
    int32_t int32[4];
    uint32_t uint32[4];
};
struct VkClearDepthStencilValue {
    float depth{};
    uint32_t stencil{};
};
union VkClearValue {
    VkClearColorValue color;
    VkClearDepthStencilValue depthStencil;
};
struct VkRenderingAttachmentInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO;
    const void* pNext{};
    VkImageView imageView{};
    VkImageLayout imageLayout{};
    VkResolveModeFlagBits resolveMode{};
    VkImageView resolveImageView{};
    VkImageLayout resolveImageLayout{};
    VkAttachmentLoadOp loadOp{};
    VkAttachmentStoreOp storeOp{};
    VkClearValue clearValue{};
};
struct VkRenderingInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_RENDERING_INFO;
    const void* pNext{};
    VkRenderingFlags flags{};
    VkRect2D renderArea{};
    uint32_t layerCount{}, viewMask{}, colorAttachmentCount{};
    const VkRenderingAttachmentInfo* pColorAttachments{};
    const VkRenderingAttachmentInfo* pDepthAttachment{};
    const VkRenderingAttachmentInfo* pStencilAttachment{};
};
struct VkSemaphoreCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
    const void* pNext{};
    VkSemaphoreCreateFlags flags{};
};
struct VkSemaphoreGetFdInfoKHR {
    VkStructureType sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR;
    const void* pNext{};
    VkSemaphore semaphore{};
    VkExternalSemaphoreHandleTypeFlagBits handleType{};
};
struct VkSemaphoreSubmitInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO;
    const void* pNext{};
    VkSemaphore semaphore{};
    uint64_t value{};
    VkPipelineStageFlags2 stageMask{};
    uint32_t deviceIndex{};
};
struct VkSemaphoreTypeCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
    const void* pNext{};
    VkSemaphoreType semaphoreType{};
    uint64_t initialValue{};
};
struct VkSemaphoreWaitInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
    const void* pNext{};
    VkSemaphoreWaitFlags flags{};
    uint32_t semaphoreCount{};
    const VkSemaphore* pSemaphores{};
    const uint64_t* pValues{};
};
struct VkShaderModuleCreateInfo {
    VkStructureType sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    const void* pNext{};
    VkShaderModuleCreateFlags flags{};
    size_t codeSize{};
    const uint32_t* pCode{};
};
struct VkSubmitInfo2 {
    VkStructureType sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2;
    const void* pNext{};
    VkSubmitFlags flags{};
    uint32_t waitSemaphoreInfoCount{};
    const VkSemaphoreSubmitInfo* pWaitSemaphoreInfos{};
    uint32_t commandBufferInfoCount{};
    const VkCommandBufferSubmitInfo* pCommandBufferInfos{};
    uint32_t signalSemaphoreInfoCount{};
    const VkSemaphoreSubmitInfo* pSignalSemaphoreInfos{};
};
struct VkWriteDescriptorSet {
    VkStructureType sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    const void* pNext{};
    VkDescriptorSet dstSet{};
    uint32_t dstBinding{}, dstArrayElement{}, descriptorCount{};
    VkDescriptorType descriptorType{};
    const VkDescriptorImageInfo* pImageInfo{};
    const VkDescriptorBufferInfo* pBufferInfo{};
    const VkBufferView* pTexelBufferView{};
};

// ---- Functions. X(result, name, parameters): parameters as Khronos declares them.

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
