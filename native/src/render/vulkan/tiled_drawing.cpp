#include "render/vulkan/tiled_drawing.h"

#include <stdlib.h>
#include <string.h>

#include "render/api/core.h"
#include "render/scene/meshes.h"

namespace doorstep {
namespace {

constexpr uint64_t kTargetSide = 4096;  // pixels, unless one view is larger; every device supports it
constexpr uint64_t kMaxGroups = 65535;  // per axis of a dispatch, on every device

uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

uint64_t largest_output_of_view(const Views& views) {
    uint32_t bytes = kPixelBytes[DS_CAMERA_TENSOR_rgb];
    for (int tensor = 0; tensor < DS_CAMERA_TENSOR_COUNT; ++tensor) {
        if (views.tensors.address(tensor) && kPixelBytes[tensor] > bytes) bytes = kPixelBytes[tensor];
    }
    return static_cast<uint64_t>(views.rig.width) * static_cast<uint64_t>(views.rig.height) * bytes;
}

// Must equal agents.hlsl.
struct AgentCorner {
    Vec3 position;
    uint32_t material;
    Vec3 normal;
    float padding;
};

uint32_t groups(uint32_t items, uint32_t of_group) { return (items + of_group - 1) / of_group; }

// A part of a buffer, for a shader: bindings start at multiples of their alignment, so the part starts `begin` bytes
// later.
struct BoundPart {
    VkDescriptorBufferInfo info;
    uint32_t begin;
};
BoundPart part_of(const VulkanDevice& device, const Buffer& buffer, uint64_t offset, uint64_t bytes) {
    const uint64_t aligned = offset / device.binding_alignment * device.binding_alignment;
    BoundPart part;
    part.begin = static_cast<uint32_t>(offset - aligned);
    part.info.buffer = buffer.handle();
    part.info.offset = aligned;
    part.info.range = bytes + part.begin;
    return part;
}

// Later work reads what was written before, and overwrites it only after it was read.
template <class Barrier>
void order_all_memory(Barrier& barrier) {
    barrier.srcStageMask = barrier.dstStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
    barrier.srcAccessMask = VK_ACCESS_2_MEMORY_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT;
}

}  // namespace

// ---- Chunks ----

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
                    "%s cannot draw %lu views of %d x %d pixels", device.name,
                    num_views, views.rig.width, views.rig.height);
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

// ---- What the drawing needs ----

TiledDrawing::~TiledDrawing() {
    free(sets_);
    if (!device_) return;
    device_->functions.vkDestroyDescriptorPool(device_->handle, pool_, nullptr);
    device_->functions.vkDestroyCommandPool(device_->handle, command_pool_, nullptr);
}

ds_status TiledDrawing::create(VulkanDevice* device, const Views& views, const ChunkPlan& plan, const Shaders& shaders,
                               const ViewBuffers& buffers, bool shared) {
    device_ = device;
    const VkExtent2D target{plan.tiles.columns * static_cast<uint32_t>(views.rig.width),
                            plan.tiles.rows * static_cast<uint32_t>(views.rig.height)};
    if (const ds_status status = pipelines_.create(device, shaders, target)) return status;
    if (const ds_status status = create_targets(plan, views)) return status;
    if (const ds_status status = create_agent_corners()) return status;
    if (const ds_status status = create_sets(plan.num_chunks)) return status;
    if (const ds_status status = create_commands()) return status;
    return record(views, plan, buffers, shared);
}

ds_status TiledDrawing::create_targets(const ChunkPlan& plan, const Views& views) {
    const uint32_t width = plan.tiles.columns * static_cast<uint32_t>(views.rig.width);
    const uint32_t height = plan.tiles.rows * static_cast<uint32_t>(views.rig.height);
    const uint64_t num_objects = uint64_t{plan.worlds_per_chunk} * static_cast<uint64_t>(object_count(views.fields));
    if (const ds_status status = objects_.create(device_, num_objects * kObjectBytes, HostAccess::kNone)) return status;
    const uint64_t frame_bytes = uint64_t{plan.views_per_chunk} * kViewBytes;
    if (const ds_status status = view_frames_.create(device_, frame_bytes, HostAccess::kNone)) return status;
    if (const ds_status status = surfaces_.create(
            device_, width, height, kSurfaceFormat, VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_STORAGE_BIT,
            VK_IMAGE_ASPECT_COLOR_BIT)) {
        return status;
    }
    return depths_.create(device_, width, height, kDepthFormat, VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT,
                          VK_IMAGE_ASPECT_DEPTH_BIT);
}

