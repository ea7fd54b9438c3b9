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
template <class Float, int Vectors>
struct LidarLines {
    using F = Float;
    static constexpr int kVectors = Vectors;
    using Bits = typename Float::Bits;
    Float x[kVectors], y[kVectors];                  // direction, world axes, no component exactly zero
    Float inverse_x[kVectors], inverse_y[kVectors];
    Bits forward[kVectors], backward[kVectors];      // nearest hits
};

template <class Float>
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

// A static's sides relative to the agent.
struct LidarBox {
    float min_x, max_x, min_y, max_y;
};

template <class Lines>
DS_INLINE void cast_at_static(Lines& lines, LidarBox box, uint32_t kind) {
    using Float = typename Lines::F;
    const Float min_x(box.min_x), max_x(box.max_x), min_y(box.min_y), max_y(box.max_y);
    for (int v = 0; v < Lines::kVectors; v++) {
        const Float ax = min_x * lines.inverse_x[v], bx = max_x * lines.inverse_x[v];
        const Float ay = min_y * lines.inverse_y[v], by = max_y * lines.inverse_y[v];
        const Float enter = maximum(minimum(ax, bx), minimum(ay, by));
        const Float leave = minimum(maximum(ax, bx), maximum(ay, by));
        hit(lines, v, enter, leave, kind);
    }
}

// Sides of all statics relative to the agent, and bits of those that a ray at its height can hit.
template <class W>
struct LidarStatics {
    alignas(32) float min_x[W::kStaticLanes], max_x[W::kStaticLanes], min_y[W::kStaticLanes], max_y[W::kStaticLanes];
    uint32_t solid, near;

    DS_METHOD LidarBox box(int i) const { return {min_x[i], max_x[i], min_y[i], max_y[i]}; }
};

