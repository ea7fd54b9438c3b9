// Every test of pixels is a linear function on the image plane, the plane at depth 1 with u to the right and v up: the
// edges of a projected triangle or rectangle, and the inverse depth of a plane.
//
// Such a function is computed as u * x + (v * y + one), where each operation rounds. Rounding preserves order, so the
// result at any pixel of a rectangle lies between the results at its corners: tests of whole rectangles are exact, and
// skipping what they exclude changes no bit of a picture.
#pragma once

#include "math/vector.h"
#include "render/raycast/lane_tools.h"
#include "render/scene/scene.h"

namespace doorstep {

template <FloatLanes Float>
struct Linear {
    Float u, v, one;

    DS_METHOD Float at(Float x, Float y) const { return u * x + (v * y + one); }
};

template <FloatLanes Float>
DS_INLINE Linear<Float> operator*(Linear<Float> a, Float s) {
    return {a.u * s, a.v * s, a.one * s};
}
template <FloatLanes Float>
DS_INLINE Linear<Float> operator+(Linear<Float> a, Linear<Float> b) {
    return {a.u + b.u, a.v + b.v, a.one + b.one};
}
template <FloatLanes Float>
DS_INLINE Linear<Float> operator-(Linear<Float> a, Linear<Float> b) {
    return {a.u - b.u, a.v - b.v, a.one - b.one};
}

// The component of pixels' rays along a world direction.
template <FloatLanes Float>
DS_INLINE Linear<Float> along(const Camera& camera, Float x, Float y, Float z) {
    const auto dot = [&](Vec3 axis) { return x * Float(axis.x) + y * Float(axis.y) + z * Float(axis.z); };
    return {dot(camera.right), dot(camera.up), dot(camera.forward)};
}

// Many linear functions.
template <int Count>
struct LinearTable {
    alignas(32) float u[Count];
    alignas(32) float v[Count];
    alignas(32) float one[Count];

    template <FloatLanes Float>
    DS_METHOD Linear<Float> load(Float, int i) const {
        return {Float::load(u + i), Float::load(v + i), Float::load(one + i)};
    }
    // One of them, the same in all lanes.
    template <FloatLanes Float>
    DS_METHOD Linear<Float> spread(Float, int i) const {
        return {Float(u[i]), Float(v[i]), Float(one[i])};
    }
    template <FloatLanes Float>
    DS_METHOD void store(const Linear<Float>& function, int i) {
        function.u.store(u + i);
        function.v.store(v + i);
        function.one.store(one + i);
    }
};

// Pixel centres of a rectangle of pixels.
struct PixelArea {
    float left, right, bottom, top;
};

template <FloatLanes Float>
struct Extremes {
    Float least, most;
};

// Bounds of the function's values at the pixels of an area.
template <FloatLanes Float>
DS_INLINE Extremes<Float> extremes_of(const Linear<Float>& f, const PixelArea& area) {
    const Float a = f.u * Float(area.left), b = f.u * Float(area.right);
    const Float c = f.v * Float(area.bottom), d = f.v * Float(area.top);
    return {minimum(a, b) + (minimum(c, d) + f.one), maximum(a, b) + (maximum(c, d) + f.one)};
}

// Visible inverse depths. Beyond kFarPlane there is sky.
constexpr float kLeastInverse = 1.f / kFarPlane;
constexpr float kMostInverse = 1.f / kNearPlane;

}  // namespace doorstep
