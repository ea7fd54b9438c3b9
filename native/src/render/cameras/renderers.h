// Renderers of cameras, each in its own folder: what they are given, what they do, and the list of them.
#pragma once

#include <stdint.h>

#include "doorstep/rooms.h"
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

    // On the host: a tensor by its ds_camera_tensor_id.
    void* address(int tensor) const {
        void* const all[DS_CAMERA_TENSOR_COUNT] = {rgb, depth, segmentation, normals};
        return all[tensor];
    }
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

// The two functions of each renderer's folder, create_raycast_renderer() and so on. The first creates a renderer with
// `new`; a failure sets the thread's error (RENDERER, SHADER, OUT_OF_MEMORY, ...) and leaks nothing. The second writes
// a description for people ("Embree 4.3.2"), or fails with RENDERER and the reason if it cannot be used here.
#define DS_RENDERER_FUNCTIONS(NAME, name, number, simulators, materials, sentence)                  \
    ds_status create_##name##_renderer(const CameraSetup& setup, BatchRenderer** renderer);         \
    ds_status describe_##name##_renderer(ds_renderer_info* info);
DS_RENDERER_TABLE(DS_RENDERER_FUNCTIONS)
#undef DS_RENDERER_FUNCTIONS

// A row of DS_RENDERER_TABLE with its functions.
struct RendererRow {
    ds_renderer number;
    const char* name;
    bool draws_cuda;  // simulators on CUDA, too
    bool takes_materials;
    ds_status (*create)(const CameraSetup& setup, BatchRenderer** renderer);
    ds_status (*describe)(ds_renderer_info* info);
};

// number: a ds_renderer; AUTO is the first row.
const RendererRow& find_renderer(int32_t number);

}  // namespace doorstep
