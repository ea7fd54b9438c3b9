// Lidar: 30 horizontal rays per agent against all solid entities of its world.
//
// Rays i and i + 15 point in opposite directions, so 15 lines serve 30 rays. A box intersects a line in an interval
// [enter, leave]: the forward ray hits it at enter if that is positive, the backward ray at -leave if leave is
// negative. Per line and direction the nearest hit is stored as one integer: the bit pattern of enter or leave with its
// three lowest bits replaced by the entity kind (which changes the distance by less than one part in a million). A line
// with an empty interval misses the box. Bit patterns of nonnegative floats order as the floats do; as unsigned integers
// those of negative floats are larger, so the nearest hit ahead is an unsigned minimum. As signed integers those of
// negative floats order by distance, below those of positive floats: the nearest hit behind is a signed minimum.
//
// Entities are skipped if no ray can reach their y-range, given the hits found so far. Statics near the agent are
// tested first, because they limit the reach most. The order does not change the result.
#pragma once

#include "sim/items.h"
#include "sim/lidar_directions.h"
#include "sim/static_lanes.h"

namespace doorstep {

constexpr uint32_t kKindBits = 7;
constexpr float kLidarNear = 12.5f;  // statics within this along y are tested first; affects speed only

// How far rays reach along y in both directions.
struct Span {
    float down, up;
};

// Some or all lines of one agent: Vectors of lanes, each Step lines after the one before.
template <FloatLanes Float, int Vectors, int Step = Float::kLanes>
struct LidarLines {
    using F = Float;
    static constexpr int kVectors = Vectors, kStep = Step;
    using Bits = typename Float::Bits;
    Float x[kVectors], y[kVectors];              // direction, world axes, no component exactly zero
    Bits forward[kVectors], backward[kVectors];  // nearest hits; those of the backward rays as negative distances
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
    const Float c(heading.cosine), s(heading.sine);
    for (int v = 0; v < Lines::kVectors; v++) {
        const Float x = Float::load(kLidarDirectionX + first + v * Lines::kStep);
        const Float y = Float::load(kLidarDirectionY + first + v * Lines::kStep);
        lines.x[v] = away_from_zero(x * c - y * s);
        lines.y[v] = away_from_zero(x * s + y * c);
        lines.forward[v] = bits_of(Float(kLidarRange));
        lines.backward[v] = bits_of(Float(-kLidarRange));
    }
    return lines;
}

template <class Lines, class Float>
DS_INLINE void hit(Lines& lines, int v, Float enter, Float leave, uint32_t kind) {
    const auto clear = all_lanes(Float(), ~kKindBits);
    const auto marks = mark_unless(leave < enter, all_lanes(Float(), kind));
    lines.forward[v] = marked_minimum(lines.forward[v], bits_of(enter) & clear, marks);
    lines.backward[v] = signed_marked_minimum(lines.backward[v], bits_of(leave) & clear, marks);
}

// The lines of an agent, directed so that y grows along them: a box's smaller y is where they enter its slab.
template <class Lines>
struct UpwardLines : Lines {
    using Float = typename Lines::F;
    typename Float::Mask turned[Lines::kVectors];
    Float inverse_x[Lines::kVectors], inverse_y[Lines::kVectors];

