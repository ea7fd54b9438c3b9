// Views are drawn in chunks: as many as fit into one render target, as tiles side by side.
#pragma once

#include "render/cameras/batch_renderer.h"
#include "render/vulkan/device.h"
#include "render/vulkan/pipelines.h"
#include "render/vulkan/shader_sources.h"

namespace doorstep {

struct ChunkPlan {
    TileGrid tiles;
    uint64_t num_views;        // of the batch
    uint32_t views_per_chunk;
    uint32_t worlds_per_chunk; // at most
    uint32_t num_chunks;
};

// RENDERER if the device cannot draw even one view of this size.
ds_status plan_chunks(const Views& views, const VulkanDevice& device, ChunkPlan* plan);

// Which views and worlds a chunk has; the rest is where it is bound.
Chunk chunk_of(const ChunkPlan& plan, uint32_t num_agents, uint32_t index);

// Bytes of a pixel of each output, and of what is made of a world or a view.
constexpr uint32_t kRgbBytes = 4, kDepthBytes = 4, kSegmentationBytes = 2, kNormalsBytes = 12;
constexpr uint32_t kObjectBytes = 64, kViewBytes = 64;

}  // namespace doorstep
