#include "render/vulkan/chunks.h"

#include "render/api/core.h"

namespace doorstep {
namespace {

constexpr uint64_t kTargetSide = 4096;  // pixels, unless one view is larger; every device supports it
constexpr uint64_t kMaxGroups = 65535;  // per axis of a dispatch, on every device

uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

uint64_t largest_output_of_view(const Views& views) {
    const uint64_t pixels = static_cast<uint64_t>(views.rig.width) * static_cast<uint64_t>(views.rig.height);
    return pixels * (views.tensors.normals ? kNormalsBytes : kRgbBytes);
}

}  // namespace

ds_status plan_chunks(const Views& views, const VulkanDevice& device, ChunkPlan* plan) {
    const auto width = static_cast<uint64_t>(views.rig.width), height = static_cast<uint64_t>(views.rig.height);
    const auto agents = static_cast<uint64_t>(views.fields.num_agents);
    const uint64_t num_views = static_cast<uint64_t>(views.num_worlds) * agents;
    // A binding may start up to its alignment before the chunk.
    const uint64_t binding = device.largest_binding - device.binding_alignment;
    const uint64_t views_bound = binding / largest_output_of_view(views);
    const uint64_t world_bytes = larger(static_cast<uint64_t>(layout_of(views.fields).world_stride),
                                        static_cast<uint64_t>(object_count(views.fields)) * kObjectBytes);
    if (views_bound == 0 || num_views > UINT32_MAX) {
        return fail(DS_STATUS_RENDERER, "cameras", "use smaller views, or renderer=\"raycast\"",
                    "%s cannot draw %llu views of %d x %d pixels", device.name,
                    static_cast<unsigned long long>(num_views), views.rig.width, views.rig.height);
    }
    const uint64_t columns = larger(1, kTargetSide / width), rows = larger(1, kTargetSide / height);
    uint64_t count = smaller(smaller(columns * rows, num_views), smaller(views_bound, kMaxGroups));
    count = smaller(count, larger(1, (binding / world_bytes - 2) * agents));
    plan->tiles.columns = static_cast<uint32_t>(smaller(columns, count));
    plan->tiles.rows = static_cast<uint32_t>((count + plan->tiles.columns - 1) / plan->tiles.columns);
    plan->num_views = num_views;
    plan->views_per_chunk = static_cast<uint32_t>(count);
    const auto num_worlds = static_cast<uint64_t>(views.num_worlds);
    plan->worlds_per_chunk = static_cast<uint32_t>(smaller(count / agents + 2, num_worlds));
    plan->num_chunks = static_cast<uint32_t>((num_views + count - 1) / count);
    return DS_STATUS_OK;
}

Chunk chunk_of(const ChunkPlan& plan, uint32_t num_agents, uint32_t index) {
    Chunk chunk{};
    const uint64_t first = static_cast<uint64_t>(index) * plan.views_per_chunk;
    chunk.first_view = static_cast<uint32_t>(first);
    chunk.num_views = static_cast<uint32_t>(smaller(plan.views_per_chunk, plan.num_views - first));
    chunk.first_world = chunk.first_view / num_agents;
    chunk.num_worlds = (chunk.first_view + (chunk.num_views - 1)) / num_agents - chunk.first_world + 1;
    return chunk;
}

}  // namespace doorstep