ds_status TiledDrawing::create_agent_corners() {
    const Mesh& mesh = agent_mesh();
    const int corners = 3 * mesh.triangle_count;
    const uint64_t bytes = static_cast<uint64_t>(corners) * sizeof(AgentCorner);
    if (const ds_status status = agent_corners_.create(device_, bytes, HostAccess::kWrites)) return status;
    auto* written = reinterpret_cast<AgentCorner*>(agent_corners_.host());
    for (int i = 0; i < corners; ++i) {
        const MeshVertex& vertex = mesh.vertices[mesh.indices[i]];
        written[i] = {vertex.position, vertex.material, vertex.normal, 0.f};
    }
    return DS_STATUS_OK;
}

ds_status TiledDrawing::create_sets(uint32_t count) {
    VkDescriptorPoolSize sizes[2];
    sizes[0].type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    sizes[0].descriptorCount = count * (kBindingCount - 1);
    sizes[1].type = VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
    sizes[1].descriptorCount = count;
    VkDescriptorPoolCreateInfo info;
    info.maxSets = count;
    info.poolSizeCount = 2;
    info.pPoolSizes = sizes;
    VkResult result = device_->functions.vkCreateDescriptorPool(device_->handle, &info, nullptr, &pool_);
    if (result != VK_SUCCESS) return fail_vulkan(result, "vkCreateDescriptorPool");
    sets_ = static_cast<VkDescriptorSet*>(calloc(count, sizeof(VkDescriptorSet)));
    if (!sets_) return fail(DS_STATUS_OUT_OF_MEMORY, "", "", "no memory for %u descriptor sets", count);
    for (uint32_t i = 0; i < count; ++i) {
        VkDescriptorSetAllocateInfo set;
        set.descriptorPool = pool_;
        set.descriptorSetCount = 1;
        set.pSetLayouts = &pipelines_.set_layout;
        result = device_->functions.vkAllocateDescriptorSets(device_->handle, &set, &sets_[i]);
        if (result != VK_SUCCESS) return fail_vulkan(result, "vkAllocateDescriptorSets");
    }
    return DS_STATUS_OK;
}

ds_status TiledDrawing::create_commands() {
    VkCommandPoolCreateInfo pool;
    pool.queueFamilyIndex = device_->queue_family;
    VkResult result = device_->functions.vkCreateCommandPool(device_->handle, &pool, nullptr, &command_pool_);
    if (result != VK_SUCCESS) return fail_vulkan(result, "vkCreateCommandPool");
    VkCommandBufferAllocateInfo info;
    info.commandPool = command_pool_;
    info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    info.commandBufferCount = 1;
    result = device_->functions.vkAllocateCommandBuffers(device_->handle, &info, &commands_);
    return result == VK_SUCCESS ? DS_STATUS_OK : fail_vulkan(result, "vkAllocateCommandBuffers");
}

// Points a set at the chunk's parts of the buffers, and stores the chunk's offsets in them.
void TiledDrawing::bind(VkDescriptorSet set, const Views& views, const ViewBuffers& buffers, Chunk* chunk) {
    const WorldLayout layout = layout_of(views.fields);
    const auto stride = static_cast<uint64_t>(layout.world_stride);
    const uint64_t pixels = static_cast<uint64_t>(views.rig.width) * static_cast<uint64_t>(views.rig.height);
    const uint64_t first = chunk->first_view * pixels, count = chunk->num_views * pixels;
    const BoundPart worlds = part_of(*device_, buffers.worlds, chunk->first_world * stride,
                                     (chunk->num_worlds - 1) * stride + static_cast<uint64_t>(layout.bytes));
    chunk->worlds_begin = worlds.begin;
    VkDescriptorBufferInfo infos[kBindingCount];
    infos[kWorldsBinding] = worlds.info;
    infos[kObjectsBinding] = part_of(*device_, objects_, 0, objects_.bytes()).info;
    infos[kViewsBinding] = part_of(*device_, view_frames_, 0, view_frames_.bytes()).info;
    infos[kAgentCornersBinding] = part_of(*device_, agent_corners_, 0, agent_corners_.bytes()).info;
    for (int tensor = 0; tensor < DS_CAMERA_TENSOR_COUNT; ++tensor) {
        const uint64_t bytes = kPixelBytes[tensor];
        const BoundPart part = part_of(*device_, buffers.outputs[tensor], first * bytes, count * bytes);
        chunk->output_begins[tensor] = part.begin / kElementBytes[tensor];
        infos[kFirstOutputBinding + tensor] = part.info;
    }
    VkDescriptorImageInfo image;
    image.imageView = surfaces_.view();
    image.imageLayout = VK_IMAGE_LAYOUT_GENERAL;

    VkWriteDescriptorSet writes[kBindingCount];
    uint32_t num_writes = 0;
    for (uint32_t binding = 0; binding < kBindingCount; ++binding) {
        const bool is_image = binding == kSurfacesBinding;
        if (!is_image && !infos[binding].buffer) continue;  // not an output
        VkWriteDescriptorSet& write = writes[num_writes++];
        write.dstSet = set;
        write.dstBinding = binding;
        write.descriptorCount = 1;
        write.descriptorType = is_image ? VK_DESCRIPTOR_TYPE_STORAGE_IMAGE : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        write.pBufferInfo = is_image ? nullptr : &infos[binding];
        write.pImageInfo = is_image ? &image : nullptr;
    }
    device_->functions.vkUpdateDescriptorSets(device_->handle, num_writes, writes, 0, nullptr);
}

