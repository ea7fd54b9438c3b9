// Agents that touch only the floor and upright static boxes: the solver of solver.h reduced to the plane, over lanes
// (one agent per lane, from any worlds).
//
// An agent starts every step at rest, and only the floor causes friction, so with no box in reach its path depends on
// its action alone, rotated into its frame: make_flight_table() runs this kernel once per action, and free agents look
// their motion up.
#pragma once

#include "physics/body.h"
#include "physics/floor_contact.h"
#include "physics/planar_contact.h"

namespace doorstep {

constexpr int kMaxSlideWalls = 4;  // static boxes an agent may have in reach here; with more it uses the general solver

template <FloatLanes Float>
struct WallContact : PlanarContact<Float> {  // a: the agent, b: the wall
    Float depth_sum;
    Float anchor_x, anchor_y;  // on the agent, its frame
    Float wall_x, wall_y;      // on the wall
    Float approach_speed, lambda;
};

// Input, output and scratch of the kernel: an agent per lane.
template <FloatLanes Float>
struct SlideBatch {
    static constexpr int kLanes = Float::kLanes;
    float x[kLanes], y[kLanes], rotation_w[kLanes], rotation_z[kLanes];
    float force_x[kLanes], force_y[kLanes], torque[kLanes];
    float wall_x[kMaxSlideWalls][kLanes], wall_y[kMaxSlideWalls][kLanes];  // centres
    float wall_half_x[kMaxSlideWalls][kLanes], wall_half_y[kMaxSlideWalls][kLanes];
    WallContact<Float> contacts[kMaxSlideWalls];
};
constexpr float kNoWall = 1e6f;  // centre of an empty wall slot

template <FloatLanes Float>
struct SlideState {
    Float x, y, rotation_w, rotation_z, velocity_x, velocity_y, spin;
    Float cosine, sine;
    Float previous_x, previous_y, previous_w, previous_z;

