// Lidar: 30 horizontal rays per agent against all solid entities of its world.
//
// Rays i and i + 15 point in opposite directions, so 15 lines serve 30 rays. A box intersects a line in an interval
// [enter, leave]: the forward ray hits it at enter if that is positive, the backward ray at -leave if that is. Per line
// and direction the nearest hit is stored as one unsigned integer: the bit pattern of the distance with its three
// lowest bits replaced by the entity kind (which changes the distance by less than one part in a million). Bit patterns
// of nonnegative floats order as the floats do; those of negative floats are larger, and so is the all-ones pattern of
// an empty interval. The nearest hit is therefore an unsigned minimum.
//
// Entities are skipped if no ray can reach their y-range, given the hits found so far. Statics near the agent are
// tested first, because they limit the reach most. The order does not change the result.
#pragma once

#include "sim/items.h"
#include "sim/lidar_directions.h"
#include "sim/static_lanes.h"

namespace doorstep {

constexpr uint32_t kKindBits = 7;
constexpr uint32_t kSignBit = 0x80000000u;
constexpr float kLidarNear = 12.5f;  // statics within this along y are tested first; affects speed only

// Some or all lines of one agent: Vectors of lanes.
template <FloatLanes Float, int Vectors>
struct LidarLines {
    using F = Float;
    static constexpr int kVectors = Vectors;
    using Bits = typename Float::Bits;
    Float x[kVectors], y[kVectors];                  // direction, world axes, no component exactly zero
    Float inverse_x[kVectors], inverse_y[kVectors];
    Bits forward[kVectors], backward[kVectors];      // nearest hits
};

template <FloatLanes Float>
DS_INLINE Float away_from_zero(Float a) {
    return select(Float(kTinyDirection) < absolute(a), a, Float(kTinyDirection));
}

// The lines from `first` on.
template <class Lines>
DS_INLINE Lines aim_lines(Heading heading, int first) {
    using Float = typename Lines::F;
    Lines lines;
    const Float c(heading.cosine), s(heading.sine), one(1.f);
    for (int v = 0; v < Lines::kVectors; v++) {
        const Float x = Float::load(kLidarDirectionX + first + v * Float::kLanes);
        const Float y = Float::load(kLidarDirectionY + first + v * Float::kLanes);
        lines.x[v] = away_from_zero(x * c - y * s);
        lines.y[v] = away_from_zero(x * s + y * c);
        lines.inverse_x[v] = one / lines.x[v];
        lines.inverse_y[v] = one / lines.y[v];
        lines.forward[v] = lines.backward[v] = bits_of(Float(kLidarRange));
    }
    return lines;
}

template <class Lines, class Float>
DS_INLINE void hit(Lines& lines, int v, Float enter, Float leave, uint32_t kind) {
    const auto clear = all_lanes(Float(), ~kKindBits), sign = all_lanes(Float(), kSignBit);
    const auto mark = mask_bits(leave < enter) | all_lanes(Float(), kind);
    lines.forward[v] = minimum(lines.forward[v], (bits_of(enter) & clear) | mark);
    lines.backward[v] = minimum(lines.backward[v], ((bits_of(leave) ^ sign) & clear) | mark);
}

// Sides of statics relative to the rays' origin.
template <FloatLanes Float>
struct LidarSides {
    Float min_x, max_x, min_y, max_y;
};

template <FloatLanes Float>
DS_INLINE LidarSides<Float> sides_from(const StaticLanes<Float>& s, Vec3 origin) {
    const Float x(origin.x), y(origin.y);
    return {s.min_x - x, s.max_x - x, s.min_y - y, s.max_y - y};
}

// Looks at all statics, and hands their sides to found(lane, sides).
template <FloatLanes Float, class W, class Found>
DS_INLINE StaticsInSight look_at_statics(const W& world, Vec3 origin, const Found& found) {
    const Float z(origin.z), range(kLidarNear);
    StaticsInSight sight{0, 0};
    DS_ROLLED
    for (int lane = 0; lane < W::kStatics; lane += Float::kLanes) {
        const StaticLanes<Float> s = load_statics<Float>(world, lane);
        const LidarSides<Float> sides = sides_from(s, origin);
        const auto solid = (s.bottom < z) & (z < s.top);
        const auto near = (sides.min_y < range) & (-range < sides.max_y);
        sight.solid |= lane_bits(solid) << lane;
        sight.near |= lane_bits(solid & near) << lane;
        found(lane, sides);
    }
    return sight;
}

template <class Lines>
DS_INLINE void cast_at_static(Lines& lines, const LidarSides<NarrowFloat>& sides, uint32_t kind) {
    using Float = typename Lines::F;
    const Float min_x(sides.min_x.v), max_x(sides.max_x.v), min_y(sides.min_y.v), max_y(sides.max_y.v);
    for (int v = 0; v < Lines::kVectors; v++) {
        const Float ax = min_x * lines.inverse_x[v], bx = max_x * lines.inverse_x[v];
        const Float ay = min_y * lines.inverse_y[v], by = max_y * lines.inverse_y[v];
        const Float enter = maximum(minimum(ax, bx), minimum(ay, by));
        const Float leave = minimum(maximum(ax, bx), maximum(ay, by));
        hit(lines, v, enter, leave, kind);
    }
}

// How far rays reach along y in both directions, given the hits so far: [down, up].
struct Span {
    float down, up;
};

template <class Lines>
DS_INLINE Span reach_along_y(const Lines& lines) {
    using Float = typename Lines::F;
    Float up(0.f), down(0.f);
    for (int v = 0; v < Lines::kVectors; v++) {
        const Float ahead = float_of(lines.forward[v]) * lines.y[v], behind = float_of(lines.backward[v]) * lines.y[v];
        up = maximum(up, maximum(ahead, -behind));
        down = maximum(down, maximum(-ahead, behind));
    }
    return {-largest_lane(down), largest_lane(up)};
}

// The sides of all statics of a world, for lanes: computed once for all lines of an agent.
template <FloatLanes Float, class W>
struct StaticTable {
    alignas(32) float min_x[W::kStaticLanes], max_x[W::kStaticLanes], min_y[W::kStaticLanes], max_y[W::kStaticLanes];