// ---- Recording ----

ds_status TiledDrawing::record(const Views& views, const ChunkPlan& plan, const ViewBuffers& buffers, bool shared) {
    VkCommandBufferBeginInfo begin;
    VkResult result = device_->functions.vkBeginCommandBuffer(commands_, &begin);
    if (result != VK_SUCCESS) return fail_vulkan(result, "vkBeginCommandBuffer");
    if (shared) change_owner(buffers, VK_QUEUE_FAMILY_EXTERNAL, device_->queue_family);
    make_targets_ready();
    for (uint32_t i = 0; i < plan.num_chunks; ++i) {
        Chunk chunk = chunk_of(plan, static_cast<uint32_t>(views.fields.num_agents), i);
        bind(sets_[i], views, buffers, &chunk);
        record_chunk(views, plan, chunk, sets_[i]);
    }
    if (shared) {
        change_owner(buffers, device_->queue_family, VK_QUEUE_FAMILY_EXTERNAL);
    } else {
        order_host_reads();
    }
    result = device_->functions.vkEndCommandBuffer(commands_);
    return result == VK_SUCCESS ? DS_STATUS_OK : fail_vulkan(result, "vkEndCommandBuffer");
}

void TiledDrawing::record_chunk(const Views& views, const ChunkPlan& plan, const Chunk& chunk, VkDescriptorSet set) {
    const DeviceFunctions& vulkan = device_->functions;
    const auto width = static_cast<uint32_t>(views.rig.width), height = static_cast<uint32_t>(views.rig.height);
    const auto num_agents = static_cast<uint32_t>(views.fields.num_agents);
    const auto num_objects = static_cast<uint32_t>(object_count(views.fields));
    for (VkPipelineBindPoint point : {VK_PIPELINE_BIND_POINT_COMPUTE, VK_PIPELINE_BIND_POINT_GRAPHICS}) {
        vulkan.vkCmdBindDescriptorSets(commands_, point, pipelines_.layout, 0, 1, &set, 0, nullptr);
    }
    vulkan.vkCmdPushConstants(commands_, pipelines_.layout, VK_SHADER_STAGE_COMPUTE_BIT | VK_SHADER_STAGE_VERTEX_BIT, 0,
                              sizeof chunk, &chunk);

    vulkan.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_.objects);
    vulkan.vkCmdDispatch(commands_, groups(chunk.num_worlds * num_objects + chunk.num_views, kObjectThreads), 1, 1);
    order_everything();

    begin_rendering({plan.tiles.columns * width, plan.tiles.rows * height});
    vulkan.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_GRAPHICS, pipelines_.boxes);
    vulkan.vkCmdDraw(commands_, kBoxVertices, chunk.num_views * (num_objects - num_agents), 0, 0);
    if (num_agents > 1) {
        vulkan.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_GRAPHICS, pipelines_.agents);
        vulkan.vkCmdDraw(commands_, 3 * static_cast<uint32_t>(agent_mesh().triangle_count),
                         chunk.num_views * num_agents, 0, 0);
    }
    vulkan.vkCmdEndRendering(commands_);
    order_everything();

    vulkan.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines_.pixels);
    vulkan.vkCmdDispatch(commands_, groups(width, kPixelThreads), groups(height, kPixelThreads), chunk.num_views);
    order_everything();
}