    DS_METHOD explicit UpwardLines(const Lines& lines) : Lines(lines) {
        const Float zero(0.f), one(1.f);
        for (int v = 0; v < Lines::kVectors; v++) {
            const Float inverse = one / this->x[v];
            turned[v] = this->y[v] < zero;
            this->y[v] = absolute(this->y[v]);
            inverse_x[v] = select(turned[v], -inverse, inverse);
            inverse_y[v] = one / this->y[v];
        }
    }
    // How far rays reach along y in both directions, given the hits so far.
    DS_METHOD Span reach() const {
        Float up(0.f), down(0.f);
        for (int v = 0; v < Lines::kVectors; v++) {
            up = maximum(up, float_of(this->forward[v]) * this->y[v]);
            down = maximum(down, -float_of(this->backward[v]) * this->y[v]);
        }
        return {-largest_lane(down), largest_lane(up)};
    }
    // Gives the hits back to the lines.
    DS_METHOD void write_to(Lines& lines) const {
        for (int v = 0; v < Lines::kVectors; v++) {
            const Float ahead = float_of(this->forward[v]), behind = float_of(this->backward[v]);
            lines.forward[v] = bits_of(select(turned[v], -behind, ahead));
            lines.backward[v] = bits_of(select(turned[v], -ahead, behind));
        }
    }
};

// Sides of statics relative to the rays' origin.
template <FloatLanes Float>
struct LidarSides {
    Float min_x, max_x, min_y, max_y;  // min_y <= max_y
};

template <FloatLanes Float>
DS_INLINE LidarSides<Float> sides_from(const StaticLanes<Float>& s, Vec3 origin) {
    const Float x(origin.x), y(origin.y), front = s.min_y - y, back = s.max_y - y;
    return {s.min_x - x, s.max_x - x, minimum(front, back), maximum(front, back)};
}

// Looks at all statics, and hands their sides to found(lane, sides).
template <FloatLanes Float, class W, class Found>
DS_INLINE StaticsInSight look_at_statics(const W& world, Vec3 origin, const Found& found) {
    const Float z(origin.z), range(kLidarNear);
    StaticsInSight sight{0, 0};
    DS_ROLLED
    for (int lane = 0; lane < W::kStatics; lane += Float::kLanes) {
        if (!has_statics<Float>(world, lane)) continue;
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

// Where a line enters and leaves the space between two parallel planes, at low and high <= it along their axis.
template <FloatLanes Float>
struct Crossing {
    Float enter, leave;
};

// A thread chooses the near plane by the line's direction, which takes fewer instructions than a minimum and a maximum;
// vectors have an instruction for each of those. Both give the same bits: distances to both planes are only equal where
// the planes are.
template <FloatLanes Float>
DS_INLINE Crossing<Float> cross_between(Float low, Float high, Float inverse) {
    if constexpr (Float::kLanes == 1) {
        const auto ascends = Float(0.f) < inverse;
        return {select(ascends, low, high) * inverse, select(ascends, high, low) * inverse};
    } else {
        const Float a = low * inverse, b = high * inverse;
        return {minimum(a, b), maximum(a, b)};
    }
}

template <class Lines>
DS_INLINE void cast_at_static(UpwardLines<Lines>& lines, const LidarSides<NarrowFloat>& sides, uint32_t kind) {
    using Float = typename Lines::F;
    const Float min_x(sides.min_x.v), max_x(sides.max_x.v), min_y(sides.min_y.v), max_y(sides.max_y.v);
    for (int v = 0; v < Lines::kVectors; v++) {
        const Crossing<Float> x = cross_between(min_x, max_x, lines.inverse_x[v]);
        hit(lines, v, maximum(x.enter, min_y * lines.inverse_y[v]), minimum(x.leave, max_y * lines.inverse_y[v]), kind);
    }
}

// The sides of all statics of a world, for lanes: computed once for all lines of an agent.
template <FloatLanes Float, class W>
struct StaticTable {
    alignas(64) float min_x[W::kStaticLanes], max_x[W::kStaticLanes], min_y[W::kStaticLanes], max_y[W::kStaticLanes];

    DS_METHOD void set(int lane, const LidarSides<Float>& sides) {
        sides.min_x.store(min_x + lane);
        sides.max_x.store(max_x + lane);
        sides.min_y.store(min_y + lane);
        sides.max_y.store(max_y + lane);
    }
    DS_METHOD LidarSides<NarrowFloat> sides(int i) const { return {min_x[i], max_x[i], min_y[i], max_y[i]}; }
    // Those of some statics that rays reach.
    DS_METHOD uint32_t in_span(uint32_t some, Span span) const {
        const Float down(span.down), up(span.up);
        uint32_t bits = 0;
        for (int lane = 0; lane < W::kStatics; lane += Float::kLanes)
            if (some >> lane & low_bits(Float::kLanes))
                bits |= lane_bits((Float::load(min_y + lane) <= up) & (down <= Float::load(max_y + lane))) << lane;
        return some & bits;
    }
};

// The same for a thread's lines: computed where they are needed, so that it keeps no table.
template <class W>
struct LoadedStatics {
    const W& world;
    Vec3 origin;

    DS_METHOD LidarSides<NarrowFloat> sides(int i) const {
        const LidarSides<NarrowFloat> sides = sides_from(load_statics<NarrowFloat>(world, i), origin);
        return {minimum(sides.min_x, sides.max_x), maximum(sides.min_x, sides.max_x), sides.min_y, sides.max_y};
    }
    DS_METHOD uint32_t in_span(uint32_t some, Span span) const {
        uint32_t bits = 0;
        DS_ROLLED
        while (some) {
            const int i = take_lowest_bit(some);
            const LidarSides<NarrowFloat> at = sides(i);
            if (at.min_y.v <= span.up && span.down <= at.max_y.v) bits |= 1u << i;
        }
        return bits;
    }
};

// Threads of a warp, each of which takes the next of its own bits, wait only for the one with the most of them.
template <class Lines, class Statics, class W>
DS_INLINE void cast_at_statics(UpwardLines<Lines>& lines, const W& world, const Statics& statics, uint32_t bits) {
    DS_ROLLED
    while (bits) {
        const int i = take_lowest_bit(bits);
        cast_at_static(lines, statics.sides(i), static_cast<uint32_t>(world.statics.kind[i]));
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
        const Float farthest = maximum(float_of(lines.forward[v]), -float_of(lines.backward[v]));
        near = near | ((across * across < r2) & (absolute(along) - r < farthest));
    }
    return any(near);
}

template <class W>
DS_INLINE uint32_t kind_of_body(const W& world, int i) {
    return static_cast<uint32_t>(world.bodies.kind[i]);
}

// Upright boxes with a yaw: their headings, and their sides from the rays' origin, in their own frames.
template <FloatLanes Float>
struct YawedSides {
    Float cosine, sine, min_x, max_x, min_y, max_y;
};

// Of the bodies from `lane` on. Lanes run over bodies.
template <FloatLanes Float, class W>
DS_INLINE YawedSides<Float> yawed_sides(const W& world, int lane, Vec3 origin) {
    const auto& bodies = world.bodies;
    const Float w = Float::load(bodies.rotation_w + lane), z = Float::load(bodies.rotation_z + lane);
    const Float cosine = Float(1.f) - Float(2.f) * z * z, sine = Float(2.f) * w * z;
    const Float x = Float::load(bodies.x + W::kButtonLanes + lane) - Float(origin.x);
    const Float y = Float::load(bodies.y + W::kButtonLanes + lane) - Float(origin.y);
    const Float ox = -(cosine * x + sine * y), oy = sine * x - cosine * y;  // origin of the rays
    const Float half = for_bodies<Float>(world, lane, kAgentHalfExtent, kCubeHalfExtent);
    return {cosine, sine, -half - ox, half - ox, -half - oy, half - oy};
}

template <class Lines>
DS_INLINE void cast_at_upright(Lines& lines, const YawedSides<NarrowFloat>& box, uint32_t kind) {
    using Float = typename Lines::F;
    const Float c(box.cosine.v), s(box.sine.v), one(1.f);
    const Float min_x(box.min_x.v), max_x(box.max_x.v), min_y(box.min_y.v), max_y(box.max_y.v);
    for (int v = 0; v < Lines::kVectors; v++) {
        const Float ix = one / away_from_zero(c * lines.x[v] + s * lines.y[v]);
        const Float iy = one / away_from_zero(c * lines.y[v] - s * lines.x[v]);
        const Crossing<Float> x = cross_between(min_x, max_x, ix), y = cross_between(min_y, max_y, iy);
        hit(lines, v, maximum(x.enter, y.enter), minimum(x.leave, y.leave), kind);
    }
}

// Those of all bodies of a world, for lanes.
template <FloatLanes Float, class W>
struct YawedTable {
    const W& world;
    Vec3 origin;
    alignas(32) float rows[6][W::kBodyLanes];

    DS_METHOD YawedTable(const W& of, Vec3 rays) : world(of), origin(rays) {}
    DS_METHOD void fill(int lane) {
        const YawedSides<Float> sides = yawed_sides<Float>(world, lane, origin);
        const Float columns[6] = {sides.cosine, sides.sine, sides.min_x, sides.max_x, sides.min_y, sides.max_y};
        for (int k = 0; k < 6; k++) columns[k].store(rows[k] + lane);
    }
    DS_METHOD YawedSides<NarrowFloat> sides(int i) const {
        return {rows[0][i], rows[1][i], rows[2][i], rows[3][i], rows[4][i], rows[5][i]};
    }
};

// The same for a thread, which computes them where they are needed.
template <class W>
struct YawedTable<NarrowFloat, W> {
    const W& world;
    Vec3 origin;

    DS_METHOD YawedTable(const W& of, Vec3 rays) : world(of), origin(rays) {}
    DS_METHOD void fill(int) {}
    DS_METHOD YawedSides<NarrowFloat> sides(int i) const { return yawed_sides<NarrowFloat>(world, i, origin); }
};

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
            const Crossing<Float> axis = cross_between(Float(-half - origins[k]), Float(half - origins[k]), inverse);
            enter = maximum(enter, axis.enter);
            leave = minimum(leave, axis.leave);
        }
        hit(lines, v, enter, leave, kind);
    }
}

