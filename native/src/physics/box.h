// Oriented boxes and their axis-aligned bounds.
#pragma once

#include "math/vector.h"

namespace doorstep {

// For assertions: whether a squared length is about 1. Users may set infinite or NaN coordinates, which pass.
DS_INLINE bool may_be_unit(float length2) {
    constexpr float kTolerance = 1e-2f;
    return !is_finite(length2) || absolute(length2 - 1.f) <= kTolerance;
}

struct Box {
    Vec3 center;
    Vec3 axis[3];  // unit, right-handed
    Vec3 half;     // half extents along the axes
};

struct Bounds {
    float min_x, max_x, min_y, max_y, min_z, max_z;
};

DS_INLINE Box upright_box(Vec3 center, Heading heading, Vec3 half) {
    return {center, {{heading.cosine, heading.sine, 0.f}, {-heading.sine, heading.cosine, 0.f}, {0.f, 0.f, 1.f}}, half};
}

DS_INLINE Box turned_box(Vec3 center, Quat q, Vec3 half) {
    return {center,
            {{1.f - 2.f * (q.y * q.y + q.z * q.z), 2.f * (q.x * q.y + q.w * q.z), 2.f * (q.x * q.z - q.w * q.y)},
             {2.f * (q.x * q.y - q.w * q.z), 1.f - 2.f * (q.x * q.x + q.z * q.z), 2.f * (q.y * q.z + q.w * q.x)},
             {2.f * (q.x * q.z + q.w * q.y), 2.f * (q.y * q.z - q.w * q.x), 1.f - 2.f * (q.x * q.x + q.y * q.y)}},
            half};
}

// Half extents of the bounds of a box.
DS_INLINE Vec3 reach_of(const Box& box) {
    const Vec3 a = box.axis[0], b = box.axis[1], c = box.axis[2], h = box.half;
    return {h.x * absolute(a.x) + h.y * absolute(b.x) + h.z * absolute(c.x),
            h.x * absolute(a.y) + h.y * absolute(b.y) + h.z * absolute(c.y),
            h.x * absolute(a.z) + h.y * absolute(b.z) + h.z * absolute(c.z)};
}

// Squared sine of half the tilt. Below kExactlyUpright a body is treated as upright everywhere.
DS_INLINE float tilt_of(Quat q) { return q.x * q.x + q.y * q.y; }
constexpr float kExactlyUpright = 1e-10f;

// Direction components closer to zero are set to this, so that slab tests need no special case.
constexpr float kTinyDirection = 1e-9f;

// Distance at which a ray enters a box centred at the origin of its own frame; -1 if it misses or starts inside.
DS_INLINE float ray_enters_box(Vec3 origin, Vec3 direction, Vec3 half) {
    const float origins[3] = {origin.x, origin.y, origin.z};
    const float directions[3] = {direction.x, direction.y, direction.z};
    const float halves[3] = {half.x, half.y, half.z};
    float enter = -1e30f, leave = 1e30f;
    for (int i = 0; i < 3; i++) {
        const float inverse = 1.f / (absolute(directions[i]) > kTinyDirection ? directions[i] : kTinyDirection);
        const float a = (-halves[i] - origins[i]) * inverse, b = (halves[i] - origins[i]) * inverse;
        enter = maximum(enter, minimum(a, b));
        leave = minimum(leave, maximum(a, b));
    }
    return enter > 0.f && enter <= leave ? enter : -1.f;
}

}  // namespace doorstep