template <class Float, class W>
DS_INLINE void relate_statics(const W& world, Vec3 origin, LidarStatics<W>& statics) {
    const Float x(origin.x), y(origin.y), z(origin.z), range(kLidarNear);
    statics.solid = statics.near = 0;
    for (int lane = 0; lane < W::kStaticLanes; lane += Float::kLanes) {
        const StaticLanes<Float> s = load_statics<Float>(world, lane);
        const Float front = s.min_y - y, back = s.max_y - y;
        (s.min_x - x).store(statics.min_x + lane);
        (s.max_x - x).store(statics.max_x + lane);
        front.store(statics.min_y + lane);
        back.store(statics.max_y + lane);
        statics.solid |= lane_bits((s.bottom < z) & (z < s.top)) << lane;
        statics.near |= lane_bits((front < range) & (-range < back)) << lane;
    }
    statics.near &= statics.solid;
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

template <class Float, class W>
DS_INLINE uint32_t statics_in_span(const LidarStatics<W>& statics, Span span) {
    const Float down(span.down), up(span.up);
    uint32_t bits = 0;
    for (int lane = 0; lane < W::kStaticLanes; lane += Float::kLanes)
        bits |= lane_bits((Float::load(statics.min_y + lane) <= up) & (down <= Float::load(statics.max_y + lane)))
                << lane;
    return bits & statics.solid;
}

// Bodies whose bounds overlap the rays' height and span. Lanes run over bodies.
template <class Float, class W>
DS_INLINE uint32_t bodies_in_span(const W& world, Vec3 origin, Span span) {
    const auto& bodies = world.bodies;
    const Float low(origin.y + span.down), high(origin.y + span.up), z(origin.z);
    uint32_t bits = 0;
    for (int lane = 0; lane < W::kBodyLanes; lane += Float::kLanes)
        bits |= lane_bits((Float::load(bodies.min_y + lane) <= high) & (low <= Float::load(bodies.max_y + lane)) &
                          (Float::load(bodies.min_z + lane) < z))
                << lane;
    return bits & ((1u << W::kBodies) - 1u);
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

constexpr float kKindCodes[8] = {0.f, 1.f / 6.f, 2.f / 6.f, 3.f / 6.f, 4.f / 6.f, 5.f / 6.f, 0.f, 0.f};  // kind / 6

// Distance / 40 and kind / 6 of the nearest hits of a vector.
template <class Float>
struct LidarHits {
    Float distance, code;
};
template <class Float>
DS_INLINE LidarHits<Float> decode_hits(typename Float::Bits hits) {
    const Float code = look_up(kKindCodes, hits & all_lanes(Float(), kKindBits));
    const Float distance = float_of(hits & all_lanes(Float(), ~kKindBits)) * Float(kDistanceScale);
    return {zero_unless(Float(0.f) < code, distance), code};
}

// One direction of all lines of an agent: 15 pairs.
template <class Lines>
DS_INLINE void write_hits(const typename Lines::F::Bits* hits, float* out) {
    using Float = typename Lines::F;
    for (int v = 0; v < Lines::kVectors; v++) {
        const int left = kLidarLines - v * Float::kLanes, count = left < Float::kLanes ? left : Float::kLanes;
        const auto decoded = decode_hits<Float>(hits[v]);
        store_pairs(decoded.distance, decoded.code, out + 2 * v * Float::kLanes, count);
    }
}

template <class W>
DS_INLINE Vec3 lidar_origin(const W& world, int agent) {
    return world.bodies.position(agent) + Vec3{0.f, 0.f, kHoldHeight};
}

// All lines of an agent at once.
template <class Float, class W>
DS_INLINE void cast_agent_lidar(const W& world, int agent, float* out) {
    using Lines = LidarLines<Float, 16 / Float::kLanes>;
    const Vec3 origin = lidar_origin(world, agent);
    Lines lines = aim_lines<Lines>(world.bodies.heading(agent), 0);
    LidarStatics<W> statics;
    relate_statics<Float>(world, origin, statics);
    for (uint32_t bits = statics.near; bits;) {
        const int i = take_lowest_bit(bits);
        cast_at_static(lines, statics.box(i), static_cast<uint32_t>(world.statics.kind[i]));
    }
    const Span span = reach_along_y(lines);
    for (uint32_t bits = statics_in_span<Float>(statics, span) & ~statics.near; bits;) {
        const int i = take_lowest_bit(bits);
        cast_at_static(lines, statics.box(i), static_cast<uint32_t>(world.statics.kind[i]));
    }
    for (uint32_t bits = bodies_in_span<Float>(world, origin, span) & ~(1u << agent); bits;)
        cast_at_body(lines, world, take_lowest_bit(bits), origin);
    write_hits<Lines>(lines.forward, out);
    write_hits<Lines>(lines.backward, out + 2 * kLidarLines);
}

// ---- A single line, for one CUDA thread

template <class W>
DS_INLINE StaticsInSight statics_in_sight(const W& world, int agent) {
    const Vec3 origin = lidar_origin(world, agent);
    StaticsInSight sight{0, 0};
    DS_ROLLED
    for (int i = 0; i < W::kStatics; i++) {
        const auto s = load_statics<NarrowFloat>(world, i);
        const auto solid = (s.bottom < origin.z) & (NarrowFloat(origin.z) < s.top);
        const auto near = (s.min_y - origin.y < kLidarNear) & (NarrowFloat(-kLidarNear) < s.max_y - origin.y);
        sight.solid |= lane_bits(solid) << i;
        sight.near |= lane_bits(solid & near) << i;
    }
    return sight;
}

// Tests a static unless it is beyond the line's reach along y.
template <class Lines, class W>
DS_INLINE void cast_at_static_in_span(Lines& lines, const W& world, int i, Vec3 origin, Span span) {
    const auto s = load_statics<NarrowFloat>(world, i);
    const LidarBox box{s.min_x.v - origin.x, s.max_x.v - origin.x, s.min_y.v - origin.y, s.max_y.v - origin.y};
    if (box.min_y <= span.up && span.down <= box.max_y)
        cast_at_static(lines, box, static_cast<uint32_t>(world.statics.kind[i]));
}

template <class W>
DS_INLINE void cast_line(const W& world, int agent, int line, StaticsInSight sight, float* out) {
    using Lines = LidarLines<NarrowFloat, 1>;
    const Vec3 origin = lidar_origin(world, agent);
    Lines lines = aim_lines<Lines>(world.bodies.heading(agent), line);
    Span span{-1e30f, 1e30f};
    DS_ROLLED
    for (uint32_t bits = sight.near; bits;) cast_at_static_in_span(lines, world, take_lowest_bit(bits), origin, span);
    span = reach_along_y(lines);
    DS_ROLLED
    for (uint32_t bits = sight.solid & ~sight.near; bits;)
        cast_at_static_in_span(lines, world, take_lowest_bit(bits), origin, span);
    DS_ROLLED
    for (int i = 0; i < W::kBodies; i++)
        if (i != agent && world.bodies.min_y[i] <= origin.y + span.up &&
            origin.y + span.down <= world.bodies.max_y[i] && world.bodies.min_z[i] < origin.z)
            cast_at_body(lines, world, i, origin);
    const auto forward = decode_hits<NarrowFloat>(lines.forward[0]);
    const auto backward = decode_hits<NarrowFloat>(lines.backward[0]);
    store_pairs(forward.distance, forward.code, out + 2 * line, 1);
    store_pairs(backward.distance, backward.code, out + 2 * (line + kLidarLines), 1);
}

// The lines of an item: one of a thread, all of an agent where lanes are vectors.
template <FloatLanes Float, class W>
DS_INLINE void cast_lines(const W& world, LineIndex line, StaticsInSight sight, float* out) {
    if constexpr (Float::kLanes == 1) cast_line(world, line.agent, line.line, sight, out);
    else cast_agent_lidar<Float>(world, line.agent, out);
}

}  // namespace doorstep