// Cubes that are not exactly upright. Lanes run over bodies.
template <FloatLanes Float, class W>
DS_INLINE typename Float::Mask is_tilted(const W& world, int lane) {
    const Float x = Float::load(world.bodies.rotation_x + lane), y = Float::load(world.bodies.rotation_y + lane);
    return for_bodies<Float>(world, lane, 1e30f, kExactlyUpright) < x * x + y * y;
}

// Upright bodies that reach up to the rays.
template <FloatLanes Float, class W>
DS_INLINE typename Float::Mask is_tall(const W& world, int lane, Vec3 origin) {
    const Float z = Float::load(world.bodies.z + W::kButtonLanes + lane) - Float(origin.z);
    return Float(0.f) < z + for_bodies<Float>(world, lane, 2.f * kAgentHalfExtent, kCubeHalfExtent);
}

template <class Lines, class W>
DS_INLINE void cast_at_tilted_cube(Lines& lines, const W& world, int i, Vec3 origin) {
    constexpr float kDiagonal = 1.7321f;
    const Vec3 center = world.bodies.position(i) - origin;
    if (may_hit_circle(lines, center, kCubeHalfExtent * kDiagonal))
        cast_at_tilted(lines, center, world.bodies.rotation(i), kCubeHalfExtent, kind_of_body(world, i));
}

