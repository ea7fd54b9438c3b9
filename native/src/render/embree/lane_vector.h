// Eight vectors. Compiled for AVX2.
#pragma once

#include "math/lanes.h"
#include "math/vector.h"

namespace doorstep {

using Lanes = WideFloat;

struct LaneVector {
    Lanes x, y, z;
};

DS_INLINE LaneVector operator+(const LaneVector& a, const LaneVector& b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
DS_INLINE LaneVector operator-(const LaneVector& a, Vec3 b) {
    return {a.x - Lanes(b.x), a.y - Lanes(b.y), a.z - Lanes(b.z)};
}
DS_INLINE LaneVector operator*(const LaneVector& a, Lanes s) { return {a.x * s, a.y * s, a.z * s}; }
DS_INLINE Lanes dot(const LaneVector& a, Vec3 b) { return a.x * Lanes(b.x) + a.y * Lanes(b.y) + a.z * Lanes(b.z); }
DS_INLINE Lanes dot(const LaneVector& a, const LaneVector& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
DS_INLINE LaneVector broadcast(Vec3 a) { return {Lanes(a.x), Lanes(a.y), Lanes(a.z)}; }
DS_INLINE LaneVector select(WideMask mask, const LaneVector& yes, const LaneVector& no) {
    return {select(mask, yes.x, no.x), select(mask, yes.y, no.y), select(mask, yes.z, no.z)};
}
DS_INLINE LaneVector mix(const LaneVector& a, const LaneVector& b, Lanes share) {
    return a * (Lanes(1.f) - share) + b * share;
}
DS_INLINE Lanes clamped(Lanes a, Lanes low, Lanes high) { return minimum(maximum(a, low), high); }
DS_INLINE Lanes to_unit(Lanes a) { return clamped(a, Lanes(0.f), Lanes(1.f)); }

// Components along three unit axes.
DS_INLINE LaneVector along(const LaneVector& a, Vec3 x, Vec3 y, Vec3 z) { return {dot(a, x), dot(a, y), dot(a, z)}; }

}  // namespace doorstep
