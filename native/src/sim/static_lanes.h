// Statics as lanes: bits of those that overlap a rectangle, a height, or a ray's height. Numbers of bodies as lanes.
#pragma once

#include "math/lanes.h"
#include "physics/solver.h"
#include "sim/world.h"

namespace doorstep {

template <class Float>
struct StaticLanes {
    Float min_x, max_x, min_y, max_y, bottom, top;
};

template <class Float, class W>
DS_INLINE StaticLanes<Float> load_statics(const W& world, int lane) {
    const Float half(0.5f);
    const Float x = Float::load(world.statics.x + lane), hx = half * Float::load(world.statics.size_x + lane);
    const Float y = Float::load(world.statics.y + lane), hy = half * Float::load(world.statics.size_y + lane);
    const Float z = Float::load(world.statics.z + lane), top = z + Float::load(world.statics.size_z + lane);
    // An unused slot has no height
    return {x - hx, x + hx, y - hy, y + hy, z, select(is_nonzero(Float(), world.statics.kind + lane), top, z)};
}

// One number for agents, another for cubes. Lanes run over bodies.
template <class Float, class W>
DS_INLINE Float for_bodies(const W& world, int lane, float of_agents, float of_cubes) {
    float numbers[Float::kLanes];
    for (int k = 0; k < Float::kLanes; k++) numbers[k] = world.is_agent(lane + k) ? of_agents : of_cubes;
    return Float::load(numbers);
}

// Whether any of these statics exists. Worlds that play the reference's levels only use all vectors of them.
template <class Float, class W>
DS_INLINE bool has_statics(const W& world, int lane) {
    return !W::kPlaysLevels || lane_bits(is_nonzero(Float(), world.statics.kind + lane)) != 0;
}

template <class W>
DS_INLINE StaticBox static_box(const W& world, int i) {
    const Vec3 half{0.5f * world.statics.size_x[i], 0.5f * world.statics.size_y[i], 0.5f * world.statics.size_z[i]};
    return {{world.statics.x[i], world.statics.y[i], world.statics.z[i] + half.z}, half};
}

struct Rectangle {
    float min_x, max_x, min_y, max_y;
};
DS_INLINE Rectangle grown(Rectangle r, float by) { return {r.min_x - by, r.max_x + by, r.min_y - by, r.max_y + by}; }
DS_INLINE bool overlap(Rectangle a, Rectangle b) {
    return a.min_x < b.max_x && b.min_x < a.max_x && a.min_y < b.max_y && b.min_y < a.max_y;
}
template <class Float>
DS_INLINE typename Float::Mask overlap(const StaticLanes<Float>& s, Rectangle r) {
    return (s.min_x < Float(r.max_x)) & (Float(r.min_x) < s.max_x) & (s.min_y < Float(r.max_y)) &
           (Float(r.min_y) < s.max_y);
}

// Bits of the statics above the floor whose sides overlap an area, at any height.
template <class Float, class W>
DS_INLINE uint32_t statics_in(const W& world, Rectangle area) {
    uint32_t bits = 0;
    DS_ROLLED
    for (int lane = 0; lane < W::kStaticLanes; lane += Float::kLanes) {
        if (!has_statics<Float>(world, lane)) continue;
        const StaticLanes<Float> s = load_statics<Float>(world, lane);
        bits |= lane_bits((Float(0.f) < s.top) & (s.bottom < s.top) & overlap(s, area)) << lane;
    }
    return bits & low_bits(W::kStatics);
}

}  // namespace doorstep
