// The drawing of a set of cameras, recorded once: for each chunk of views it reads the worlds, draws boxes and agents
// into tiles, and writes the tiles' pixels to tensors.
#pragma once

#include <stdint.h>

#include "render/vulkan/chunks.h"
#include "render/vulkan/memory.h"
#include "render/vulkan/pipelines.h"

namespace doorstep {

// Inputs and outputs of the whole batch, created by the renderer. Tensors that are not outputs do not exist.
struct ViewBuffers {
    Buffer worlds, rgb, depth, segmentation, normals;
};

class TiledDrawing {
public:
    TiledDrawing() = default;
    TiledDrawing(const TiledDrawing&) = delete;
    TiledDrawing& operator=(const TiledDrawing&) = delete;
    ~TiledDrawing();

    // Allocates everything it needs. shared: CUDA has the buffers too, and owns them between two drawings.
    ds_status create(VulkanDevice* device, const Views& views, const ChunkPlan& plan, const Shaders& shaders,
                     const ViewBuffers& buffers, bool shared);

    // Begins to draw once `semaphore`, a timeline, has reached wait_value (0: at once), and then sets it to
    // signal_value.
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
    VkDescriptorSet* sets_ = nullptr;  // one per chunk
    VkCommandPool command_pool_ = nullptr;
    VkCommandBuffer commands_ = nullptr;
};

}  // namespace doorstep
