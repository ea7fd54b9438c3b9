// Embree's device, and what all scenes on it share.
#pragma once

#include "doorstep.h"
#include "render/embree/embree.h"

namespace doorstep {

// One per process, made on first use. It starts no threads and reads no configuration files.
struct EmbreeDevice {
    RTCDevice device;
    RTCScene agent_mesh;  // agent_mesh() in its own frame; triangles are numbered as there
    int32_t version;      // 40302 is 4.3.2
};

// RENDERER or OUT_OF_MEMORY if it cannot be had; the next call tries again.
ds_status get_embree_device(const EmbreeDevice** device);

// What this thread's latest calls ended with, as a status with an error; what: "build a scene".
ds_status check_embree(RTCDevice device, const char* what);
ds_status fail_embree(RTCError error, const char* what);

// What Embree calls where packets of eight rays meet the agent's mesh: seen from inside it is not there. In
// object_hits.cpp.
void leave_back_faces(const RTCFilterFunctionNArguments* arguments);

}  // namespace doorstep
