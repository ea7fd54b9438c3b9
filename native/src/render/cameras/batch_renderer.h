// Draws the views of all worlds. One object per set of cameras.
#pragma once

#include <stdint.h>

#include "doorstep.h"
#include "render/scene/camera.h"
#include "render/scene/objects.h"

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

class BatchRenderer {
public:
    virtual ~BatchRenderer() = default;
    // Draws all views; allocates nothing. On CUDA it only begins the work, on the turn's stream. On the CPU it uses the
    // turn's threads, and everything is written on return. A failure has set the thread's error.
    virtual ds_status draw(const Views& views, const ds_turn& turn) = 0;
    // Name of the device, for people.
    virtual const char* device_name() const = 0;
};

}  // namespace doorstep