    DS_METHOD void refresh_heading() {
        cosine = Float(1.f) - Float(2.f) * rotation_z * rotation_z;
        sine = Float(2.f) * rotation_w * rotation_z;
    }
    // As yaw() in body.h, by `angle`; the error of the scale is that of renormalize() in vector.h.
    DS_METHOD void yaw(Float angle) {
        const Float d = Float(0.5f) * angle;
        const Float w = rotation_w - d * rotation_z, z = rotation_z + d * rotation_w;
        const Float e = (w * w + z * z) - Float(1.f);
        const Float scale = Float(1.f) - e * (Float(0.5f) - Float(0.375f) * e);
        rotation_w = w * scale;
        rotation_z = z * scale;
    }
    DS_METHOD void normalize() {
        const Float scale = Float(1.f) / square_root(rotation_w * rotation_w + rotation_z * rotation_z);
        rotation_w = rotation_w * scale;
        rotation_z = rotation_z * scale;
    }
    DS_METHOD Float arm_x(Float local_x, Float local_y) const { return cosine * local_x - sine * local_y; }
    DS_METHOD Float arm_y(Float local_x, Float local_y) const { return sine * local_x + cosine * local_y; }
};

template <FloatLanes Float>
struct SlideWall {
    Float x, y, half_x, half_y;
};

// A wall is not turned, so the gaps along its own axes, which most walls in reach leave open, need no rotation.
template <FloatLanes Float>
DS_INLINE void find_wall_contact(const SlideState<Float>& agent, const SlideWall<Float>& wall,
                                 WallContact<Float>& contact) {
    const Float zero(0.f), one(1.f), half(0.5f);
    const Float c = agent.cosine, s = agent.sine, turned_c = absolute(c), turned_s = absolute(s);
    const Float reach = turned_c + turned_s, dx = wall.x - agent.x, dy = wall.y - agent.y;

    contact.lambda = zero;
    const PlanarGaps<Float> wall_gaps{absolute(dx) - (wall.half_x + reach), absolute(dy) - (wall.half_y + reach)};
    contact.touching = wall_gaps.closed();
    if (!any(contact.touching)) return;
    const PlanarBox<Float> agent_box{agent.x, agent.y, c, s, one, one};
    const PlanarBox<Float> wall_box{agent.x + dx, agent.y + dy, one, zero, wall.half_x, wall.half_y};
    const PlanarGaps<Float> agent_gaps = gaps_along_axes_of(agent_box, wall_box, dx, dy, turned_c, turned_s);
    contact.touching = contact.touching & agent_gaps.closed();
    if (!any(contact.touching)) return;
    overlap_edges<Float>(agent_box, wall_box, dx, dy, least_deep_axis(agent_gaps, wall_gaps), contact);

    const Float nx = contact.normal_x, ny = contact.normal_y, d0 = contact.depth[0], d1 = contact.depth[1];
    contact.depth_sum = d0 + d1;
    DS_ASSERT(!any(contact.touching & ~(zero < contact.depth_sum)));
    const Float share = one / select(contact.touching, contact.depth_sum, one), deepest = half * maximum(d0, d1);
    const Float mean_x = (contact.point_x[0] * d0 + contact.point_x[1] * d1) * share;
    const Float mean_y = (contact.point_y[0] * d0 + contact.point_y[1] * d1) * share;
    const Float ax = mean_x - nx * deepest - agent.x, ay = mean_y - ny * deepest - agent.y;
    contact.wall_x = mean_x + nx * deepest;
    contact.wall_y = mean_y + ny * deepest;
    contact.anchor_x = c * ax + s * ay;
    contact.anchor_y = c * ay - s * ax;
    contact.approach_speed = nx * (agent.velocity_x - agent.spin * ay) + ny * (agent.velocity_y + agent.spin * ax);
}

// The two passes are those of pair_contact.h for an agent and a static box, up to rounding. A native test compares
// them: a_wall_acts_on_a_sliding_agent_as_in_the_general_solver.

// An agent has inverse mass 1, so its generalised inverse mass at an arm is this.
template <FloatLanes Float>
DS_INLINE Float planar_inverse_mass(Float arm_cross_direction) {
    return Float(1.f) + Float(kAgentInverseInertia) * arm_cross_direction * arm_cross_direction;
}

// Displaces by `impulse` along (dx, dy) at an arm whose cross product with the direction is given, where mask is set.
template <FloatLanes Float>
DS_INLINE void push(SlideState<Float>& agent, typename Float::Mask mask, Float dx, Float dy, Float arm, Float impulse) {
    const Float w = agent.rotation_w, z = agent.rotation_z;
    agent.x = select(mask, agent.x + dx * impulse, agent.x);
    agent.y = select(mask, agent.y + dy * impulse, agent.y);
    agent.yaw(Float(kAgentInverseInertia) * (arm * impulse));
    agent.rotation_w = select(mask, agent.rotation_w, w);
    agent.rotation_z = select(mask, agent.rotation_z, z);
}

template <FloatLanes Float>
DS_INLINE void solve_wall_position(SlideState<Float>& agent, WallContact<Float>& contact) {
    const Float zero(0.f);
    const Float nx = contact.normal_x, ny = contact.normal_y, tx = -ny, ty = nx;
    agent.refresh_heading();
    Float rx = agent.arm_x(contact.anchor_x, contact.anchor_y), ry = agent.arm_y(contact.anchor_x, contact.anchor_y);
    const Float overlap = nx * (contact.wall_x - agent.x - rx) + ny * (contact.wall_y - agent.y - ry);
    const auto pressing = contact.touching & (zero < overlap);
    contact.touching = pressing;
    const Float arm = rx * ny - ry * nx;
    contact.lambda = zero_unless(pressing, overlap / planar_inverse_mass(arm));
    DS_ASSERT(!any(contact.lambda < zero));
    push(agent, pressing, nx, ny, arm, contact.lambda);

    agent.refresh_heading();
    rx = agent.arm_x(contact.anchor_x, contact.anchor_y);
    ry = agent.arm_y(contact.anchor_x, contact.anchor_y);
    const Float two(2.f), one(1.f);
    const Float old_c = one - two * agent.previous_z * agent.previous_z;
    const Float old_s = two * agent.previous_w * agent.previous_z;
    const Float old_rx = old_c * contact.anchor_x - old_s * contact.anchor_y;
    const Float old_ry = old_s * contact.anchor_x + old_c * contact.anchor_y;
    const Float slip_x = agent.x + rx - agent.previous_x - old_rx, slip_y = agent.y + ry - agent.previous_y - old_ry;
    const Float slip = slip_x * tx + slip_y * ty;
    const Float slip_arm = rx * ty - ry * tx, friction = slip / planar_inverse_mass(slip_arm);
    const auto sticking = pressing & (absolute(friction) < Float(kStaticFriction) * contact.lambda) &
                          (Float(kTinyLength) < absolute(slip));
    if (any(sticking)) push(agent, sticking, tx, ty, slip_arm, -friction);
}

template <FloatLanes Float>
DS_INLINE void solve_wall_velocity(SlideState<Float>& agent, const WallContact<Float>& contact) {
    const Float zero(0.f), one(1.f), inertia(kAgentInverseInertia);
    const auto pressing = contact.touching;
    const Float nx = contact.normal_x, ny = contact.normal_y, tx = -ny, ty = nx;
    const Float rx = agent.arm_x(contact.anchor_x, contact.anchor_y);
    const Float ry = agent.arm_y(contact.anchor_x, contact.anchor_y);
    const Float speed = nx * (agent.velocity_x - agent.spin * ry) + ny * (agent.velocity_y + agent.spin * rx);
    const Float bounce = zero_unless(Float(kRestingSpeed) < -contact.approach_speed, Float(kRestitution));
    const Float arm = rx * ny - ry * nx;
    const Float impulse = (maximum(-bounce * contact.approach_speed, zero) - speed) / planar_inverse_mass(arm);
    Float velocity_x = agent.velocity_x + nx * impulse, velocity_y = agent.velocity_y + ny * impulse;
    Float spin = agent.spin + inertia * arm * impulse;

    // Every planar point stands for two, at the top and the bottom of the common height: applied one after the other
    // they stop as much as one with both shares
    DS_ASSERT(!any(contact.lambda < zero) && !any(pressing & ~(zero < contact.depth_sum)));
    const Float depth_sum = select(pressing, contact.depth_sum, one);
    const Float per_depth = Float(kDynamicFriction * kInverseSubstep) * contact.lambda / depth_sum;
    for (int i = 0; i < 2; i++) {
        const Float px = contact.point_x[i] - agent.x, py = contact.point_y[i] - agent.y;
        const Float slide = (velocity_x - spin * py) * tx + (velocity_y + spin * px) * ty;
        const Float point_arm = px * ty - py * tx, inverse = one / planar_inverse_mass(point_arm);
        const Float size = minimum(per_depth * contact.depth[i] * inverse, absolute(slide)) * inverse;
        const Float friction = select(slide < zero, -size, size);
        velocity_x = velocity_x - tx * friction;
        velocity_y = velocity_y - ty * friction;
        spin = spin - inertia * point_arm * friction;
    }
    agent.velocity_x = select(pressing, velocity_x, agent.velocity_x);
    agent.velocity_y = select(pressing, velocity_y, agent.velocity_y);
    agent.spin = select(pressing, spin, agent.spin);
}

// One step of the agents of a batch. Only poses are returned, because agents stop at the end of a step.
template <FloatLanes Float>
DS_NOINLINE void slide_batch(SlideBatch<Float>& batch, int wall_count) {
    DS_ASSERT(wall_count >= 0 && wall_count <= kMaxSlideWalls);
    const Float zero(0.f), h(kSubstep);
    // The distance that an agent falls in a substep is its normal multiplier on the floor
    constexpr float kSink = kSubstep * kGravity * kSubstep;
    const Float floor_share(kDynamicFriction * kInverseSubstep * 0.25f * kSink);
    const Float stick_limit(kStaticFriction * kSink * (kStaticFriction * kSink));

    SlideState<Float> agent;
    agent.x = Float::load(batch.x);
    agent.y = Float::load(batch.y);
    agent.rotation_w = Float::load(batch.rotation_w);
    agent.rotation_z = Float::load(batch.rotation_z);
    agent.velocity_x = agent.velocity_y = agent.spin = zero;
    const Float push_x = h * Float::load(batch.force_x), push_y = h * Float::load(batch.force_y);
    const Float twist = Float(kSubstep * kAgentInverseInertia) * Float::load(batch.torque);

    for (int substep = 0; substep < kSubsteps; substep++) {
        agent.previous_x = agent.x;
        agent.previous_y = agent.y;
        agent.previous_w = agent.rotation_w;
        agent.previous_z = agent.rotation_z;
        agent.velocity_x = agent.velocity_x + push_x;
        agent.velocity_y = agent.velocity_y + push_y;
        agent.x = agent.x + agent.velocity_x * h;
        agent.y = agent.y + agent.velocity_y * h;
        agent.spin = agent.spin + twist;
        agent.yaw(h * agent.spin);

        agent.refresh_heading();
        uint32_t touched = 0;
        for (int k = 0; k < wall_count; k++) {
            const SlideWall<Float> wall{Float::load(batch.wall_x[k]), Float::load(batch.wall_y[k]),
                                        Float::load(batch.wall_half_x[k]),
                                        Float::load(batch.wall_half_y[k])};
            find_wall_contact(agent, wall, batch.contacts[k]);
            touched |= static_cast<uint32_t>(any(batch.contacts[k].touching)) << k;
        }

        const Float dx = agent.x - agent.previous_x, dy = agent.y - agent.previous_y;
        const auto sticking = dx * dx + dy * dy < stick_limit;
        agent.x = select(sticking, agent.previous_x, agent.x);
        agent.y = select(sticking, agent.previous_y, agent.y);
        for (int k = 0; k < wall_count; k++)
            if (touched >> k & 1) solve_wall_position(agent, batch.contacts[k]);

        agent.velocity_x = (agent.x - agent.previous_x) * Float(kInverseSubstep);
        agent.velocity_y = (agent.y - agent.previous_y) * Float(kInverseSubstep);
        const Float w = agent.rotation_w * agent.previous_w + agent.rotation_z * agent.previous_z;
        const Float z = agent.rotation_z * agent.previous_w - agent.rotation_w * agent.previous_z;
        agent.spin = select(w < zero, Float(-2.f * kInverseSubstep), Float(2.f * kInverseSubstep)) * z;

        agent.refresh_heading();
        const auto friction = agent_corner_friction(agent.velocity_x, agent.velocity_y, agent.spin, agent.cosine,
                                                    agent.sine, floor_share);
        agent.velocity_x = agent.velocity_x - friction.x;
        agent.velocity_y = agent.velocity_y - friction.y;
        agent.spin = agent.spin - Float(kAgentInverseInertia) * friction.moment;
        for (int k = 0; k < wall_count; k++)
            if (touched >> k & 1) solve_wall_velocity(agent, batch.contacts[k]);
    }
    agent.normalize();
    agent.x.store(batch.x);
    agent.y.store(batch.y);
    agent.rotation_w.store(batch.rotation_w);
    agent.rotation_z.store(batch.rotation_z);
}

}  // namespace doorstep
