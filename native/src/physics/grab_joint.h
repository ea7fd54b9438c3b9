// The fixed joint between an agent and the cube it holds: no compliance, six degrees of freedom.
#pragma once

#include "physics/body.h"

namespace doorstep {

// Fixed when the agent grabs. The agent's anchor is (0, kHoldForward + separation, kHoldHeight) in its own frame.
struct GrabJoint {
    float separation;      // along the agent's forward axis, may be negative
    Vec3 anchor;           // on the cube, its axes
    Quat relative;         // of the cube, relative to the agent
};

DS_INLINE GrabJoint make_joint(Vec3 agent_position, Quat agent_rotation, Vec3 cube_position, Quat cube_rotation,
                               float hit_distance) {
    const Heading heading = heading_of(agent_rotation.w, agent_rotation.z);
    const Vec3 hit = agent_position + rotate(heading, Vec3{0.f, hit_distance, kHoldHeight});
    return {hit_distance - kHoldForward, rotate_inverse(cube_rotation, hit - cube_position),
            conjugate(agent_rotation) * cube_rotation};
}

// Solves the orientation, then the anchors. Mueller et al. 2020, sections 3.3.1 and 3.3.2.
template <class Body>
DS_INLINE void solve_joint(const GrabJoint& joint, Body& agent, Body& cube) {
    constexpr float kTinyError2 = 1e-14f;
    DS_ASSERT(agent.yaws_only && !cube.yaws_only);
    const Quat wanted = agent.rotation * joint.relative;
    const Quat d = cube.rotation * conjugate(wanted);
    const float sign = d.w < 0.f ? -2.f : 2.f;
    const Vec3 error{d.x * sign, d.y * sign, d.z * sign};
    const float angle2 = dot(error, error);
    if (angle2 > kTinyError2) {
        const float weight = kAgentInverseInertia * error.z * error.z / angle2 + inverse_inertia(cube);
        DS_ASSERT(!(weight <= 0.f));
        const Vec3 correction = error * (1.f / weight);
        turn(agent, spin_change(agent, correction));
        turn(cube, spin_change(cube, -correction));
    }

    const Vec3 ra = to_world(agent, {0.f, kHoldForward + joint.separation, kHoldHeight});
    const Vec3 rb = to_world(cube, joint.anchor);
    const Vec3 gap = cube.position + rb - (agent.position + ra);
    const float distance2 = dot(gap, gap);
    if (!(distance2 > kTinyError2)) return;
    const float inverse2 = 1.f / distance2;
    const float weight = inverse_mass_along(agent, ra, gap, inverse2) + inverse_mass_along(cube, rb, gap, inverse2);
    const Vec3 impulse = gap * (1.f / weight);
    apply_position_impulse(agent, ra, impulse);
    apply_position_impulse(cube, rb, -impulse);
}

}  // namespace doorstep