// All bodies except the agent's own.
template <FloatLanes Float, class Lines, class W>
DS_INLINE void cast_at_bodies(Lines& lines, const W& world, int agent, Vec3 origin, Span span) {
    YawedTable<Float, W> table(world, origin);
    uint32_t upright = 0, tilted = 0;
    DS_ROLLED
    for (int lane = 0; lane < W::kMostBodies; lane += Float::kLanes) {
        const auto in_span = is_body_in_span<Float>(world, lane, origin, span);
        if (!any(in_span)) continue;
        const auto tilts = is_tilted<Float>(world, lane);
        upright |= lane_bits(in_span & is_tall<Float>(world, lane, origin) & ~tilts) << lane;
        tilted |= lane_bits(in_span & tilts) << lane;
        table.fill(lane);
    }
    const uint32_t others = low_bits(world.num_bodies()) & ~(1u << agent);
    DS_ROLLED
    for (uint32_t bits = upright & others; bits;) {
        const int i = take_lowest_bit(bits);
        cast_at_upright(lines, table.sides(i), kind_of_body(world, i));
    }
    DS_ROLLED
    for (uint32_t bits = tilted & others; bits;) cast_at_tilted_cube(lines, world, take_lowest_bit(bits), origin);
}

constexpr float kKindCodes[8] = {0.f, 1.f / 6.f, 2.f / 6.f, 3.f / 6.f, 4.f / 6.f, 5.f / 6.f, 0.f, 0.f};  // kind / 6

