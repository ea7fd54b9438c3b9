#include "render/vulkan/pipelines.h"

#include "render/api/core.h"

namespace doorstep {
namespace {

// Exists while pipelines are created from it.
class ShaderModule {
public:
    explicit ShaderModule(VulkanDevice* device) : device_(device) {}
    ShaderModule(const ShaderModule&) = delete;
    ShaderModule& operator=(const ShaderModule&) = delete;
    ~ShaderModule() { device_->functions.vkDestroyShaderModule(device_->handle, module_, nullptr); }

    ds_status create(const Spirv& spirv) {
        VkShaderModuleCreateInfo info;
        info.codeSize = spirv.bytes();
        info.pCode = spirv.words();
        const VkResult result = device_->functions.vkCreateShaderModule(device_->handle, &info, nullptr, &module_);
        return result == VK_SUCCESS ? DS_STATUS_OK : fail_vulkan(result, "vkCreateShaderModule");
    }

    VkPipelineShaderStageCreateInfo stage(VkShaderStageFlagBits bit) const {
        VkPipelineShaderStageCreateInfo info;
        info.stage = bit;
        info.module = module_;
        info.pName = "main";
        return info;
    }

private:
    VulkanDevice* device_;
    VkShaderModule module_ = nullptr;
};

}  // namespace

Pipelines::~Pipelines() {
    if (!device_) return;
    const DeviceFunctions& vulkan = device_->functions;
    for (VkPipeline pipeline : {objects, boxes, agents, pixels}) {
        vulkan.vkDestroyPipeline(device_->handle, pipeline, nullptr);
    }
    vulkan.vkDestroyPipelineLayout(device_->handle, layout, nullptr);
    vulkan.vkDestroyDescriptorSetLayout(device_->handle, set_layout, nullptr);
}

ds_status Pipelines::create(VulkanDevice* device, const Shaders& shaders, VkExtent2D target) {
    device_ = device;
    if (const ds_status status = create_layout()) return status;
    if (const ds_status status = create_compute(shaders.objects, &objects)) return status;
    // Boxes generate only the sides that face the view.
    if (const ds_status status = create_graphics(shaders.boxes, shaders.surface, target, VK_CULL_MODE_NONE, &boxes)) {
        return status;
    }
    const VkCullModeFlags cull = VK_CULL_MODE_BACK_BIT;
    if (const ds_status status = create_graphics(shaders.agents, shaders.surface, target, cull, &agents)) return status;
    return create_compute(shaders.pixels, &pixels);
}

ds_status Pipelines::create_layout() {
    VkDescriptorSetLayoutBinding bindings[kBindingCount];
    for (uint32_t i = 0; i < kBindingCount; ++i) {
        bindings[i].binding = i;
        bindings[i].descriptorCount = 1;
        bindings[i].descriptorType =
            i == kSurfacesBinding ? VK_DESCRIPTOR_TYPE_STORAGE_IMAGE : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT | VK_SHADER_STAGE_VERTEX_BIT;
    }
    VkDescriptorSetLayoutCreateInfo set_info;
    set_info.bindingCount = kBindingCount;
    set_info.pBindings = bindings;
    VkResult result = device_->functions.vkCreateDescriptorSetLayout(device_->handle, &set_info, nullptr, &set_layout);
    if (result != VK_SUCCESS) return fail_vulkan(result, "vkCreateDescriptorSetLayout");

    VkPushConstantRange constants;
    constants.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT | VK_SHADER_STAGE_VERTEX_BIT;
    constants.size = sizeof(Chunk);
    VkPipelineLayoutCreateInfo info;
    info.setLayoutCount = 1;
    info.pSetLayouts = &set_layout;
    info.pushConstantRangeCount = 1;
    info.pPushConstantRanges = &constants;
    result = device_->functions.vkCreatePipelineLayout(device_->handle, &info, nullptr, &layout);
    return result == VK_SUCCESS ? DS_STATUS_OK : fail_vulkan(result, "vkCreatePipelineLayout");
}

ds_status Pipelines::create_compute(const Spirv& shader, VkPipeline* pipeline) {
    ShaderModule module(device_);
    if (const ds_status status = module.create(shader)) return status;
    VkComputePipelineCreateInfo info;
    info.stage = module.stage(VK_SHADER_STAGE_COMPUTE_BIT);
    info.layout = layout;
    const VkResult result =
        device_->functions.vkCreateComputePipelines(device_->handle, nullptr, 1, &info, nullptr, pipeline);
    return result == VK_SUCCESS ? DS_STATUS_OK : fail_vulkan(result, "vkCreateComputePipelines");
}

ds_status Pipelines::create_graphics(const Spirv& vertex, const Spirv& pixel, VkExtent2D target, VkCullModeFlags cull,
                                     VkPipeline* pipeline) {
    ShaderModule vertex_module(device_), pixel_module(device_);
    if (const ds_status status = vertex_module.create(vertex)) return status;
    if (const ds_status status = pixel_module.create(pixel)) return status;
    const VkPipelineShaderStageCreateInfo stages[] = {vertex_module.stage(VK_SHADER_STAGE_VERTEX_BIT),
                                                      pixel_module.stage(VK_SHADER_STAGE_FRAGMENT_BIT)};
    const VkPipelineVertexInputStateCreateInfo no_input;
    VkPipelineInputAssemblyStateCreateInfo triangles;
    triangles.topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST;

    VkViewport viewport;
    viewport.width = static_cast<float>(target.width);
    viewport.height = static_cast<float>(target.height);
    viewport.maxDepth = 1.f;
    VkRect2D scissor;
    scissor.extent = target;
    VkPipelineViewportStateCreateInfo viewports;
    viewports.viewportCount = viewports.scissorCount = 1;
    viewports.pViewports = &viewport;
    viewports.pScissors = &scissor;

    VkPipelineRasterizationStateCreateInfo rasterization;
    rasterization.cullMode = cull;
    rasterization.frontFace = VK_FRONT_FACE_COUNTER_CLOCKWISE;
    rasterization.lineWidth = 1.f;
    VkPipelineMultisampleStateCreateInfo samples;
    samples.rasterizationSamples = VK_SAMPLE_COUNT_1_BIT;
    VkPipelineDepthStencilStateCreateInfo depth;
    depth.depthTestEnable = depth.depthWriteEnable = 1;
    depth.depthCompareOp = VK_COMPARE_OP_GREATER;
    VkPipelineColorBlendAttachmentState written;
    written.colorWriteMask = VK_COLOR_COMPONENT_R_BIT;
    VkPipelineColorBlendStateCreateInfo blend;
    blend.attachmentCount = 1;
    blend.pAttachments = &written;

    VkPipelineRenderingCreateInfo formats;
    formats.colorAttachmentCount = 1;
    formats.pColorAttachmentFormats = &kSurfaceFormat;
    formats.depthAttachmentFormat = kDepthFormat;

    VkGraphicsPipelineCreateInfo info;
    info.pNext = &formats;
    info.stageCount = 2;
    info.pStages = stages;
    info.pVertexInputState = &no_input;
    info.pInputAssemblyState = &triangles;
    info.pViewportState = &viewports;
    info.pRasterizationState = &rasterization;
    info.pMultisampleState = &samples;
    info.pDepthStencilState = &depth;
    info.pColorBlendState = &blend;
    info.layout = layout;
    const VkResult result =
        device_->functions.vkCreateGraphicsPipelines(device_->handle, nullptr, 1, &info, nullptr, pipeline);
    return result == VK_SUCCESS ? DS_STATUS_OK : fail_vulkan(result, "vkCreateGraphicsPipelines");
}

}  // namespace doorstep
