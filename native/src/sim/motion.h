// Moves the bodies of a world in the way that classify_agents chose for each agent.
#pragma once

#include "physics/slide.h"
#include "physics/solver.h"
#include "sim/broad_phase.h"
#include "sim/doors.h"

namespace doorstep {

// An agent's new pose, on the floor and at rest.
template <class W>
DS_INLINE void settle_agent(W& world, int agent, float x, float y, float w, float z) {
    world.x[W::kButtonLanes + agent] = x;
    world.y[W::kButtonLanes + agent] = y;
    world.rotation_w[agent] = w;
    world.rotation_z[agent] = z;
    refresh_bounds(world, agent);
}

// ---- Sliding agents: as many together as there are lanes, from any worlds of the tile

template <class Float, class TileT>
DS_INLINE void gather_sliding_agent(const TileT& tile, int slot, int lane, SlideBatch<Float>& batch, int& wall_count) {
    using W = typename TileT::W;
    const auto& world = tile.world_of(slot);
    const int agent = slot % W::kAgents;
    batch.x[lane] = world.x[W::kButtonLanes + agent];
    batch.y[lane] = world.y[W::kButtonLanes + agent];
    batch.rotation_w[lane] = world.rotation_w[agent];
    batch.rotation_z[lane] = world.rotation_z[agent];
    const Vec3 force = tile.force(slot);
    batch.force_x[lane] = force.x;
    batch.force_y[lane] = force.y;
    batch.torque[lane] = tile.torque(slot);
    int count = 0;
    for (uint32_t walls = tile.records.walls[slot]; walls; count++) {
        const int i = take_lowest_bit(walls);
        batch.wall_x[count][lane] = world.static_x[i];
        batch.wall_y[count][lane] = world.static_y[i];
        batch.wall_half_x[count][lane] = 0.5f * world.static_size_x[i];
        batch.wall_half_y[count][lane] = 0.5f * world.static_size_y[i];
    }
    if (count > wall_count) wall_count = count;
}

template <class Float, class TileT>
DS_INLINE void slide_batch(TileT& tile, const int* slots, int count, int slider) {
    constexpr int kAgents = TileT::W::kAgents;
    auto& batch = tile.workspace.slides[slider];
    for (int k = 0; k < kMaxSlideWalls; k++)
        for (int lane = 0; lane < Float::kLanes; lane++) {
            batch.wall_x[k][lane] = batch.wall_y[k][lane] = kNoWall;
            batch.wall_half_x[k][lane] = batch.wall_half_y[k][lane] = 0.f;
        }
    int wall_count = 0;
    // Lanes without an agent repeat the first
    for (int lane = 0; lane < Float::kLanes; lane++)
        gather_sliding_agent(tile, slots[lane < count ? lane : 0], lane, batch, wall_count);
    slide_agents(batch, wall_count);
    for (int lane = 0; lane < count; lane++)
        settle_agent(tile.world_of(slots[lane]), slots[lane] % kAgents, batch.x[lane], batch.y[lane],
                     batch.rotation_w[lane], batch.rotation_z[lane]);
}

// ---- Coupled worlds

template <class W>
DS_INLINE Rectangle bounds_of(const W& world, int body) {
    return {world.min_x[body], world.max_x[body], world.min_y[body], world.max_y[body]};
}

// Bounds of the volume that an awake cube may sweep in this step.
template <class W>
DS_INLINE Rectangle sweep_of(const W& world, int cube) {
    const float turning = 0.5f * absolute(world.spin_x[cube]) + 0.5f * absolute(world.spin_y[cube]) +
                          absolute(world.spin_z[cube]);
    const float dx = kAwakeMargin + kTimeStep * (absolute(world.velocity_x[cube]) + turning);
    const float dy = kAwakeMargin + kTimeStep * (absolute(world.velocity_y[cube]) + turning);
    return {world.min_x[cube] - dx, world.max_x[cube] + dx, world.min_y[cube] - dy, world.max_y[cube] + dy};
}

// The bodies to solve, as bits, and those of them that are awake from the start rather than once they are hit.
struct Participants {
    uint32_t bodies, awake;
};

template <class TileT, class W>
DS_INLINE Participants choose_participants(const TileT& tile, const W& world, int base) {
    Participants chosen{0, W::kCubeBits & ~world.asleep};
    for (int a = 0; a < W::kAgents; a++) {
        if (tile.records.motion[base + a] != kCoupled) continue;
        chosen.awake |= 1u << a;
        if (const int cube = world.held_by(a); cube >= 0) chosen.awake |= 1u << cube;
        const Rectangle reach = grown(path_of(tile, base + a), kContactMargin);
        for (int i = W::kAgents; i < W::kBodies; i++)
            if (overlap(reach, bounds_of(world, i))) chosen.bodies |= 1u << i;
    }
    for (int d = 0; d < W::kDoors; d++) {
        if (!is_closing(world, d)) continue;
        const StaticBox panel = static_box(world, world.panel_of(d));
        const Rectangle area{panel.center.x - panel.half.x, panel.center.x + panel.half.x,
                             panel.center.y - panel.half.y, panel.center.y + panel.half.y};
        for (int i = W::kAgents; i < W::kBodies; i++)
            if (overlap(area, bounds_of(world, i))) chosen.awake |= 1u << i;
    }
    chosen.bodies |= chosen.awake;
    // Transitively, the neighbours of those
    for (uint32_t fresh = chosen.bodies & W::kCubeBits; fresh;) {
        const Rectangle sweep = sweep_of(world, take_lowest_bit(fresh));
        for (uint32_t others = W::kCubeBits & ~chosen.bodies; others;) {
            const int j = take_lowest_bit(others);
            if (!overlap(sweep, bounds_of(world, j))) continue;
            chosen.bodies |= 1u << j;
            fresh |= 1u << j;
        }
    }
    return chosen;
}

// Slots of the problem for the chosen bodies, in body order.
template <class TileT, class W>
DS_INLINE void load_bodies(const TileT& tile, const W& world, int base, Participants chosen, CoupledWorld<W>& coupled) {
    Problem<W>& problem = coupled.problem;
    problem.body_count = 0;
    for (uint32_t bits = chosen.bodies; bits;) {
        const int i = take_lowest_bit(bits), slot = problem.body_count++;
        const bool is_agent = i < W::kAgents;
        coupled.body_of[slot] = i;
        coupled.slot_of[i] = slot;
        Body& body = problem.bodies[slot];
        body.position = world.body_position(i);
        body.rotation = world.body_rotation(i);
        body.velocity = world.body_velocity(i);
        body.spin = world.body_spin(i);
        body.yaws_only = is_agent;
        body.lift = is_agent && body.position.z == 0.f ? 0.f : 1.f;
        body.asleep = !(chosen.awake >> i & 1);
        body.force = is_agent ? tile.force(base + i) : Vec3{0.f, 0.f, 0.f};
        body.torque = is_agent ? tile.torque(base + i) : 0.f;
        coupled.areas[slot] = is_agent ? grown(path_of(tile, base + i), kContactMargin) : sweep_of(world, i);
        problem.on_floor[slot] = false;
        if (body.asleep) refresh_box(body);
    }
}

// How far other bodies may push a body off its path within a step: walls within this distance are tested in every
// substep, so that no body enters one.
constexpr float kShoveMargin = 1.5f;

// An agent and the cube it holds do not collide: the joint keeps them at the distance they had.
template <class W>
DS_INLINE bool are_joined(const W& world, int a, int b) {
    return a < W::kAgents && world.grabs[a] == b;
}

template <class Float, class W>
DS_INLINE void load_statics_and_pairs(const W& world, CoupledWorld<W>& coupled) {
    Problem<W>& problem = coupled.problem;
    const Rectangle* areas = coupled.areas;
    uint32_t used = 0;
    problem.static_pair_count = problem.body_pair_count = 0;
    uint32_t solid = 0;
    DS_ROLLED
    for (int lane = 0; lane < W::kStaticLanes; lane += Float::kLanes) {
        const StaticLanes<Float> s = load_statics<Float>(world, lane);
        solid |= lane_bits((Float(0.f) < s.top) & (s.bottom < s.top)) << lane;
    }
    for (int slot = 0; slot < problem.body_count; slot++) {
        uint32_t bits = statics_in<Float>(world, grown(areas[slot], kShoveMargin)) & solid & ((1u << W::kStatics) - 1u);
        used |= bits;
        while (bits)
            problem.static_pairs[problem.static_pair_count++] = {static_cast<uint8_t>(slot),
                                                                 static_cast<uint8_t>(take_lowest_bit(bits))};
        for (int other = slot + 1; other < problem.body_count; other++)
            if (overlap(areas[slot], areas[other]) && !are_joined(world, coupled.body_of[slot], coupled.body_of[other]))
                problem.body_pairs[problem.body_pair_count++] = {static_cast<uint8_t>(slot),
                                                                 static_cast<uint8_t>(other)};
    }
    while (used) {
        const int i = take_lowest_bit(used);
        problem.statics[i] = static_box(world, i);
    }
}

template <class W>
DS_INLINE void load_joints(const W& world, CoupledWorld<W>& coupled) {
    Problem<W>& problem = coupled.problem;
    problem.joint_count = 0;
    for (int a = 0; a < W::kAgents; a++)
        if (const int cube = world.held_by(a); cube >= 0)
            problem.joints[problem.joint_count++] = {world.joint[a], coupled.slot_of[a], coupled.slot_of[cube]};
}

template <class W>
DS_INLINE bool is_held(const W& world, int cube) {
    for (int a = 0; a < W::kAgents; a++)
        if (world.grabs[a] == cube) return true;
    return false;
}

// A cube flat on the floor that moves less than this in a step falls asleep: 0.03 m/s, 0.03 rad/s. The displacement
// counts, not the velocity: gravity gives a resting cube a velocity in a single substep.
constexpr float kSleepMove2 = (0.03f * kTimeStep) * (0.03f * kTimeStep);
constexpr float kSleepTurn2 = 0.25f * kSleepMove2;  // quaternions change by half the angle
constexpr float kSleepSpeed2 = 0.2f * 0.2f;
constexpr float kSleepHeight = 5e-3f;
constexpr float kSleepTilt = 1e-6f;

template <class W>
DS_INLINE bool has_come_to_rest(const W& world, int cube, const Body& body) {
    const Vec3 moved = body.position - world.body_position(cube);
    const Quat p = body.rotation, q = world.body_rotation(cube);
    const float w = p.w - q.w, x = p.x - q.x, y = p.y - q.y, z = p.z - q.z;
    return dot(moved, moved) < kSleepMove2 && w * w + x * x + y * y + z * z < kSleepTurn2 &&
           dot(body.velocity, body.velocity) < kSleepSpeed2 &&
           absolute(body.position.z - kCubeHalfExtent) < kSleepHeight && !is_held(world, cube);
}

// The remaining tilt is removed, so that the sleeping cube is an upright box for all tests.
template <class W>
DS_INLINE void put_to_sleep(W& world, int cube, Body& body) {
    world.asleep |= 1u << cube;
    body.velocity = body.spin = {0.f, 0.f, 0.f};
    if (tilt_of(body.rotation) > kSleepTilt) return;
    body.rotation = normalize({body.rotation.w, 0.f, 0.f, body.rotation.z});
    body.position.z = kCubeHalfExtent;
}

// Nothing in a room throws a cube upwards. Bounces stay below this, metres per second; higher velocities are artefacts
// of solving agents, joints and walls that squeeze a cube one after the other, and are clamped.
constexpr float kFastestRise = 3.f;

template <class W>
DS_INLINE void store_body(W& world, int i, Body& body, bool on_floor) {
    if (i < W::kAgents) {
        body.velocity = {0.f, 0.f, minimum(body.velocity.z, 0.f)};
        body.spin = {0.f, 0.f, 0.f};
    } else if (!body.asleep) {
        body.velocity.z = minimum(body.velocity.z, maximum(world.velocity_z[i], kFastestRise));
        world.asleep &= ~(1u << i);
        if (on_floor && has_come_to_rest(world, i, body)) put_to_sleep(world, i, body);
    }
    world.set_body_position(i, body.position);
    world.set_body_rotation(i, body.rotation);
    world.set_body_velocity(i, body.velocity);
    world.set_body_spin(i, body.spin);
    refresh_bounds(world, i);
}

// Records the latest trouble of a world: its body, or -1, and its step.
template <class W>
DS_INLINE void note_trouble(W& world, int body) {
    world.culprit_body = body;
    world.culprit_step = static_cast<int32_t>(world.age & 0x7FFFFFFFu);
}

// Counts bodies with a value that is not finite. Lanes run over bodies.
template <class Float, class W>
DS_INLINE uint32_t check_finite(W& world) {
    uint32_t bits = 0;
    DS_ROLLED
    for (int lane = 0; lane < W::kBodyLanes; lane += Float::kLanes) {
        const auto load = [&](const float* row) { return Float::load(row + lane); };
        const Float place = load(world.x + W::kButtonLanes) + load(world.y + W::kButtonLanes) +
                            load(world.z + W::kButtonLanes);
        const Float rotation = load(world.rotation_w) + load(world.rotation_x) + load(world.rotation_y) +
                               load(world.rotation_z);
        const Float speed = load(world.velocity_x) + load(world.velocity_y) + load(world.velocity_z);
        const Float spin = load(world.spin_x) + load(world.spin_y) + load(world.spin_z);
        const Float zero(0.f);
        bits |= lane_bits(~(equal(place - place, zero) & equal(rotation - rotation, zero) &
                            equal(speed - speed, zero) & equal(spin - spin, zero)))
                << lane;
    }
    bits &= (1u << W::kBodies) - 1u;
    if (bits == 0) return kTroubleNone;
    note_trouble(world, lowest_bit(bits));
    world.nonfinite_values += static_cast<uint32_t>(count_bits(bits));
    return kTroubleNonfinite;
}

template <class TileT, class W>
DS_INLINE bool needs_solving(const TileT& tile, const W& world, int base) {
    if (world.asleep != W::kCubeBits) return true;
    for (int a = 0; a < W::kAgents; a++)
        if (tile.records.motion[base + a] == kCoupled) return true;
    for (int d = 0; d < W::kDoors; d++)
        if (is_closing(world, d)) return true;
    return false;
}

template <class Float, class TileT, class W>
DS_INLINE uint32_t solve_world(const TileT& tile, W& world, int base, CoupledWorld<W>& coupled) {
    const Participants chosen = choose_participants(tile, world, base);
    if (chosen.bodies == 0) return kTroubleNone;
    Problem<W>& problem = coupled.problem;
    load_bodies(tile, world, base, chosen, coupled);
    load_statics_and_pairs<Float>(world, coupled);
    load_joints(world, coupled);
    solve_step(problem);
    for (int slot = 0; slot < problem.body_count; slot++)
        store_body(world, coupled.body_of[slot], problem.bodies[slot], problem.on_floor[slot]);

    uint32_t trouble = check_finite<Float>(world);
    if (problem.dropped_contacts > 0) {
        note_trouble(world, coupled.body_of[problem.dropped_body]);
        world.dropped_contacts += static_cast<uint32_t>(problem.dropped_contacts);
        trouble |= kTroubleDroppedContacts;
    }
    return trouble;
}

}  // namespace doorstep
