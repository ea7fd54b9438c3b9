// Chooses how each agent moves in this step: free, sliding along statics, or coupled to something that moves.
#pragma once

#include "sim/static_lanes.h"
#include "sim/tile.h"

namespace doorstep {

// How far contacts may push an agent or a cube off its path within a step.
constexpr float kContactMargin = 0.45f;
// How far an awake cube may move in a step beyond its present velocity.
constexpr float kAwakeMargin = 0.2f;

// Bits of the agents that are not at rest, upright and on the floor. Lanes run over bodies.
template <class Float, class W>
DS_INLINE uint32_t unsettled_bodies(const W& world) {
    uint32_t bits = 0;
    for (int lane = 0; lane < W::kAgents; lane += Float::kLanes) {
        const auto load = [&](const float* row) { return bits_of(Float::load(row + lane)); };
        const auto joint = load(world.velocity_x) | load(world.velocity_y) | load(world.velocity_z) |
                           load(world.spin_x) | load(world.spin_y) | load(world.spin_z) | load(world.rotation_x) |
                           load(world.rotation_y) | load(world.z + W::kButtonLanes);
        const auto settled = absolute(float_of(joint)) <= Float(0.f);
        bits |= lane_bits(~settled) << lane;
    }
    return bits;
}

// Bits of the statics that an agent standing on the floor can touch on its path; of those within contact reach around
// the path; and of those within reach that are not full-height walls for it.
struct StaticsAround {
    uint32_t path, reach, partial;
};

template <class Float, class W>
DS_INLINE StaticsAround statics_around(const W& world, Rectangle path, Rectangle reach) {
    constexpr float kHeight = 2.f * kAgentHalfExtent;
    StaticsAround around{0, 0, 0};
    DS_ROLLED
    for (int lane = 0; lane < W::kStaticLanes; lane += Float::kLanes) {
        const auto s = load_statics<Float>(world, lane);
        const auto solid = (s.bottom < Float(kHeight)) & (Float(0.f) < s.top) & (s.bottom < s.top);
        const auto full = (s.bottom <= Float(0.f)) & (Float(kHeight) <= s.top);
        const auto in_reach = solid & overlap(s, reach);
        around.path |= lane_bits(solid & overlap(s, path)) << lane;
        around.reach |= lane_bits(in_reach) << lane;
        around.partial |= lane_bits(in_reach & ~full) << lane;
    }
    return around;
}

// Whether a cube's bounds, grown by its possible motion, overlap an area. Lanes run over bodies.
template <class Float, class W>
DS_INLINE bool meets_a_cube(const W& world, Rectangle area) {
    const bool all_asleep = world.asleep == W::kCubeBits;
    uint32_t bits = 0;
    DS_ROLLED
    for (int lane = 0; lane < W::kBodyLanes; lane += Float::kLanes) {
        Float margin_x(0.f), margin_y(0.f);
        if (!all_asleep) {
            margin_x = Float(kAwakeMargin) + Float(kTimeStep) * absolute(Float::load(world.velocity_x + lane));
            margin_y = Float(kAwakeMargin) + Float(kTimeStep) * absolute(Float::load(world.velocity_y + lane));
        }
        bits |= lane_bits((Float::load(world.min_x + lane) - margin_x < Float(area.max_x)) &
                          (Float(area.min_x) < Float::load(world.max_x + lane) + margin_x) &
                          (Float::load(world.min_y + lane) - margin_y < Float(area.max_y)) &
                          (Float(area.min_y) < Float::load(world.max_y + lane) + margin_y))
                << lane;
    }
    return (bits & W::kCubeBits) != 0;
}

template <class TileT>
DS_INLINE Rectangle path_of(const TileT& tile, int slot) {
    const auto& records = tile.records;
    return {records.path_min_x[slot], records.path_max_x[slot], records.path_min_y[slot], records.path_max_y[slot]};
}

// One agent against statics and cubes. load_actions has set kCoupled where the action has no row in the flight table.
template <class Float, class TileT, class W>
DS_INLINE Motion motion_alone(TileT& tile, const W& world, int agent, int slot) {
    if (tile.records.motion[slot] == kCoupled || world.grabs[agent] >= 0) return kCoupled;
    const Rectangle path = path_of(tile, slot), reach = grown(path, kContactMargin);
    const StaticsAround statics = statics_around<Float>(world, path, reach);
    if (statics.path == 0) return meets_a_cube<Float>(world, path) ? kCoupled : kFree;
    tile.records.walls[slot] = statics.reach;
    const bool too_many = count_bits(statics.reach) > kMaxSlideWalls;
    return too_many || statics.partial || meets_a_cube<Float>(world, reach) ? kCoupled : kSliding;
}

// Whether two agents in free flight stay out of each other's reach. Friction aside (millimetres), both travel the same
// fraction of their path in each substep, so the difference of their centres moves along a segment. No two corners
// touch beyond twice the diagonal plus one centimetre.
template <class TileT, class W>
DS_INLINE bool fly_apart(const TileT& tile, const W& world, int base, int a, int b) {
    constexpr float kReach = 2.f * 1.4143f * kAgentHalfExtent + 0.01f;
    const float x = world.x[W::kButtonLanes + b] - world.x[W::kButtonLanes + a];
    const float y = world.y[W::kButtonLanes + b] - world.y[W::kButtonLanes + a];
    const float dx = tile.records.flown_x[base + b] - tile.records.flown_x[base + a] - x;
    const float dy = tile.records.flown_y[base + b] - tile.records.flown_y[base + a] - y;
    const float along = -(x * dx + y * dy), whole = dx * dx + dy * dy;
    const float part = along <= 0.f ? 0.f : along >= whole ? 1.f : along / whole;
    const float nearest_x = x + dx * part, nearest_y = y + dy * part;
    return nearest_x * nearest_x + nearest_y * nearest_y > kReach * kReach;
}

// Agents are coupled if they are not at rest on the floor, or in each other's way, or where a coupled agent, or a cube
// it pushes, may be pushed into them.
template <class Float, class TileT, class W>
DS_INLINE void couple_agents(TileT& tile, const W& world, int base) {
    for (uint32_t unsettled = unsettled_bodies<Float>(world) & ((1u << W::kAgents) - 1u); unsettled;)
        tile.records.motion[base + take_lowest_bit(unsettled)] = kCoupled;
    for (bool changed = true; changed;) {
        changed = false;
        for (int a = 0; a < W::kAgents; a++)
            for (int b = 0; b < W::kAgents; b++) {
                Motion &ma = tile.records.motion[base + a], &mb = tile.records.motion[base + b];
                if (a == b || mb == kCoupled) continue;
                const float margin_a = ma == kFree ? 0.f : kContactMargin;
                const float margin_b = ma == kCoupled || mb == kSliding ? kContactMargin : 0.f;
                const Rectangle reach_a = grown(path_of(tile, base + a), margin_a);
                const Rectangle reach_b = grown(path_of(tile, base + b), margin_b);
                if (!overlap(reach_a, reach_b)) continue;
                if (ma == kFree && mb == kFree && fly_apart(tile, world, base, a, b)) continue;
                ma = mb = kCoupled;
                changed = true;
            }
        bool some = false;
        for (int a = 0; a < W::kAgents; a++) some |= tile.records.motion[base + a] == kCoupled;
        for (int a = 0; some && a < W::kAgents; a++) {
            if (tile.records.motion[base + a] == kCoupled) continue;
            if (!meets_a_cube<Float>(world, grown(path_of(tile, base + a), 2.f * kContactMargin))) continue;
            tile.records.motion[base + a] = kCoupled;
            changed = true;
        }
    }
}

}  // namespace doorstep
