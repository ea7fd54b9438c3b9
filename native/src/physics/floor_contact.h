// The floor: the plane z = 0, under every body.
//
// A cube meets it with up to four corners, solved as a contact of pair_contact.h whose normal is up. An agent stands
// on its four lower corners; since it only yaws and its origin is on the floor, its normal part is a clamp of z, and
// the friction of its corners is summed before it is applied (each corner sees the same velocities).
#pragma once

#include "physics/body.h"

namespace doorstep {

struct FloorContact {
    int count;  // corners below the floor, at most four
    Vec3 arm[4];
    float depth[4], depth_sum;
    Vec3 anchor;  // depth-weighted mean corner, local axes
    float lambda;
};

constexpr Vec3 kUp{0.f, 0.f, 1.f};

// The four deepest corners of the cube that are below the floor.
DS_INLINE void find_floor_contact(const Body& cube, FloorContact& contact) {
    contact.count = 0;
    contact.lambda = 0.f;
    const Vec3 a = cube.box.axis[0] * kCubeHalfExtent, b = cube.box.axis[1] * kCubeHalfExtent,
               c = cube.box.axis[2] * kCubeHalfExtent;
    if (cube.position.z - (absolute(a.z) + absolute(b.z) + absolute(c.z)) >= 0.f) return;
    Vec3 corner[8];
    float depth[8];
    int below = 0;
    for (int k = 0; k < 8; k++) {
        const Vec3 r = (k & 1 ? a : -a) + (k & 2 ? b : -b) + (k & 4 ? c : -c);
        const float z = cube.position.z + r.z;
        if (!(z < 0.f)) continue;
        corner[below] = r;
        depth[below++] = -z;
    }
    contact.count = below < 4 ? below : 4;
    contact.depth_sum = 0.f;
    Vec3 weighted{0.f, 0.f, 0.f};
    for (int i = 0; i < contact.count; i++) {
        if (below > 4) {
            int deepest = i;
            for (int j = i + 1; j < below; j++)
                if (depth[j] > depth[deepest]) deepest = j;
            const Vec3 r = corner[deepest];
            const float d = depth[deepest];
            corner[deepest] = corner[i];
            depth[deepest] = depth[i];
            corner[i] = r;
            depth[i] = d;
        }
        contact.arm[i] = corner[i];
        contact.depth[i] = depth[i];
        contact.depth_sum += depth[i];
        weighted = weighted + corner[i] * depth[i];
    }
    if (below > 0) contact.anchor = to_local(cube, weighted * (1.f / contact.depth_sum));
}

DS_INLINE void solve_cube_floor_position(FloorContact& contact, Body& cube) {
    if (contact.count == 0) return;
    float overlap = 0.f;
    for (int i = 0; i < contact.count; i++) overlap = maximum(overlap, contact.depth[i]);
    Vec3 r = to_world(cube, contact.anchor);
    contact.lambda = overlap / inverse_mass_at(cube, r, kUp);
    apply_position_impulse(cube, r, kUp * contact.lambda);

    r = to_world(cube, contact.anchor);
    Vec3 slip = cube.position + r - previous_place(cube, contact.anchor);
    slip.z = 0.f;
    const float distance = length(slip);
    if (!(distance > kTinyLength)) return;
    const Vec3 t = slip * (1.f / distance);
    const float friction = distance / inverse_mass_at(cube, r, t);
    if (friction < kStaticFriction * contact.lambda) apply_position_impulse(cube, r, t * -friction);
}

DS_INLINE void solve_cube_floor_velocity(const FloorContact& contact, Body& cube) {
    if (contact.count == 0) return;
    const Vec3 r = to_world(cube, contact.anchor);
    const float approach = approach_velocity_at(cube, r).z;
    const float bounce = -approach > kRestingSpeed ? kRestitution : 0.f;
    const float wanted = maximum(-bounce * approach, 0.f);
    apply_impulse(cube, r, kUp * ((wanted - velocity_at(cube, r).z) / inverse_mass_at(cube, r, kUp)));

    const float per_depth =
        (kDynamicFriction + kCubeExtraDynamicFriction) * kInverseSubstep * contact.lambda / contact.depth_sum;
    for (int i = 0; i < contact.count; i++) {
        Vec3 v = velocity_at(cube, contact.arm[i]);
        v.z = 0.f;
        const float slide = length(v);
        if (!(slide > kTinyLength)) continue;
        const Vec3 t = v * (1.f / slide);
        const float inverse = 1.f / inverse_mass_at(cube, contact.arm[i], t);
        const float impulse = minimum(per_depth * contact.depth[i] * inverse, slide) * inverse;
        apply_impulse(cube, contact.arm[i], t * -impulse);
    }
}

// Returns the normal multiplier: how deep the agent had sunk (its inverse mass is 1).
DS_INLINE float solve_agent_floor_position(Body& agent) {
    const float depth = -agent.position.z;
    if (!(depth > 0.f)) return 0.f;
    agent.position.z = 0.f;
    const float dx = agent.position.x - agent.previous_position.x, dy = agent.position.y - agent.previous_position.y;
    const float limit = kStaticFriction * depth;
    if (dx * dx + dy * dy < limit * limit) {
        agent.position.x = agent.previous_position.x;
        agent.position.y = agent.previous_position.y;
    }
    return depth;
}

// Friction of one substep at the four lower corners of an agent: what it takes from velocity and spin.
// `share` is mu lambda / h / 4.
template <class Float>
struct CornerFriction {
    Float x, y, moment;
};
template <class Float>
DS_INLINE CornerFriction<Float> agent_corner_friction(Float velocity_x, Float velocity_y, Float spin, Float cosine,
                                                      Float sine, Float share) {
    const Float zero(0.f), one(1.f), inertia(kAgentInverseInertia);
    const Float corner_x[4] = {cosine - sine, zero - cosine - sine, sine - cosine, cosine + sine};
    const Float corner_y[4] = {sine + cosine, cosine - sine, zero - sine - cosine, sine - cosine};
    Float px[4], py[4], pm[4];
    for (int k = 0; k < 4; k++) {
        const Float vx = velocity_x - spin * corner_y[k], vy = velocity_y + spin * corner_x[k];
        const Float slide = square_root(vx * vx + vy * vy);
        const auto sliding = Float(kTinyLength) < slide;
        const Float scale = zero_unless(sliding, one / select(sliding, slide, one));
        const Float tx = vx * scale, ty = vy * scale;
        const Float arm = corner_x[k] * ty - corner_y[k] * tx;
        const Float inverse = one / (one + inertia * arm * arm);
        const Float impulse = minimum(share * inverse, slide) * inverse;
        px[k] = impulse * tx;
        py[k] = impulse * ty;
        pm[k] = impulse * arm;
    }
    return {(px[0] + px[1]) + (px[2] + px[3]), (py[0] + py[1]) + (py[2] + py[3]), (pm[0] + pm[1]) + (pm[2] + pm[3])};
}

}  // namespace doorstep
