// The parts of both Vulkan renderers: the one for simulators on the CPU, and the one that shares memory with CUDA.
#pragma once

#include <stdint.h>

#include <new>

#include "render/api/core.h"
#include "render/cameras/renderers.h"
#include "render/vulkan/device.h"
#include "render/vulkan/tiled_drawing.h"

namespace doorstep {

// Destroyed in reverse order.
struct VulkanParts {
    DeviceUse device;
    Timeline timeline;
    ViewBuffers buffers;
    TiledDrawing drawing;
    ChunkPlan plan;
    Shaders shaders;
    uint64_t world_bytes;  // of all worlds, from the first byte read
    uint64_t num_pixels;   // of all views
};

// Opens the device (of this UUID, or the best), compiles the shaders, and creates the semaphore: everything except the
// buffers and the drawing.
ds_status prepare_parts(const CameraSetup& setup, const uint8_t* uuid, bool shared, VulkanParts* parts);

// On failure the caller deletes the parts.
VulkanParts* new_parts();

// Waits until the timeline has reached `value`. False in a forked child and if the device is stuck or lost: then the
// parts are leaked, because freeing them could crash.
bool wait_for_parts(const VulkanParts& parts, uint64_t value);

template <class Renderer>
ds_status make_renderer(const CameraSetup& setup, BatchRenderer** renderer) {
    auto* made = new (std::nothrow) Renderer;
    if (!made) return fail(DS_STATUS_OUT_OF_MEMORY, "", "", "no memory for a renderer");
    if (const ds_status status = made->create(setup)) {
        delete made;
        return status;
    }
    *renderer = made;
    return DS_STATUS_OK;
}

// For simulators on a GPU.
ds_status create_shared_renderer(const CameraSetup& setup, BatchRenderer** renderer);

}  // namespace doorstep
