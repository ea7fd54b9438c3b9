// Candidates of the general solver: which bodies and statics may touch in this step.
#pragma once

#include "sim/doors.h"

namespace doorstep {

// How far an awake cube may move in a step beyond its present velocity.
constexpr float kAwakeMargin = 0.2f;

template <class W>
DS_INLINE Rectangle bounds_of(const W& world, int body) {
    const auto& bodies = world.bodies;
    return {bodies.min_x[body], bodies.max_x[body], bodies.min_y[body], bodies.max_y[body]};
}

// Bounds of the volume that an awake cube may sweep in this step.
template <class W>
DS_INLINE Rectangle sweep_of(const W& world, int cube) {
    const auto& bodies = world.bodies;
    const float turning = 0.5f * absolute(bodies.spin_x[cube]) + 0.5f * absolute(bodies.spin_y[cube]) +
                          absolute(bodies.spin_z[cube]);
    const float dx = kAwakeMargin + kTimeStep * (absolute(bodies.velocity_x[cube]) + turning);
    const float dy = kAwakeMargin + kTimeStep * (absolute(bodies.velocity_y[cube]) + turning);
    return {bodies.min_x[cube] - dx, bodies.max_x[cube] + dx, bodies.min_y[cube] - dy, bodies.max_y[cube] + dy};
}

// How far other bodies may push a body off its path within a step: walls within this distance are tested in every
// substep, so that no body enters one.
constexpr float kShoveMargin = 1.5f;

// An agent and the cube it holds do not collide: the joint keeps them at the distance they had.
template <class W>
DS_INLINE bool are_joined(const W& world, int a, int b) {
    return world.is_agent(a) && world.grabs.held[a] == b;
}

// Bits of the statics that a body of the problem may touch within the step.
template <FloatLanes Float, class W>
DS_INLINE void find_static_candidates(const W& world, CoupledWorld<W>& coupled, int slot) {
    const auto& body = coupled.problem.bodies[slot];
    uint32_t& bits = coupled.statics_of[slot];
    bits = statics_in<Float>(world, grown(coupled.areas[slot], kShoveMargin));
    const bool walks = body.force.x != 0.f || body.force.y != 0.f;
    if (walks) bits &= ~panels_around(world, body.position);
}

// The pairs of bodies, and of bodies and statics, that may touch within the step; and the statics of those.
template <class W>
DS_INLINE void list_candidate_pairs(const W& world, CoupledWorld<W>& coupled) {
    Problem<W>& problem = coupled.problem;
    const Rectangle* areas = coupled.areas;
    uint32_t used = 0;
    problem.static_pair_count = problem.body_pair_count = 0;
    for (int slot = 0; slot < problem.body_count; slot++) {
        uint32_t bits = coupled.statics_of[slot];
        used |= bits;
        DS_ASSERT(problem.static_pair_count + count_bits(bits) <= Problem<W>::kMaxStaticPairs);
        while (bits)
            problem.static_pairs[problem.static_pair_count++] = {static_cast<uint8_t>(slot),
                                                                 static_cast<uint8_t>(take_lowest_bit(bits))};
        for (int other = slot + 1; other < problem.body_count; other++)
            if (overlap(areas[slot], areas[other]) && !are_joined(world, coupled.body_of[slot], coupled.body_of[other]))
                problem.body_pairs[problem.body_pair_count++] = {static_cast<uint8_t>(slot),
                                                                 static_cast<uint8_t>(other)};
    }
    DS_ASSERT(problem.body_pair_count <= Problem<W>::kMaxBodyPairs);
    while (used) {
        const int i = take_lowest_bit(used);
        problem.statics[i] = static_box(world, i);
    }
}

}  // namespace doorstep
