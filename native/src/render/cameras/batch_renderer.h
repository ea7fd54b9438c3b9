// What draws the views of all worlds. One per set of cameras.
#pragma once

#include <stdint.h>

#include "doorstep.h"
#include "render/scene/camera.h"
#include "render/scene/objects.h"

namespace doorstep {

// Where views are written: [worlds, agents, height, width, components] each, on the simulator's device; null: not
// wanted. See DS_CAMERA_TENSOR_TABLE.
struct ViewTensors {
    uint8_t* rgb;
    float* depth;
    uint8_t* segmentation;
    float* normals;
};

// Everything that views are made of; plain data, also a kernel's parameter. An agent does not see itself.
struct Views {
    WorldFields fields;  // on the simulator's device
    int64_t num_worlds;
    CameraRig rig;
    ViewTensors tensors;
};

class BatchRenderer {
public:
    virtual ~BatchRenderer() = default;
    // Draws all views; allocates nothing. On CUDA it is only begun, on the turn's stream. On the CPU the turn's threads
    // are used, and everything is written on return. A failure has set the thread's error.
    virtual ds_status draw(const Views& views, const ds_turn& turn) = 0;
    // Of the device, for people.
    virtual const char* device_name() const = 0;
};

}  // namespace doorstep
