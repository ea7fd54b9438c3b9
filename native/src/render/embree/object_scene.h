// Embree's device, and the objects of one world as Embree traces them. All objects are primitives of one geometry:
// boxes are intersected directly, eight rays at a time, which takes 40% less time than tracing instances of a mesh of
// twelve triangles; for agents the rays are traced in the mesh that all scenes share. A scene is reused for one world
// after the other.
#pragma once

#include <stdint.h>

#include "doorstep/rooms.h"
#include "render/cameras/renderers.h"
#include "render/embree/embree.h"
#include "render/scene/meshes.h"
#include "render/scene/scene.h"

namespace doorstep {

// ---- The device

// A mesh in its own frame; the triangles of the scene have the mesh's numbers.
struct TracedMesh {
    RTCScene scene;
    const Mesh* mesh;
};

// One per process, created on first use. It starts no threads and reads no configuration files.
struct EmbreeDevice {
    RTCDevice device;
    TracedMesh agent;   // what cameras see
    TracedMesh figure;  // what pictures show
    int32_t version;    // 40302 is 4.3.2
};

// RENDERER or OUT_OF_MEMORY on failure; the next call tries again.
ds_status get_embree_device(const EmbreeDevice** device);

// The error of this thread's latest Embree calls, as a status with an error; what: "build a scene".
ds_status check_embree(RTCDevice device, const char* what);
ds_status fail_embree(RTCError error, const char* what);

// ---- A scene

// Data that accompanies rays. The context comes first: Embree passes its address to the callbacks.
struct ObjectQuery {
    RTCRayQueryContext context{{RTC_INVALID_GEOMETRY_ID}, {RTC_INVALID_GEOMETRY_ID}};
    int32_t hidden = -1;  // an object that these rays ignore
};

// User data of the callbacks.
struct TracedObjects {
    Object* objects;
    TracedMesh agent;
};

class ObjectScene {
public:
    ObjectScene() = default;
    ~ObjectScene();
    ObjectScene(const ObjectScene&) = delete;

    // Allocates room for so many objects, of which agents have this mesh. Here and in commit() the caller has a
    // MemoryMargin.
    ds_status create(int capacity, TracedMesh EmbreeDevice::*agent = &EmbreeDevice::agent);

    // To be filled in, without objects of kind NONE; rays are traced against the state at the latest commit.
    Object* objects() { return traced_.objects; }
    const Object* objects() const { return traced_.objects; }
    // Embree allocates memory for its tree and keeps it for the next commit.
    RTCError commit(int count);

    // Traces eight rays to their first hits nearer than tfar. For hits, tfar becomes the distance, geomID 0 (set it to
    // RTC_INVALID_GEOMETRY_ID before), primID the object, Ng the unit normal in world axes, u the material. `coherent`
    // rays are neighbours.
    void intersect(const int* valid, RTCRayHit8& rays, ObjectQuery& query, bool coherent) const;
    // Sets tfar to minus infinity for rays that any object blocks.
    void occluded(const int* valid, RTCRay8& rays, ObjectQuery& query) const;

private:
    TracedObjects traced_{};
    RTCDevice device_ = nullptr;
    RTCScene scene_ = nullptr;
    RTCGeometry geometry_ = nullptr;
};

// ---- Compiled for AVX2

// In object_hits.cpp. Embree's callbacks; user data: the TracedObjects.
void intersect_object(const RTCIntersectFunctionNArguments* arguments);
void occlude_by_object(const RTCOccludedFunctionNArguments* arguments);
// Embree's callback for packets of eight rays that hit the agent's mesh: rejects hits from inside.
void leave_back_faces(const RTCFilterFunctionNArguments* arguments);

// In embree_views.cpp. Draws the views of all agents of a world, with a scene that only this thread uses.
RTCError draw_world(const Views& views, int64_t world, ObjectScene& scene);

}  // namespace doorstep