// Distance / 40 and kind / 6 of the nearest hits of a vector.
template <FloatLanes Float>
struct LidarHits {
    Float distance, code;
};
template <FloatLanes Float>
DS_INLINE LidarHits<Float> decode_hits(typename Float::Bits hits) {
    const Float code = look_up<8>(kKindCodes, hits & all_lanes(Float(), kKindBits));
    const Float distance = absolute(float_of(hits & all_lanes(Float(), ~kKindBits))) * Float(kDistanceScale);
    return {zero_unless(Float(0.f) < code, distance), code};
}

// One direction of the lines from `first` on: a pair each.
template <class Lines>
DS_INLINE void write_hits(const typename Lines::F::Bits* hits, int first, float* out) {
    using Float = typename Lines::F;
    for (int v = 0; v < Lines::kVectors; v++) {
        const int line = first + v * Lines::kStep, left = kLidarLines - line;
        const auto decoded = decode_hits<Float>(hits[v]);
        store_pairs(decoded.distance, decoded.code, out + 2 * line, left < Float::kLanes ? left : Float::kLanes);
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

// Casts an agent's lines from `first` on.
template <FloatLanes Float, class Lines, class Statics, class W>
DS_INLINE void cast_lines(const W& world, int agent, int first, StaticsInSight sight, const Statics& statics,
                          float* out) {
    const Vec3 origin = lidar_origin(world, agent);
    Lines lines = aim_lines<Lines>(world.bodies.heading(agent), first);
    UpwardLines<Lines> upward(lines);
    cast_at_statics(upward, world, statics, sight.near);
    const Span span = upward.reach();
    cast_at_statics(upward, world, statics, statics.in_span(sight.solid & ~sight.near, span));
    upward.write_to(lines);
    cast_at_bodies<Float>(lines, world, agent, origin, span);
    write_hits<Lines>(lines.forward, first, out);
    write_hits<Lines>(lines.backward, first, out + 2 * kLidarLines);
}

// All lines of an agent, and statics, as Wide lanes; bodies as those of Float.
template <FloatLanes Float, FloatLanes Wide, class W>
DS_INLINE void cast_agent_lidar(const W& world, int agent, float* out) {
    StaticTable<Wide, W> statics;
    const StaticsInSight sight =
        look_at_statics<Wide>(world, lidar_origin(world, agent),
                              [&](int lane, const LidarSides<Wide>& sides) { statics.set(lane, sides); });
    cast_lines<Float, LidarLines<Wide, 16 / Wide::kLanes>>(world, agent, 0, sight, statics, out);
}

// The lines of a CUDA thread, whose chains of minima run side by side. Neighbouring threads have neighbouring lines, so
// that they write to neighbouring places. sight: statics_in_sight(), the same for all lines of the agent.
template <class W>
DS_INLINE void cast_thread_lidar(const W& world, int agent, int first, StaticsInSight sight, float* out) {
    constexpr int kVectors = (kLidarLines + kLidarThreads - 1) / kLidarThreads;
    const LoadedStatics<W> statics{world, lidar_origin(world, agent)};
    cast_lines<NarrowFloat, LidarLines<NarrowFloat, kVectors, kLidarThreads>>(world, agent, first, sight, statics, out);
}

// The lines of an item: a few of a thread, all of an agent where lanes are vectors.
template <FloatLanes Float, FloatLanes Wide, class W>
DS_INLINE void cast_item(const W& world, LineIndex line, StaticsInSight sight, float* out) {
    DS_ASSERT(line.line >= 0 && line.line < kLidarLines);
    if constexpr (Float::kLanes == 1) cast_thread_lidar(world, line.agent, line.line, sight, out);
    else cast_agent_lidar<Float, Wide>(world, line.agent, out);
}

}  // namespace doorstep
