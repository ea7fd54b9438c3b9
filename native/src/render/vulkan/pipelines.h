// The four drawing programs and their bindings.
#pragma once

#include <stdint.h>

#include "doorstep_render.h"
#include "render/vulkan/device.h"
#include "render/vulkan/shader_compiler.h"

namespace doorstep {

// As in scene.hlsl.
enum Binding : uint32_t {
    kWorldsBinding = 0,
    kObjectsBinding = 1,
    kViewsBinding = 2,
    kAgentCornersBinding = 3,
    kSurfacesBinding = 4,
    kFirstOutputBinding = 5,  // the tensors, in the order of DS_CAMERA_TENSOR_TABLE
    kBindingCount = kFirstOutputBinding + DS_CAMERA_TENSOR_COUNT,
};

// The push constants of scene.hlsl.
struct Chunk {
    uint32_t first_view, num_views;
    uint32_t first_world, num_worlds;
    uint32_t worlds_begin, output_begins[DS_CAMERA_TENSOR_COUNT];
};

// The compiled shaders, in the order of drawing.
struct Shaders {
    Spirv objects, boxes, agents, surface, pixels;
};

constexpr VkFormat kSurfaceFormat = VK_FORMAT_R32_UINT, kDepthFormat = VK_FORMAT_D32_SFLOAT;
constexpr uint32_t kObjectThreads = 64, kPixelThreads = 8;  // per group: objects.hlsl; per side: pixels.hlsl
constexpr uint32_t kBoxVertices = 18;                       // boxes.hlsl

class Pipelines {
public:
    Pipelines() = default;
    Pipelines(const Pipelines&) = delete;
    Pipelines& operator=(const Pipelines&) = delete;
    ~Pipelines();

    // target: size of the image to draw to, in pixels.
    ds_status create(VulkanDevice* device, const Shaders& shaders, VkExtent2D target);

    VkDescriptorSetLayout set_layout = nullptr;
    VkPipelineLayout layout = nullptr;
    VkPipeline objects = nullptr, boxes = nullptr, agents = nullptr, pixels = nullptr;

private:
    ds_status create_layout();
    ds_status create_compute(const Spirv& shader, VkPipeline* pipeline);
    ds_status create_graphics(const Spirv& vertex, const Spirv& pixel, VkExtent2D target, VkCullModeFlags cull,
                              VkPipeline* pipeline);

    VulkanDevice* device_ = nullptr;
};

}  // namespace doorstep
