// The renderers of cameras, each in its own folder.
#pragma once

#include "doorstep.h"
#include "doorstep_render.h"
#include "render/cameras/batch_renderer.h"

namespace doorstep {

// The parameters of a new renderer. Arguments have been checked.
struct CameraSetup {
    ds_simulator simulator;     // memory on its device: core().simulator_allocate()
    ds_simulator_info info;     // its device, worlds, agents and threads
    ds_cameras_config config;   // its pointers are valid during the creation only
    Views views;                // passed to every draw()
};

// Create a renderer with `new`. A failure sets the thread's error (RENDERER, SHADER, OUT_OF_MEMORY, ...) and leaks
// nothing.
ds_status create_raycast_renderer(const CameraSetup& setup, BatchRenderer** renderer);
ds_status create_embree_renderer(const CameraSetup& setup, BatchRenderer** renderer);
ds_status create_vulkan_renderer(const CameraSetup& setup, BatchRenderer** renderer);

// A description for people ("Embree 4.3.2"). RENDERER, with the reason, if it cannot be used in this process.
ds_status describe_raycast_renderer(ds_renderer_info* info);
ds_status describe_embree_renderer(ds_renderer_info* info);
ds_status describe_vulkan_renderer(ds_renderer_info* info);

}  // namespace doorstep