    DS_METHOD void set(int lane, const LidarSides<Float>& sides) {
        sides.min_x.store(min_x + lane);
        sides.max_x.store(max_x + lane);
        sides.min_y.store(min_y + lane);
        sides.max_y.store(max_y + lane);
    }
    DS_METHOD LidarSides<NarrowFloat> sides(int i) const { return {min_x[i], max_x[i], min_y[i], max_y[i]}; }
    // Bits of the statics that rays reach.
    DS_METHOD uint32_t in_span(Span span) const {
        const Float down(span.down), up(span.up);
        uint32_t bits = 0;
        for (int lane = 0; lane < W::kStatics; lane += Float::kLanes)
            bits |= lane_bits((Float::load(min_y + lane) <= up) & (down <= Float::load(max_y + lane))) << lane;
        return bits;
    }
    static DS_METHOD bool is_reached(const LidarSides<NarrowFloat>&, Span) { return true; }
};

// The same for a single line: computed where they are needed, so that a CUDA thread keeps no table.
template <class W>
struct LoadedStatics {
    const W& world;
    Vec3 origin;

    DS_METHOD LidarSides<NarrowFloat> sides(int i) const {
        return sides_from(load_statics<NarrowFloat>(world, i), origin);
    }
    static DS_METHOD uint32_t in_span(Span) { return ~0u; }
    static DS_METHOD bool is_reached(const LidarSides<NarrowFloat>& sides, Span span) {
        return sides.min_y.v <= span.up && span.down <= sides.max_y.v;
    }
};

template <class Lines, class Statics, class W>
DS_INLINE void cast_at_statics(Lines& lines, const W& world, const Statics& statics, uint32_t bits, Span span) {
    DS_ROLLED
    while (bits) {
        const int i = take_lowest_bit(bits);
        const LidarSides<NarrowFloat> sides = statics.sides(i);
        if (!Statics::is_reached(sides, span)) continue;
        cast_at_static(lines, sides, static_cast<uint32_t>(world.statics.kind[i]));
    }
}

// Whether the bounds of bodies overlap the rays' height and span. Lanes run over bodies.
template <FloatLanes Float, class W>
DS_INLINE typename Float::Mask is_body_in_span(const W& world, int lane, Vec3 origin, Span span) {
    const Float low(origin.y + span.down), high(origin.y + span.up), z(origin.z);
    return (Float::load(world.bodies.min_y + lane) <= high) & (low <= Float::load(world.bodies.max_y + lane)) &
           (Float::load(world.bodies.min_z + lane) < z);
}

// Whether any ray comes within `radius` of a point before its nearest hit so far.
template <class Lines>
DS_INLINE bool may_hit_circle(const Lines& lines, Vec3 center, float radius) {
    using Float = typename Lines::F;
    const Float x(center.x), y(center.y), r(radius), r2(radius * radius);
    typename Float::Mask near = r < Float(0.f);
    for (int v = 0; v < Lines::kVectors; v++) {
        const Float across = lines.x[v] * y - lines.y[v] * x, along = lines.x[v] * x + lines.y[v] * y;
        const Float farthest = maximum(float_of(lines.forward[v]), float_of(lines.backward[v]));
        near = near | ((across * across < r2) & (absolute(along) - r < farthest));
    }
    return any(near);
}

// An upright box with a yaw.
template <class Lines>
DS_INLINE void cast_at_upright(Lines& lines, float x, float y, Heading heading, float half, uint32_t kind) {
    using Float = typename Lines::F;
    const Float c(heading.cosine), s(heading.sine), one(1.f);
    // Origin of the rays, in the box's frame
    const float ox = -(heading.cosine * x + heading.sine * y), oy = heading.sine * x - heading.cosine * y;
    const Float min_x(-half - ox), max_x(half - ox), min_y(-half - oy), max_y(half - oy);
    for (int v = 0; v < Lines::kVectors; v++) {
        const Float ix = one / away_from_zero(c * lines.x[v] + s * lines.y[v]);
        const Float iy = one / away_from_zero(c * lines.y[v] - s * lines.x[v]);
        const Float ax = min_x * ix, bx = max_x * ix, ay = min_y * iy, by = max_y * iy;
        hit(lines, v, maximum(minimum(ax, bx), minimum(ay, by)), minimum(maximum(ax, bx), maximum(ay, by)), kind);
    }
}

// Any box: slabs along its three axes; horizontal rays use only the axes' x and y components.
template <class Lines>
DS_INLINE void cast_at_tilted(Lines& lines, Vec3 center, Quat rotation, float half, uint32_t kind) {
    using Float = typename Lines::F;
    const Vec3 origin = rotate_inverse(rotation, -center);
    const Vec3 ux = rotate_inverse(rotation, Vec3{1.f, 0.f, 0.f}), uy = rotate_inverse(rotation, Vec3{0.f, 1.f, 0.f});
    const float origins[3] = {origin.x, origin.y, origin.z};
    const float axis_x[3] = {ux.x, ux.y, ux.z}, axis_y[3] = {uy.x, uy.y, uy.z};
    for (int v = 0; v < Lines::kVectors; v++) {
        Float enter(-1e30f), leave(1e30f);
        for (int k = 0; k < 3; k++) {
            const Float along = away_from_zero(Float(axis_x[k]) * lines.x[v] + Float(axis_y[k]) * lines.y[v]);
            const Float inverse = Float(1.f) / along;
            const Float a = Float(-half - origins[k]) * inverse, b = Float(half - origins[k]) * inverse;
            enter = maximum(enter, minimum(a, b));
            leave = minimum(leave, maximum(a, b));
        }
        hit(lines, v, enter, leave, kind);
    }
}

template <class Lines, class W>
DS_INLINE void cast_at_body(Lines& lines, const W& world, int i, Vec3 origin) {
    const Vec3 center = world.bodies.position(i) - origin;
    const bool is_agent = i < W::kAgents;
    const float half = is_agent ? kAgentHalfExtent : kCubeHalfExtent;
    constexpr float kDiagonal = 1.7321f;
    if (!is_agent && !may_hit_circle(lines, center, kCubeHalfExtent * kDiagonal)) return;
    const uint32_t kind = static_cast<uint32_t>(world.bodies.kind[i]);
    const Quat rotation = world.bodies.rotation(i);
    if (!is_agent && tilt_of(rotation) > kExactlyUpright) {
        cast_at_tilted(lines, center, rotation, half, kind);
        return;
    }
    const float top = is_agent ? center.z + 2.f * half : center.z + half;
    if (top > 0.f) cast_at_upright(lines, center.x, center.y, heading_of(rotation.w, rotation.z), half, kind);
}

// All bodies except the agent's own. A thread, with one body per lane, needs no bits of those in the span.
template <class Lines, class W>
DS_INLINE void cast_at_bodies(Lines& lines, const W& world, int agent, Vec3 origin, Span span) {
    using Float = typename Lines::F;
    if constexpr (Float::kLanes == 1) {
        DS_ROLLED
        for (int i = 0; i < W::kBodies; i++)
            if (i != agent && is_body_in_span<Float>(world, i, origin, span).v) cast_at_body(lines, world, i, origin);
    } else {
        uint32_t bits = 0;
        for (int lane = 0; lane < W::kBodyLanes; lane += Float::kLanes)
            bits |= lane_bits(is_body_in_span<Float>(world, lane, origin, span)) << lane;
        bits &= low_bits(W::kBodies) & ~(1u << agent);
        while (bits) cast_at_body(lines, world, take_lowest_bit(bits), origin);
    }
}

constexpr float kKindCodes[8] = {0.f, 1.f / 6.f, 2.f / 6.f, 3.f / 6.f, 4.f / 6.f, 5.f / 6.f, 0.f, 0.f};  // kind / 6

// Distance / 40 and kind / 6 of the nearest hits of a vector.
template <FloatLanes Float>
struct LidarHits {
    Float distance, code;
};
template <FloatLanes Float>
DS_INLINE LidarHits<Float> decode_hits(typename Float::Bits hits) {
    const Float code = look_up(kKindCodes, hits & all_lanes(Float(), kKindBits));
    const Float distance = float_of(hits & all_lanes(Float(), ~kKindBits)) * Float(kDistanceScale);
    return {zero_unless(Float(0.f) < code, distance), code};
}

// One direction of the first `count` lines: a pair each.
template <class Lines>
DS_INLINE void write_hits(const typename Lines::F::Bits* hits, int count, float* out) {
    using Float = typename Lines::F;
    for (int v = 0; v < Lines::kVectors; v++) {
        const int first = v * Float::kLanes, left = count - first;
        const auto decoded = decode_hits<Float>(hits[v]);
        store_pairs(decoded.distance, decoded.code, out + 2 * first, left < Float::kLanes ? left : Float::kLanes);
    }
}

template <class W>
DS_INLINE Vec3 lidar_origin(const W& world, int agent) {
    return world.bodies.position(agent) + Vec3{0.f, 0.f, kHoldHeight};
}

template <class W>
DS_INLINE StaticsInSight statics_in_sight(const W& world, int agent) {
    return look_at_statics<NarrowFloat>(world, lidar_origin(world, agent), [](int, const auto&) {});
}

// Casts `count` of an agent's lines, from `first` on.
template <class Lines, class Statics, class W>
DS_INLINE void cast_lines(const W& world, int agent, int first, int count, StaticsInSight sight, const Statics& statics,
                          float* out) {
    constexpr Span kEverywhere = {-1e30f, 1e30f};
    const Vec3 origin = lidar_origin(world, agent);
    Lines lines = aim_lines<Lines>(world.bodies.heading(agent), first);
    cast_at_statics(lines, world, statics, sight.near, kEverywhere);
    const Span span = reach_along_y(lines);
    cast_at_statics(lines, world, statics, sight.solid & ~sight.near & statics.in_span(span), span);
    cast_at_bodies(lines, world, agent, origin, span);
    write_hits<Lines>(lines.forward, count, out + 2 * first);
    write_hits<Lines>(lines.backward, count, out + 2 * (first + kLidarLines));
}

// All lines of an agent, as lanes.
template <FloatLanes Float, class W>
DS_INLINE void cast_agent_lidar(const W& world, int agent, float* out) {
    StaticTable<Float, W> statics;
    const StaticsInSight sight =
        look_at_statics<Float>(world, lidar_origin(world, agent),
                               [&](int lane, const LidarSides<Float>& sides) { statics.set(lane, sides); });
    cast_lines<LidarLines<Float, 16 / Float::kLanes>>(world, agent, 0, kLidarLines, sight, statics, out);
}

// A single line, for one CUDA thread. sight: statics_in_sight(), the same for all lines of the agent.
template <class W>
DS_INLINE void cast_line(const W& world, int agent, int line, StaticsInSight sight, float* out) {
    const LoadedStatics<W> statics{world, lidar_origin(world, agent)};
    cast_lines<LidarLines<NarrowFloat, 1>>(world, agent, line, 1, sight, statics, out);
}

// The lines of an item: one of a thread, all of an agent where lanes are vectors.
template <FloatLanes Float, class W>
DS_INLINE void cast_item(const W& world, LineIndex line, StaticsInSight sight, float* out) {
    DS_ASSERT(line.line >= 0 && line.line < kLidarLines);
    if constexpr (Float::kLanes == 1) cast_line(world, line.agent, line.line, sight, out);
    else cast_agent_lidar<Float>(world, line.agent, out);
}

}  // namespace doorstep
