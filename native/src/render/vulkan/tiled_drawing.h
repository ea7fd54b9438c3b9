// The drawing of a set of cameras, recorded once: for each chunk of views it reads the worlds, draws boxes and agents
// into tiles, and writes the tiles' pixels to tensors.
#pragma once

#include <stdint.h>

#include "render/cameras/renderers.h"
#include "render/vulkan/pipelines.h"
#include "render/vulkan/resources.h"
#include "render/vulkan/shader_sources.h"

namespace doorstep {

// Views are drawn in chunks: as many as fit into one render target, as a grid of tiles.
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

// Bytes of a pixel, and of an element of the shaders' buffers, per tensor in the order of DS_CAMERA_TENSOR_TABLE.
constexpr uint32_t kPixelBytes[DS_CAMERA_TENSOR_COUNT] = {4, 4, 2, 12};
constexpr uint32_t kElementBytes[DS_CAMERA_TENSOR_COUNT] = {4, 4, 2, 4};
// Bytes of a record of a world or a view.
constexpr uint32_t kObjectBytes = 64, kViewBytes = 64;

// Inputs and outputs of the whole batch, created by the renderer. Tensors that are not outputs do not exist.
struct ViewBuffers {
    Buffer worlds, outputs[DS_CAMERA_TENSOR_COUNT];
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
