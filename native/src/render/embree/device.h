// Embree's device and the data that all its scenes share.
#pragma once

#include "doorstep.h"
#include "render/embree/embree.h"

namespace doorstep {

// One per process, created on first use. It starts no threads and reads no configuration files.
struct EmbreeDevice {
    RTCDevice device;
    RTCScene agent_mesh;  // agent_mesh() in its own frame, with the same triangle numbers
    int32_t version;      // 40302 is 4.3.2
};

// RENDERER or OUT_OF_MEMORY on failure; the next call tries again.
ds_status get_embree_device(const EmbreeDevice** device);

// The error of this thread's latest Embree calls, as a status with an error; what: "build a scene".
ds_status check_embree(RTCDevice device, const char* what);
ds_status fail_embree(RTCError error, const char* what);

// Embree's callback for packets of eight rays that hit the agent's mesh: rejects hits from inside. In object_hits.cpp.
void leave_back_faces(const RTCFilterFunctionNArguments* arguments);

}  // namespace doorstep
