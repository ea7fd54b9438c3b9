// Grabbing: a toggle, evaluated in every step whose action has grab = 1.
#pragma once

#include "sim/stages.h"

namespace doorstep {

// The nearest body in front of the agent within the range, and its distance; -1 without one. Walls, doors and other
// agents hide bodies behind them.
struct Reach {
    int body;
    float distance;
};

template <class W>
DS_INLINE float ray_enters_body(const W& world, int body, Vec3 origin, Vec3 direction) {
    const bool is_agent = world.is_agent(body);
    const float half = is_agent ? kAgentHalfExtent : kCubeHalfExtent;
    Vec3 center = world.bodies.position(body);
    if (is_agent) center.z += kAgentHalfExtent;
    const Vec3 offset = origin - center;
    const Quat rotation = world.bodies.rotation(body);
    return ray_enters_box(rotate_inverse(rotation, offset), rotate_inverse(rotation, direction), {half, half, half});
}

// Bodies whose bounds meet the bounds of the ray. Lanes run over bodies.
template <FloatLanes Float, class W>
DS_INLINE uint32_t bodies_along(const W& world, Vec3 origin, Vec3 forward) {
    const auto& bodies = world.bodies;
    const float x = origin.x + forward.x * kGrabRange, y = origin.y + forward.y * kGrabRange;
    const Float min_x(minimum(origin.x, x)), max_x(maximum(origin.x, x));
    const Float min_y(minimum(origin.y, y)), max_y(maximum(origin.y, y));
    uint32_t bits = 0;
    for (int lane = 0; lane < W::kBodyLanes; lane += Float::kLanes)
        bits |= lane_bits((Float::load(bodies.min_x + lane) <= max_x) & (min_x <= Float::load(bodies.max_x + lane)) &
                          (Float::load(bodies.min_y + lane) <= max_y) & (min_y <= Float::load(bodies.max_y + lane)))
                << lane;
    return bits & low_bits(world.num_bodies());
}

template <FloatLanes Float, class W>
DS_INLINE Reach reach_forward(const W& world, int agent) {
    const Vec3 forward = rotate(world.bodies.heading(agent), Vec3{0.f, 1.f, 0.f});
    const Vec3 origin = world.bodies.position(agent) + Vec3{0.f, 0.f, kHoldHeight};
    Reach reach{-1, kGrabRange};
    uint32_t candidates = bodies_along<Float>(world, origin, forward) & ~(1u << agent);
    if ((candidates & world.cube_bits()) == 0) return reach;
    while (candidates) {
        const int i = take_lowest_bit(candidates);
        const float distance = ray_enters_body(world, i, origin, forward);
        if (distance > 0.f && distance <= reach.distance) reach = {i, distance};
    }
    if (reach.body < 0) return reach;
    for (int i = 0; i < W::kStatics; i++) {
        if (world.statics.kind[i] == DS_ENTITY_NONE) continue;
        const StaticBox box = static_box(world, i);
        const float distance = ray_enters_box(origin - box.center, forward, box.half);
        if (distance > 0.f && distance < reach.distance) return {-1, distance};
    }
    return reach;
}

// Joins agent and cube at their current poses, at the point `distance` in front of the agent's axis.
template <class Bodies, class Grabs>
DS_INLINE void hold(const Bodies& bodies, Grabs& grabs, int agent, int cube, float distance) {
    DS_ASSERT(cube > 0);
    grabs.held[agent] = grabs.joined[agent] = cube;
    grabs.joint[agent] = make_joint(bodies.position(agent), bodies.rotation(agent), bodies.position(cube),
                                    bodies.rotation(cube), distance);
}

template <class Grabs>
DS_INLINE void release(Grabs& grabs, int agent) {
    grabs.held[agent] = grabs.joined[agent] = -1;
    grabs.joint[agent] = GrabJoint{};
}

// ---- Stage

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::toggle_grabs(AgentIndex agent, const Action& action, const World& world, Grabs& grabs) {
    if (action.grab != 1) return;
    if (grabs.held[agent.agent] >= 0) {
        release(grabs, agent.agent);
        return;
    }
    const Reach reach = reach_forward<Float>(world, agent.agent);
    DS_ASSERT(reach.body < world.num_bodies() && reach.distance > 0.f && reach.distance <= kGrabRange);
    if (reach.body >= world.num_agents()) hold(world.bodies, grabs, agent.agent, reach.body, reach.distance);
}

}  // namespace doorstep
