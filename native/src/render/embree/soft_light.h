// Soft shadows, and corners that are darker: how much of the sun and of the sky the objects around a point leave. Both
// are computed from the boxes of the objects instead of sampled with rays: they are free of noise, equal on every
// machine, and take less time. Agents are boxes with round edges here.
//
// Compiled for AVX2.
#pragma once

#include "doorstep_render.h"
#include "render/embree/lane_vector.h"
#include "render/scene/scene.h"

namespace doorstep {

// A box, whose half extents are core + radius.
struct Occluder {
    Vec3 centre;
    Vec3 axis_x, axis_y, axis_z;
    Vec3 core;
    float radius;
    Vec3 side;        // core with the signs of the sun's direction in the box's axes
    Vec3 inverse;     // of that direction
    Vec3 gap;         // distance between two silhouette edges per distance along the ray; edges along z, x, y
    float u, v;       // of the centre across the sun's direction
    float half_u, half_v;      // no point farther away lies in its shadow
    float reach_x, reach_y;    // no point farther away loses light from the sky
    float breadth;
};

class SoftLight {
public:
    SoftLight() = default;
    ~SoftLight() { delete[] occluders_; }
    SoftLight(const SoftLight&) = delete;

    // false: no memory.
    bool create(const ds_picture_config& config, int capacity);
    // Objects are numbered in the order in which they are added.
    void add(const Object& object);

    // 0 .. 1. own: the number of the object that a point belongs to, or -1.
    Lanes sun(const LaneVector& points, Lanes own) const;
    Lanes sky(const LaneVector& points, const LaneVector& normals, Lanes own) const;

private:
    Occluder* occluders_ = nullptr;
    int count_ = 0;
    Vec3 to_sun_{}, across_u_{}, across_v_{};
    float sun_radius_ = 0.f, reach_ = 0.f;
};

}  // namespace doorstep
