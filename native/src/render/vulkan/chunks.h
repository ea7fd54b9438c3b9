// Views are drawn in chunks: as many as fit into one render target, as a grid of tiles.
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

// The views and worlds of a chunk; the rest is known from the bindings.
Chunk chunk_of(const ChunkPlan& plan, uint32_t num_agents, uint32_t index);

// Bytes per pixel of each output, and per record of a world or a view.
constexpr uint32_t kRgbBytes = 4, kDepthBytes = 4, kSegmentationBytes = 2, kNormalsBytes = 12;
constexpr uint32_t kObjectBytes = 64, kViewBytes = 64;

}  // namespace doorstep
