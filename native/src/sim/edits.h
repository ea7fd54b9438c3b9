// Edits of the state by the caller: clamps indices and updates derived data before the next step uses them.
#pragma once

#include "sim/grab.h"
#include "sim/health.h"

namespace doorstep {

// Clamps an index to its range; true if it was outside.
DS_INLINE bool repair(int32_t& index, int32_t low, int32_t high, int32_t otherwise) {
    if (index >= low && index <= high) return false;
    index = otherwise;
    return true;
}

DS_INLINE bool all_within(const int32_t* values, int count, int32_t high) {
    uint32_t largest = 0;  // as unsigned, so that negative values are too large
    for (int i = 0; i < count; i++) {
        const uint32_t value = static_cast<uint32_t>(values[i]);
        largest = value > largest ? value : largest;
    }
    return largest <= static_cast<uint32_t>(high);
}

template <class W>
DS_INLINE bool grabs_a_cube_or_nothing(const W& world, int agent) {
    const int32_t held = world.grabs.held[agent];
    return held == -1 || (held >= world.num_agents() && held < world.num_bodies());
}

template <class W>
DS_INLINE bool has_valid_indices(const W& world) {
    bool valid = all_within(world.statics.kind, W::kStatics, kEntityKinds - 1) &&
                 all_within(world.statics.kind + W::kStatics, W::kStaticLanes - W::kStatics, DS_ENTITY_NONE) &&
                 all_within(world.buttons.door, W::kButtonLanes, W::kDoors - 1) &&
                 all_within(world.doors.panel, W::kDoors, W::kStatics - 1);
    for (int a = 0; a < world.num_agents(); a++) valid &= grabs_a_cube_or_nothing(world, a);
    return valid;
}

// The static that a door gets in place of an impossible one: the reference's panel, where there is one.
template <class W>
DS_INLINE int32_t spare_panel(int door) {
    return clamp(3 * door + 5, 0, W::kStatics - 1);
}

// Returns how many were out of range.
template <class W>
DS_NOINLINE uint32_t repair_indices(W& world) {
    uint32_t repaired = 0;
    for (int i = 0; i < W::kStaticLanes; i++)
        repaired += repair(world.statics.kind[i], 0, i < W::kStatics ? kEntityKinds - 1 : 0, 0);
    for (int b = 0; b < W::kButtonLanes; b++) repaired += repair(world.buttons.door[b], 0, W::kDoors - 1, 0);
    for (int d = 0; d < W::kDoors; d++) repaired += repair(world.doors.panel[d], 0, W::kStatics - 1, spare_panel<W>(d));
    for (int a = 0; a < world.num_agents(); a++) {
        if (grabs_a_cube_or_nothing(world, a)) continue;
        world.grabs.held[a] = -1;
        repaired++;
    }
    return repaired;
}

// A grab set by the caller holds the cube at its current pose; the anchor is as far forward as the cube's centre.
template <class W>
DS_INLINE void follow_grab_edits(W& world) {
    for (int a = 0; a < world.num_agents(); a++) {
        if (world.grabs.held[a] == world.grabs.joined[a]) continue;
        const int cube = world.grabs.held[a];
        release(world.grabs, a);
        if (cube < 0) continue;
        const Vec3 offset = world.bodies.position(cube) - world.bodies.position(a);
        hold(world.bodies, world.grabs, a, cube, rotate_inverse(world.bodies.heading(a), offset).y);
    }
}

// Bits of the bodies whose bounds do not match their pose, and of those that move. Lanes run over bodies; the
// operations equal those of body_bounds(), except for tilted bodies, which use its other branch and count as moved.
template <FloatLanes Float, class W>
DS_INLINE uint32_t moved_or_moving(const W& world) {
    const auto& bodies = world.bodies;
    uint32_t bits = 0;
    for (int lane = 0; lane < W::kBodyLanes; lane += Float::kLanes) {
        const auto load = [&](const float* row) { return Float::load(row + lane); };
        const Float w = load(bodies.rotation_w), z = load(bodies.rotation_z), rx = load(bodies.rotation_x),
                    ry = load(bodies.rotation_y);
        const Float cosine = Float(1.f) - Float(2.f) * z * z, sine = Float(2.f) * w * z;
        const Float half = for_bodies<Float>(world, lane, kAgentHalfExtent, kCubeHalfExtent);
        const Float reach = half * (absolute(cosine) + absolute(sine));
        const Float px = load(bodies.x + W::kButtonLanes), py = load(bodies.y + W::kButtonLanes);
        const Float bottom = load(bodies.z + W::kButtonLanes) - for_bodies<Float>(world, lane, 0.f, kCubeHalfExtent);
        const auto in_place = equal(px - reach, load(bodies.min_x)) & equal(px + reach, load(bodies.max_x)) &
                              equal(py - reach, load(bodies.min_y)) & equal(py + reach, load(bodies.max_y)) &
                              equal(bottom, load(bodies.min_z)) & (rx * rx + ry * ry <= Float(kExactlyUpright));
        const auto speeds = bits_of(load(bodies.velocity_x)) | bits_of(load(bodies.velocity_y)) |
                            bits_of(load(bodies.velocity_z)) | bits_of(load(bodies.spin_x)) |
                            bits_of(load(bodies.spin_y)) | bits_of(load(bodies.spin_z));
        bits |= lane_bits(~(in_place & (absolute(float_of(speeds)) <= Float(0.f)))) << lane;
    }
    return bits & low_bits(world.num_bodies());
}

// Bounds follow poses; a sleeping cube that was moved or given a velocity wakes.
template <FloatLanes Float, class W>
DS_INLINE void follow_pose_edits(W& world) {
    auto& bodies = world.bodies;
    for (uint32_t bits = moved_or_moving<Float>(world); bits;) {
        const int i = take_lowest_bit(bits);
        const float min_x = bodies.min_x[i], max_x = bodies.max_x[i], min_y = bodies.min_y[i], max_y = bodies.max_y[i];
        const float min_z = bodies.min_z[i];
        refresh_bounds(bodies, i, world.is_agent(i));
        const bool moved = min_x != bodies.min_x[i] || max_x != bodies.max_x[i] || min_y != bodies.min_y[i] ||
                           max_y != bodies.max_y[i] || min_z != bodies.min_z[i];
        if (moved || !bodies.at_rest(i)) world.sleep.cubes &= ~(1u << i);
    }
}

template <class Float>
DS_INLINE bool all_finite(const float* values, int count) {
    uint32_t wrong = 0;
    for (int lane = 0; lane < count; lane += Float::kLanes) {
        const Float value = Float::load(values + lane);
        wrong |= lane_bits(~equal(value - value, Float(0.f)));
    }
    return wrong == 0;
}

// Values outside the bodies that only an edit can make invalid.
template <FloatLanes Float, class W>
DS_INLINE bool has_finite_fixtures(const W& world) {
    const float* statics[] = {world.statics.x,      world.statics.y,      world.statics.z,
                              world.statics.size_x, world.statics.size_y, world.statics.size_z};
    const float* buttons[] = {world.bodies.x, world.bodies.y, world.bodies.z};
    bool finite = true;
    for (const float* row : statics) finite = finite && all_finite<Float>(row, W::kStaticLanes);
    for (const float* row : buttons) finite = finite && all_finite<Float>(row, W::kButtonLanes);
    for (int a = 0; a < world.num_agents(); a++)
        finite = finite && all_finite<NarrowFloat>(world.progress.max_y + a, 1);
    return finite;
}

// Leaves a world that was not edited unchanged, except for counting values that are still not finite.
template <FloatLanes Float, class W>
DS_NOINLINE uint32_t absorb_world_edits(W& world) {
    uint32_t trouble = kTroubleNone;
    if (!has_valid_indices(world)) {
        note_trouble(world.health, world.identity, -1);
        world.health.repaired_indices += repair_indices(world);
        DS_ASSERT(has_valid_indices(world));
        trouble |= kTroubleRepairedIndex;
    }
    if (!has_finite_fixtures<Float>(world)) {
        world.health.nonfinite_values++;
        note_trouble(world.health, world.identity, -1);
        trouble |= kTroubleNonfinite;
    }
    follow_grab_edits(world);
    follow_pose_edits<Float>(world);
    return trouble | check_finite<Float>(world, world.health);
}

// ---- Stages

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::absorb_edits(const Rules& rules, World& world, TroubleBits& trouble) {
    trouble.bits = rules.look_for_edits ? absorb_world_edits<Float>(world) : static_cast<uint32_t>(kTroubleNone);
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::absorb_chosen(const Chosen& chosen, LevelSource source, World& world,
                                            TroubleBits& trouble) {
    if (!chosen.yes) return;
    world.terms().tell_level(source.drawn);
    trouble.bits = absorb_world_edits<Float>(world);
}

}  // namespace doorstep
