// Chooses how each agent moves in this step (free, sliding along statics, or coupled to something that moves), and
// which bodies the general solver moves: the one place that decides what may influence what.
#pragma once

#include "sim/broad_phase.h"
#include "sim/doors.h"
#include "sim/stages.h"

namespace doorstep {

// How far contacts may push an agent or a cube off its path within a step.
constexpr float kContactMargin = 0.45f;

// ---- One agent against statics and cubes

// Bits of the agents that are not at rest, upright and on the floor. Lanes run over bodies.
template <FloatLanes Float, class W>
DS_INLINE uint32_t unsettled_bodies(const W& world) {
    const auto& bodies = world.bodies;
    uint32_t bits = 0;
    for (int lane = 0; lane < W::kMostAgents; lane += Float::kLanes) {
        const auto load = [&](const float* row) { return bits_of(Float::load(row + lane)); };
        const auto joint = load(bodies.velocity_x) | load(bodies.velocity_y) | load(bodies.velocity_z) |
                           load(bodies.spin_x) | load(bodies.spin_y) | load(bodies.spin_z) | load(bodies.rotation_x) |
                           load(bodies.rotation_y) | load(bodies.z + W::kButtonLanes);
        const auto settled = absolute(float_of(joint)) <= Float(0.f);
        bits |= lane_bits(~settled) << lane;
    }
    return bits;
}

// Bits of the statics that an agent standing on the floor can touch on its path; of those within contact reach around
// the path; and of those within reach that are not full-height walls for it.
struct StaticsAround {
    uint32_t path, reach, partial;

