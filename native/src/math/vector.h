// Vectors and unit quaternions (w, x, y, z), of floats or of lanes of them. Right-handed, z up.
#pragma once

#include "math/lanes.h"

namespace doorstep {

template <class Number>
struct Vec3Of {
    using Scale = Number;
    Number x, y, z;
};
using Vec3 = Vec3Of<float>;

template <class Number>
struct QuatOf {
    Number w, x, y, z;
};
using Quat = QuatOf<float>;

template <class N>
DS_INLINE Vec3Of<N> operator+(Vec3Of<N> a, Vec3Of<N> b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
template <class N>
DS_INLINE Vec3Of<N> operator-(Vec3Of<N> a, Vec3Of<N> b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
template <class N>
DS_INLINE Vec3Of<N> operator-(Vec3Of<N> a) { return {-a.x, -a.y, -a.z}; }
template <class N>
DS_INLINE Vec3Of<N> operator*(Vec3Of<N> a, typename Vec3Of<N>::Scale s) { return {a.x * s, a.y * s, a.z * s}; }
template <class N>
DS_INLINE N dot(Vec3Of<N> a, Vec3Of<N> b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
DS_INLINE float length(Vec3 a) { return square_root(dot(a, a)); }
template <class N>
DS_INLINE Vec3Of<N> cross(Vec3Of<N> a, Vec3Of<N> b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

template <class Mask, class N>
DS_INLINE Vec3Of<N> select(Mask mask, Vec3Of<N> yes, Vec3Of<N> no) {
    return {select(mask, yes.x, no.x), select(mask, yes.y, no.y), select(mask, yes.z, no.z)};
}
template <class Mask, class N>
DS_INLINE QuatOf<N> select(Mask mask, QuatOf<N> yes, QuatOf<N> no) {
    return {select(mask, yes.w, no.w), select(mask, yes.x, no.x), select(mask, yes.y, no.y), select(mask, yes.z, no.z)};
}
template <class Mask, class N>
DS_INLINE Vec3Of<N> zero_unless(Mask mask, Vec3Of<N> v) {
    return {zero_unless(mask, v.x), zero_unless(mask, v.y), zero_unless(mask, v.z)};
}

template <class N>
DS_INLINE QuatOf<N> conjugate(QuatOf<N> q) { return {q.w, -q.x, -q.y, -q.z}; }
template <class N>
DS_INLINE QuatOf<N> operator*(QuatOf<N> a, QuatOf<N> b) {
    return {a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
            a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
}
template <class N>
DS_INLINE N length2(QuatOf<N> q) { return q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z; }
template <class N>
DS_INLINE QuatOf<N> scaled(QuatOf<N> q, N scale) { return {q.w * scale, q.x * scale, q.y * scale, q.z * scale}; }
template <class N = float>
DS_INLINE QuatOf<N> normalize(QuatOf<N> q) { return scaled(q, N(1.f) / square_root(length2(q))); }

// The same for a quaternion that is nearly a unit: no division unless it is far off. With e = |q|^2 - 1, the scale
// (1 + e)^(-1/2) is 1 - e/2 + 3 e^2/8 up to 5 e^3/16, which is below float precision for the e that results from
// turning by less than a tenth of a radian. Not finite for a quaternion so small that its squares are not precise.
template <class N = float>
DS_INLINE QuatOf<N> renormalize(QuatOf<N> q) {
    constexpr float kNearlyUnit = 5e-3f, kLeastPrecise = 1.17549435e-38f;
    const N squares = length2(q), e = squares - N(1.f);
    const auto near = absolute(e) < N(kNearlyUnit);
    N scale = N(1.f) - e * (N(0.5f) - N(0.375f) * e);
    if (!all(near)) {
        const N precise = select(squares < N(kLeastPrecise), N(0.f), squares);
        scale = select(near, scale, N(1.f) / square_root(precise));
    }
    return scaled(q, scale);
}

template <class N>
DS_INLINE Vec3Of<N> rotate(QuatOf<N> q, Vec3Of<N> v) {
    const Vec3Of<N> axis{q.x, q.y, q.z};
    const Vec3Of<N> t = cross(axis, v) * N(2.f);
    return v + t * q.w + cross(axis, t);
}
template <class N>
DS_INLINE Vec3Of<N> rotate_inverse(QuatOf<N> q, Vec3Of<N> v) { return rotate(conjugate(q), v); }

// q turned by the small world-axes rotation vector `turn`, first order, normalised.
template <class N>
DS_INLINE QuatOf<N> turned(QuatOf<N> q, Vec3Of<N> turn) {
    const Vec3Of<N> d = turn * N(0.5f);
    return renormalize(QuatOf<N>{q.w - (d.x * q.x + d.y * q.y + d.z * q.z), q.x + (d.x * q.w + d.y * q.z - d.z * q.y),
                                 q.y + (d.y * q.w + d.z * q.x - d.x * q.z), q.z + (d.z * q.w + d.x * q.y - d.y * q.x)});
}

// Cosine and sine of the yaw of a quaternion (w, 0, 0, z).
template <class Number>
struct HeadingOf {
    Number cosine, sine;
};
using Heading = HeadingOf<float>;
template <class N>
DS_INLINE HeadingOf<N> heading_of(N w, N z) { return {N(1.f) - N(2.f) * z * z, N(2.f) * w * z}; }
template <class N>
DS_INLINE Vec3Of<N> rotate(HeadingOf<N> h, Vec3Of<N> v) {
    return {h.cosine * v.x - h.sine * v.y, h.sine * v.x + h.cosine * v.y, v.z};
}
template <class N>
DS_INLINE Vec3Of<N> rotate_inverse(HeadingOf<N> h, Vec3Of<N> v) {
    return {h.cosine * v.x + h.sine * v.y, h.cosine * v.y - h.sine * v.x, v.z};
}

}  // namespace doorstep