// Tiles are cleared to no surface, infinitely far away.
void TiledDrawing::begin_rendering(VkExtent2D extent) {
    VkRenderingAttachmentInfo surfaces;
    surfaces.imageView = surfaces_.view();
    surfaces.imageLayout = VK_IMAGE_LAYOUT_GENERAL;
    surfaces.loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR;
    surfaces.storeOp = VK_ATTACHMENT_STORE_OP_STORE;
    VkRenderingAttachmentInfo depths = surfaces;
    depths.imageView = depths_.view();
    depths.storeOp = VK_ATTACHMENT_STORE_OP_DONT_CARE;
    VkRenderingInfo info;
    info.renderArea.extent = extent;
    info.layerCount = 1;
    info.colorAttachmentCount = 1;
    info.pColorAttachments = &surfaces;
    info.pDepthAttachment = &depths;
    device_->functions.vkCmdBeginRendering(commands_, &info);
}

void TiledDrawing::order_everything() {
    VkMemoryBarrier2 barrier;
    order_all_memory(barrier);
    VkDependencyInfo info;
    info.memoryBarrierCount = 1;
    info.pMemoryBarriers = &barrier;
    device_->functions.vkCmdPipelineBarrier2(commands_, &info);
}

// Transitions the images, discarding their contents.
void TiledDrawing::make_targets_ready() {
    VkImageMemoryBarrier2 barriers[2];
    for (VkImageMemoryBarrier2& barrier : barriers) {
        order_all_memory(barrier);
        barrier.oldLayout = VK_IMAGE_LAYOUT_UNDEFINED;
        barrier.newLayout = VK_IMAGE_LAYOUT_GENERAL;
        barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    }
    barriers[0].image = surfaces_.handle();
    barriers[0].subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    barriers[1].image = depths_.handle();
    barriers[1].subresourceRange = {VK_IMAGE_ASPECT_DEPTH_BIT, 0, 1, 0, 1};
    VkDependencyInfo info;
    info.imageMemoryBarrierCount = 2;
    info.pImageMemoryBarriers = barriers;
    device_->functions.vkCmdPipelineBarrier2(commands_, &info);
}

void TiledDrawing::order_host_reads() {
    VkMemoryBarrier2 barrier;
    barrier.srcStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
    barrier.srcAccessMask = VK_ACCESS_2_MEMORY_WRITE_BIT;
    barrier.dstStageMask = VK_PIPELINE_STAGE_2_HOST_BIT;
    barrier.dstAccessMask = VK_ACCESS_2_HOST_READ_BIT;
    VkDependencyInfo info;
    info.memoryBarrierCount = 1;
    info.pMemoryBarriers = &barrier;
    device_->functions.vkCmdPipelineBarrier2(commands_, &info);
}

// Transfers buffers shared with CUDA from one queue family to another.
void TiledDrawing::change_owner(const ViewBuffers& buffers, uint32_t from, uint32_t to) {
    VkBufferMemoryBarrier2 barriers[1 + DS_CAMERA_TENSOR_COUNT];
    uint32_t count = 0;
    const auto transfer = [&](const Buffer& buffer) {
        if (!buffer.handle()) return;
        VkBufferMemoryBarrier2& barrier = barriers[count++];
        order_all_memory(barrier);
        barrier.srcQueueFamilyIndex = from;
        barrier.dstQueueFamilyIndex = to;
        barrier.buffer = buffer.handle();
        barrier.size = buffer.bytes();
    };
    transfer(buffers.worlds);
    for (const Buffer& buffer : buffers.outputs) transfer(buffer);
    VkDependencyInfo info;
    info.bufferMemoryBarrierCount = count;
    info.pBufferMemoryBarriers = barriers;
    device_->functions.vkCmdPipelineBarrier2(commands_, &info);
}

// ---- Drawing ----

ds_status TiledDrawing::submit(VkSemaphore semaphore, uint64_t wait_value, uint64_t signal_value) {
    VkCommandBufferSubmitInfo commands;
    commands.commandBuffer = commands_;
    VkSemaphoreSubmitInfo wait, signal;
    wait.semaphore = signal.semaphore = semaphore;
    wait.stageMask = signal.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
    wait.value = wait_value;
    signal.value = signal_value;
    VkSubmitInfo2 info;
    info.waitSemaphoreInfoCount = wait_value ? 1 : 0;
    info.pWaitSemaphoreInfos = &wait;
    info.commandBufferInfoCount = 1;
    info.pCommandBufferInfos = &commands;
    info.signalSemaphoreInfoCount = 1;
    info.pSignalSemaphoreInfos = &signal;
    MutexGuard guard(device_->queue_mutex);
    const VkResult result = device_->functions.vkQueueSubmit2(device_->queue, 1, &info, nullptr);
    if (result == VK_ERROR_DEVICE_LOST) retire_device(device_);
    return result == VK_SUCCESS ? DS_STATUS_OK : fail_vulkan(result, "vkQueueSubmit2");
}

}  // namespace doorstep
