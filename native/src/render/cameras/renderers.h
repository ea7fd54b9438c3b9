// Renderers of cameras, each in its own folder: what they are given, what they do, and the list of them.
#pragma once

#include <stdint.h>

#include "doorstep.h"
#include "doorstep_render.h"
#include "render/scene/scene.h"

namespace doorstep {

// Where to write the views: [worlds, agents, height, width, components] each, on the simulator's device; null: not
// an output. See DS_CAMERA_TENSOR_TABLE.
struct ViewTensors {
    uint8_t* rgb;
    float* depth;
    uint8_t* segmentation;
    float* normals;
};

// All inputs and outputs of views; plain data, also a kernel's parameter. An agent does not see itself.
struct Views {
    WorldFields fields;  // on the simulator's device
    int64_t num_worlds;
    CameraRig rig;
    ViewTensors tensors;
};

// Draws the views of all worlds. One object per set of cameras.
class BatchRenderer {
public:
    virtual ~BatchRenderer() = default;
    // Draws all views; allocates nothing. On CUDA it only begins the work, on the turn's stream. On the CPU it uses the
    // turn's threads, and everything is written on return. A failure has set the thread's error.
    virtual ds_status draw(const Views& views, const ds_turn& turn) = 0;
    // Name of the device, for people.
    virtual const char* device_name() const = 0;
};

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