    DS_METHOD void leave_out(uint32_t bits) {
        path &= ~bits;
        reach &= ~bits;
        partial &= ~bits;
    }
};

// Threads that look at one static each leave out those beside the path at once: most of them, and the unused slots.
template <FloatLanes Float, class W>
DS_INLINE StaticsAround statics_around(const W& world, Rectangle path, Rectangle reach) {
    constexpr float kHeight = 2.f * kAgentHalfExtent;
    StaticsAround around{0, 0, 0};
    DS_ROLLED
    for (int lane = 0; lane < W::kStaticLanes; lane += Float::kLanes) {
        if (!has_statics<Float>(world, lane)) continue;
        const auto s = load_statics<Float>(world, lane);
        if (Float::kLanes == 1 && !any((s.min_y < Float(reach.max_y)) & (Float(reach.min_y) < s.max_y))) continue;
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
template <FloatLanes Float, class W>
DS_INLINE bool meets_a_cube(const W& world, Rectangle area) {
    const auto& bodies = world.bodies;
    const bool all_asleep = world.sleep.cubes == world.cube_bits();
    uint32_t bits = 0;
    DS_ROLLED
    for (int lane = 0; lane < W::kBodyLanes; lane += Float::kLanes) {
        Float margin_x(0.f), margin_y(0.f);
        if (!all_asleep) {
            margin_x = Float(kAwakeMargin) + Float(kTimeStep) * absolute(Float::load(bodies.velocity_x + lane));
            margin_y = Float(kAwakeMargin) + Float(kTimeStep) * absolute(Float::load(bodies.velocity_y + lane));
        }
        const auto beside = (Float::load(bodies.min_y + lane) - margin_y < Float(area.max_y)) &
                            (Float(area.min_y) < Float::load(bodies.max_y + lane) + margin_y);
        if ((Float::kLanes == 1 || W::kPlaysLevels) && !any(beside)) continue;
        bits |= lane_bits((Float::load(bodies.min_x + lane) - margin_x < Float(area.max_x)) &
                          (Float(area.min_x) < Float::load(bodies.max_x + lane) + margin_x) & beside)
                << lane;
    }
    return (bits & world.cube_bits()) != 0;
}

// The agent's action has a row in the flight table.
template <FloatLanes Float, FloatLanes Wide, class W>
DS_INLINE Motion motion_alone(const W& world, int agent, const Action& action, Rectangle path, WallsInReach& walls) {
    if (world.grabs.held[agent] >= 0) return kCoupled;
    const Rectangle reach = grown(path, kContactMargin);
    StaticsAround statics = statics_around<Wide>(world, path, reach);
    if (statics.path != 0 && action.amount != 0) statics.leave_out(panels_around(world, world.bodies.position(agent)));
    if (statics.path == 0) return meets_a_cube<Float>(world, path) ? kCoupled : kFree;
    walls.bits = statics.reach;
    const bool too_many = count_bits(statics.reach) > kMaxSlideWalls;
    return too_many || statics.partial || meets_a_cube<Float>(world, reach) ? kCoupled : kSliding;
}

// ---- Agents against each other

// Whether two agents in free flight stay out of each other's reach. Friction aside (millimetres), both travel the same
// fraction of their path in each substep, so the difference of their centres moves along a segment. No two corners
// touch beyond twice the diagonal plus one centimetre.
template <class Bodies>
DS_INLINE bool fly_apart(const Bodies& bodies, Each<const FlownPose> flown, int a, int b) {
    constexpr float kReach = 2.f * 1.4143f * kAgentHalfExtent + 0.01f;
    const Vec3 from_a = bodies.position(a), from_b = bodies.position(b);
    const float x = from_b.x - from_a.x, y = from_b.y - from_a.y;
    const float dx = flown[b].x - flown[a].x - x, dy = flown[b].y - flown[a].y - y;
    const float along = -(x * dx + y * dy), whole = dx * dx + dy * dy;
    const float part = along <= 0.f ? 0.f : along >= whole ? 1.f : along / whole;
    const float nearest_x = x + dx * part, nearest_y = y + dy * part;
    return nearest_x * nearest_x + nearest_y * nearest_y > kReach * kReach;
}

// Whether one may influence the other in this step.
template <class W>
DS_INLINE bool meet(const W& world, Each<const FlownPose> flown, Each<const Path> paths, Each<const Motion> motions,
                    int a, int b) {
    const Motion motion_a = motions[a], motion_b = motions[b];
    const float margin_a = motion_a == kFree ? 0.f : kContactMargin;
    const float margin_b = motion_a == kCoupled || motion_b == kSliding ? kContactMargin : 0.f;
    if (!overlap(grown(paths[a].area, margin_a), grown(paths[b].area, margin_b))) return false;
    return !(motion_a == kFree && motion_b == kFree && fly_apart(world.bodies, flown, a, b));
}

template <class W>
DS_INLINE bool any_coupled(const W& world, Each<const Motion> motions) {
    bool some = false;
    for (int a = 0; a < world.num_agents(); a++) some |= motions[a] == kCoupled;
    return some;
}

// Returns whether an agent has become coupled.
template <class W>
DS_INLINE bool couple_agents_that_meet(const W& world, Each<const FlownPose> flown, Each<const Path> paths,
                                       Each<Motion> motions) {
    bool changed = false;
    for (int a = 0; a < world.num_agents(); a++)
        for (int b = 0; b < world.num_agents(); b++) {
            if (a == b || motions[b] == kCoupled || !meet(world, flown, paths, {motions.first}, a, b)) continue;
            motions[a] = motions[b] = kCoupled;
            changed = true;
        }
    return changed;
}

// Agents whom a cube that a coupled agent pushes may hit. Returns whether an agent has become coupled.
template <FloatLanes Float, class W>
DS_INLINE bool couple_agents_near_cubes(const W& world, Each<const Path> paths, Each<Motion> motions) {
    if (!any_coupled(world, {motions.first})) return false;
    bool changed = false;
    for (int a = 0; a < world.num_agents(); a++) {
        if (motions[a] == kCoupled) continue;
        if (!meets_a_cube<Float>(world, grown(paths[a].area, 2.f * kContactMargin))) continue;
        motions[a] = kCoupled;
        changed = true;
    }
    return changed;
}

// ---- What the general solver moves

template <class W>
DS_INLINE bool needs_solver(const W& world, Each<const Motion> motions) {
    if (world.sleep.cubes != world.cube_bits() || any_coupled(world, motions)) return true;
    for (int d = 0; d < world.terms().used_doors(W::kDoors); d++)
        if (is_closing(world, d)) return true;
    return false;
}

// The bodies to solve, as bits, and those of them that are awake from the start rather than once they are hit.
struct Participants {
    uint32_t bodies, awake;
};

template <class W>
DS_INLINE Participants choose_participants(const W& world, Each<const Motion> motions, Each<const Path> paths) {
    Participants chosen{0, world.cube_bits() & ~world.sleep.cubes};
    for (int a = 0; a < world.num_agents(); a++) {
        if (motions[a] != kCoupled) continue;
        chosen.awake |= 1u << a;
        if (const int cube = world.held_by(a); cube >= 0) chosen.awake |= 1u << cube;
        const Rectangle reach = grown(paths[a].area, kContactMargin);
        for (int i = world.num_agents(); i < world.num_bodies(); i++)
            if (overlap(reach, bounds_of(world, i))) chosen.bodies |= 1u << i;
    }
    for (int d = 0; d < world.terms().used_doors(W::kDoors); d++) {
        if (!is_closing(world, d)) continue;
        const StaticBox panel = static_box(world, world.doors.panel_of(d));
        const Rectangle area{panel.center.x - panel.half.x, panel.center.x + panel.half.x,
                             panel.center.y - panel.half.y, panel.center.y + panel.half.y};
        for (int i = world.num_agents(); i < world.num_bodies(); i++)
            if (overlap(area, bounds_of(world, i))) chosen.awake |= 1u << i;
    }
    chosen.bodies |= chosen.awake;
    // Transitively, the neighbours of those
    for (uint32_t fresh = chosen.bodies & world.cube_bits(); fresh;) {
        const Rectangle sweep = sweep_of(world, take_lowest_bit(fresh));
        for (uint32_t others = world.cube_bits() & ~chosen.bodies; others;) {
            const int j = take_lowest_bit(others);
            if (!overlap(sweep, bounds_of(world, j))) continue;
            chosen.bodies |= 1u << j;
            fresh |= 1u << j;
        }
    }
    return chosen;
}

// ---- Stages

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::classify_agents(AgentIndex agent, const Action& action, const World& world,
                                              const Path& path, Motion& motion, WallsInReach& walls) {
    // load_actions has set kCoupled where the action has no row in the flight table
    if (motion != kCoupled) motion = motion_alone<Float, Wide>(world, agent.agent, action, path.area, walls);
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::couple_agents(const World& world, Each<const FlownPose> flown, Each<const Path> paths,
                                            Each<Motion> motions, Coupled& coupled) {
    for (uint32_t unsettled = unsettled_bodies<Float>(world) & low_bits(world.num_agents()); unsettled;)
        motions[take_lowest_bit(unsettled)] = kCoupled;
    for (bool changed = true; changed;) {
        changed = couple_agents_that_meet(world, flown, paths, motions);
        changed |= couple_agents_near_cubes<Float>(world, paths, motions);
    }
    coupled.yes = needs_solver<World>(world, {motions.first});
}

}  // namespace doorstep
