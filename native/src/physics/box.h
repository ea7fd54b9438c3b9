// Oriented boxes and their axis-aligned bounds.
#pragma once

#include "math/vector.h"

namespace doorstep {

// For assertions: whether a squared length is about 1. Users may set infinite or NaN coordinates, which pass.
DS_INLINE bool may_be_unit(float length2) {
    constexpr float kTolerance = 1e-2f;
    return !is_finite(length2) || absolute(length2 - 1.f) <= kTolerance;
}

template <class Number>
struct BoxOf {
    Vec3Of<Number> center;
    Vec3Of<Number> axis[3];  // unit, right-handed
    Vec3Of<Number> half;     // half extents along the axes
};
using Box = BoxOf<float>;

struct Bounds {
    float min_x, max_x, min_y, max_y, min_z, max_z;
};

template <class N = float>
DS_INLINE BoxOf<N> upright_box(Vec3Of<N> center, HeadingOf<N> heading, Vec3Of<N> half) {
    const N zero(0.f), one(1.f);
    return {center,
            {{heading.cosine, heading.sine, zero}, {-heading.sine, heading.cosine, zero}, {zero, zero, one}},
            half};
}

template <class N>
DS_INLINE BoxOf<N> turned_box(Vec3Of<N> center, QuatOf<N> q, Vec3Of<N> half) {
    const N one(1.f), two(2.f);
    return {center,
            {{one - two * (q.y * q.y + q.z * q.z), two * (q.x * q.y + q.w * q.z), two * (q.x * q.z - q.w * q.y)},
             {two * (q.x * q.y - q.w * q.z), one - two * (q.x * q.x + q.z * q.z), two * (q.y * q.z + q.w * q.x)},
             {two * (q.x * q.z + q.w * q.y), two * (q.y * q.z - q.w * q.x), one - two * (q.x * q.x + q.y * q.y)}},
            half};
}

// Half extents of the bounds of a box.
template <class N>
DS_INLINE Vec3Of<N> reach_of(const BoxOf<N>& box) {
    const Vec3Of<N> a = box.axis[0], b = box.axis[1], c = box.axis[2], h = box.half;
    return {h.x * absolute(a.x) + h.y * absolute(b.x) + h.z * absolute(c.x),
            h.x * absolute(a.y) + h.y * absolute(b.y) + h.z * absolute(c.y),
            h.x * absolute(a.z) + h.y * absolute(b.z) + h.z * absolute(c.z)};
}

// Squared sine of half the tilt. Below kExactlyUpright a body is treated as upright everywhere.
template <class N>
DS_INLINE N tilt_of(QuatOf<N> q) { return q.x * q.x + q.y * q.y; }
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
