// All drawing of a set of cameras, recorded once: for each chunk of views the worlds are read, boxes and agents are
// drawn into tiles, and the tiles' pixels become tensors.
#pragma once

#include <stdint.h>

#include "render/vulkan/chunks.h"
#include "render/vulkan/memory.h"
#include "render/vulkan/pipelines.h"

namespace doorstep {

// What is read and written, for the whole batch; made by whoever draws. Outputs that are not wanted do not exist.
struct ViewBuffers {
    Buffer worlds, rgb, depth, segmentation, normals;
};

class TiledDrawing {
public:
    TiledDrawing() = default;
    TiledDrawing(const TiledDrawing&) = delete;
    TiledDrawing& operator=(const TiledDrawing&) = delete;
    ~TiledDrawing();

    // Everything that it needs is taken here. shared: the buffers are CUDA's too, who has them between two drawings.
    ds_status create(VulkanDevice* device, const Views& views, const ChunkPlan& plan, const Shaders& shaders,
                     const ViewBuffers& buffers, bool shared);

    // Begins to draw after `semaphore`, a timeline, has reached wait_value (0: at once), and sets it to signal_value
    // then.
    ds_status submit(VkSemaphore semaphore, uint64_t wait_value, uint64_t signal_value);

private:
    ds_status create_targets(const ChunkPlan& plan, const Views& views);
    ds_status create_agent_corners();
    ds_status create_sets(uint32_t count);
    ds_status create_commands();
    void bind(VkDescriptorSet set, const Views& views, const ViewBuffers& buffers, Chunk* chunk);
    ds_status record(const Views& views, const ChunkPlan& plan, const ViewBuffers& buffers, bool shared);
    void record_chunk(const Views& views, const ChunkPlan& plan, const Chunk& chunk, VkDescriptorSet set);
    void begin_rendering(VkExtent2D extent);
    void order_everything();
    void make_targets_ready();
    void order_host_reads();
    void change_owner(const ViewBuffers& buffers, uint32_t from, uint32_t to);

    VulkanDevice* device_ = nullptr;
    Pipelines pipelines_;
    Buffer objects_, view_frames_, agent_corners_;
    Image surfaces_, depths_;
    VkDescriptorPool pool_ = nullptr;
    VkDescriptorSet* sets_ = nullptr;  // one for each chunk
    VkCommandPool command_pool_ = nullptr;
    VkCommandBuffer commands_ = nullptr;
};

}  // namespace doorstep
