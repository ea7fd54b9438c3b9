// Vectors and unit quaternions (w, x, y, z). Right-handed, z up.
#pragma once

#include "math/base.h"

namespace doorstep {

struct Vec3 {
    float x, y, z;
};

struct Quat {
    float w, x, y, z;
};

DS_INLINE Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
DS_INLINE Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
DS_INLINE Vec3 operator-(Vec3 a) { return {-a.x, -a.y, -a.z}; }
DS_INLINE Vec3 operator*(Vec3 a, float s) { return {a.x * s, a.y * s, a.z * s}; }
DS_INLINE float dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
DS_INLINE float length(Vec3 a) { return square_root(dot(a, a)); }
DS_INLINE Vec3 cross(Vec3 a, Vec3 b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

DS_INLINE Quat conjugate(Quat q) { return {q.w, -q.x, -q.y, -q.z}; }
DS_INLINE Quat operator*(Quat a, Quat b) {
    return {a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
            a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}
DS_INLINE Quat normalize(Quat q) {
    const float scale = 1.f / square_root(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z);
    return {q.w * scale, q.x * scale, q.y * scale, q.z * scale};
}

// The same for a quaternion that is nearly a unit: no division unless it is far off. With e = |q|^2 - 1, the scale
// (1 + e)^(-1/2) is 1 - e/2 + 3 e^2/8 up to 5 e^3/16, which is below float precision for the e that results from
// turning by less than a tenth of a radian.
DS_INLINE Quat renormalize(Quat q) {
    constexpr float kNearlyUnit = 5e-3f;
    const float e = (q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z) - 1.f;
    if (!(absolute(e) < kNearlyUnit)) return normalize(q);
    const float scale = 1.f - e * (0.5f - 0.375f * e);
    return {q.w * scale, q.x * scale, q.y * scale, q.z * scale};
}

DS_INLINE Vec3 rotate(Quat q, Vec3 v) {
    const Vec3 axis{q.x, q.y, q.z};
    const Vec3 t = cross(axis, v) * 2.f;
    return v + t * q.w + cross(axis, t);
}
DS_INLINE Vec3 rotate_inverse(Quat q, Vec3 v) { return rotate(conjugate(q), v); }

// q turned by the small world-axes rotation vector `turn`, first order, normalised.
DS_INLINE Quat turned(Quat q, Vec3 turn) {
    const Vec3 d = turn * 0.5f;
    return renormalize({q.w - (d.x * q.x + d.y * q.y + d.z * q.z), q.x + (d.x * q.w + d.y * q.z - d.z * q.y),
                      q.y + (d.y * q.w + d.z * q.x - d.x * q.z), q.z + (d.z * q.w + d.x * q.y - d.y * q.x)});
}

// Cosine and sine of the yaw of a quaternion (w, 0, 0, z).
struct Heading {
    float cosine, sine;
};
DS_INLINE Heading heading_of(float w, float z) { return {1.f - 2.f * z * z, 2.f * w * z}; }
DS_INLINE Vec3 rotate(Heading h, Vec3 v) { return {h.cosine * v.x - h.sine * v.y, h.sine * v.x + h.cosine * v.y, v.z}; }
DS_INLINE Vec3 rotate_inverse(Heading h, Vec3 v) {
    return {h.cosine * v.x + h.sine * v.y, h.cosine * v.y - h.sine * v.x, v.z};
}

}  // namespace doorstep
