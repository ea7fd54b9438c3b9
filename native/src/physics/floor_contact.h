// The floor: the plane z = 0, under every body.
//
// A cube touches it with the corners of its lowest face, solved as a contact of pair_contact.h whose normal is up,
// except that friction acts on its corners simultaneously: in an order, a cube that slides straight would turn. An
// agent stands on its four lower corners; since it only yaws and its origin is on the floor, the normal part is a clamp
// of z, and its corners' friction is also summed first.
#pragma once

#include "math/lanes.h"
#include "physics/body.h"

namespace doorstep {

struct FloorContact {
    Vec3 arm[4];     // corners of the lowest face, world axes
    float depth[4];  // below the floor, 0 if above
    float depth_sum;
    Vec3 anchor;     // depth-weighted mean corner, at the largest depth, local axes
    float lambda;
};

constexpr Vec3 kUp{0.f, 0.f, 1.f};

// Corners of the face that points down most: it includes the lowest corner and, in any contact this shallow, all other
// corners that touch.
DS_INLINE void lowest_corners(const Box& box, Vec3 corners[4]) {
    const float z0 = absolute(box.axis[0].z), z1 = absolute(box.axis[1].z), z2 = absolute(box.axis[2].z);
    const int down = z2 >= z0 && z2 >= z1 ? 2 : z1 >= z0 ? 1 : 0;
    const Vec3 n = box.axis[down];
    DS_ASSERT(!(absolute(n.z) < 0.57f));  // 1 / sqrt(3) at least: the largest component of a unit vector
    const Vec3 middle = n * (n.z > 0.f ? -kCubeHalfExtent : kCubeHalfExtent);
    const Vec3 u = box.axis[(down + 1) % 3] * kCubeHalfExtent, v = box.axis[(down + 2) % 3] * kCubeHalfExtent;
    corners[0] = middle + u + v;
    corners[1] = middle - u + v;
    corners[2] = middle - u - v;
    corners[3] = middle + u - v;
}

// Static friction: the anchor's slip since the start of the substep is undone if that needs less than mu_s lambda.
template <class Body>
DS_INLINE void stick_to_floor(const FloorContact& contact, Body& cube) {
    const Vec3 r = to_world(cube, contact.anchor);
    Vec3 slip = cube.position + r - previous_place(cube, contact.anchor);
    slip.z = 0.f;
    const float distance2 = dot(slip, slip);
    if (!(distance2 > kTinyLength2)) return;
    const float weight = inverse_mass_along(cube, r, slip, 1.f / distance2);
    const float most = kStaticFriction * cube.friction() * contact.lambda * weight;
    if (distance2 < most * most) apply_position_impulse(cube, r, slip * (-1.f / weight));
}

// Finds the contact of a cube at its pose after integration. Returns whether the cube touches the floor.
template <class Body>
DS_INLINE bool find_floor_contact(FloorContact& contact, const Body& cube) {
    contact.lambda = contact.depth_sum = 0.f;
    const Box& box = cube.box;
    const float reach = absolute(box.axis[0].z) + absolute(box.axis[1].z) + absolute(box.axis[2].z);
    if (!(cube.position.z - kCubeHalfExtent * reach < 0.f)) return false;
    lowest_corners(box, contact.arm);
    Vec3 weighted{0.f, 0.f, 0.f};
    float deepest = 0.f;
    for (int i = 0; i < 4; i++) {
        const float depth = maximum(-(cube.position.z + contact.arm[i].z), 0.f);
        contact.depth[i] = depth;
        contact.depth_sum += depth;
        deepest = maximum(deepest, depth);
        weighted = weighted + contact.arm[i] * depth;
    }
    DS_ASSERT(!(contact.depth_sum < deepest));
    if (!(contact.depth_sum > 0.f)) return false;
    const float inverse = 1.f / contact.depth_sum;
    contact.anchor = to_local(cube, {weighted.x * inverse, weighted.y * inverse, -deepest - cube.position.z});
    return true;
}

template <class Body>
DS_INLINE void solve_cube_floor_position(FloorContact& contact, Body& cube) {
    DS_ASSERT(!cube.yaws_only);
    if (!(contact.depth_sum > 0.f)) return;
    const Vec3 r = to_world(cube, contact.anchor);
    const float depth = -(cube.position.z + r.z);
    if (!(depth > 0.f)) return;
    const float old = old_overlap(depth, approach_velocity_at(cube, r).z);
    shift(cube, kUp * old);
    contact.lambda = (depth - old) / inverse_mass_at(cube, r, kUp);
    DS_ASSERT(!(contact.lambda < 0.f));
    apply_position_impulse(cube, r, kUp * contact.lambda);
    stick_to_floor(contact, cube);
}

// The fraction of its sliding velocity that each of the four corners may stop in a pass: together they remove this part
// of the speed of a cube that slides without turning, and never overshoot. With m and i the inverse mass and
// inertia and arms (+-1.5, +-1.5, -1.5), a single corner has w = m + 4.5 i, all four together 4 (m + 2.25 i); their
// ratio does not depend on the mass, because i is 1.5 m for any mass.
constexpr float kCornerPart = 0.85f * (kCubeInverseMass + 4.5f * kCubeInverseInertia) /
                              (4.f * (kCubeInverseMass + 2.25f * kCubeInverseInertia));

// A cube that rocks stands on one or two corners, which stop little in one pass: enough speed would remain for it to
// rock and creep on at g h, the speed that a substep's gravity gives.
constexpr int kFrictionPasses = 4;

// Coulomb friction at the corners. In a pass all of them use the same velocities, and each spends from its share
// mu lambda d_i / (h sum(d)) until that is used up or the corner stands still.
template <class Body>
DS_INLINE void rub_on_floor(const FloorContact& contact, Body& cube) {
    DS_ASSERT(contact.depth_sum > 0.f && !(contact.lambda < 0.f));
    const float inverse_mass = cube.cube_inverse_mass(), inertia = cube.cube_inverse_inertia();
    const float coefficient = (kDynamicFriction + kCubeExtraDynamicFriction) * cube.friction();
    const float per_depth = coefficient * kInverseSubstep * contact.lambda / contact.depth_sum;
    float x[4], y[4], z[4], left[4];
    for (int i = 0; i < 4; i++) {
        x[i] = contact.arm[i].x;
        y[i] = contact.arm[i].y;
        z[i] = contact.arm[i].z;
        left[i] = per_depth * contact.depth[i];
    }
    DS_ROLLED
    for (int pass = 0; pass < kFrictionPasses; pass++) {
        float fx[4], fy[4], mx[4], my[4], mz[4];  // impulses and their moments
        for (int i = 0; i < 4; i++) {
            const float vx = cube.velocity.x + (cube.spin.y * z[i] - cube.spin.z * y[i]);
            const float vy = cube.velocity.y + (cube.spin.z * x[i] - cube.spin.x * z[i]);
            const float speed2 = maximum(vx * vx + vy * vy, kTinyLength2);
            const float speed = square_root(speed2), inverse2 = 1.f / speed2;
            const float about_z = x[i] * vy - y[i] * vx;
            const float weight = inverse_mass + inertia * (z[i] * z[i] + about_z * about_z * inverse2);
            const float inverse_weight = 1.f / weight;
            const float spent = minimum(left[i], kCornerPart * speed * weight);
            left[i] -= spent;
            DS_ASSERT(!(left[i] < 0.f));
            const float scale = spent * inverse_weight * inverse_weight * (speed * inverse2);
            fx[i] = -vx * scale;
            fy[i] = -vy * scale;
            mx[i] = -z[i] * fy[i];
            my[i] = z[i] * fx[i];
            mz[i] = -about_z * scale;
        }
        const auto sum = [](const float* v) { return (v[0] + v[1]) + (v[2] + v[3]); };
        cube.velocity = cube.velocity + Vec3{sum(fx), sum(fy), 0.f} * inverse_mass;
        cube.spin = cube.spin + Vec3{sum(mx), sum(my), sum(mz)} * inertia;
        if (!(sum(left) > 0.f)) return;
    }
}

template <class Body>
DS_INLINE void solve_cube_floor_velocity(const FloorContact& contact, Body& cube) {
    if (!(contact.lambda > 0.f)) return;
    const Vec3 r = to_world(cube, contact.anchor);
    const float approach = approach_velocity_at(cube, r).z;
    const float bounce = -approach > kRestingSpeed ? kRestitution : 0.f;
    const float wanted = maximum(-bounce * approach, 0.f);
    apply_impulse(cube, r, kUp * ((wanted - velocity_at(cube, r).z) / inverse_mass_at(cube, r, kUp)));
    rub_on_floor(contact, cube);
}

// Returns the normal multiplier: the depth of the agent below the floor (its inverse mass is 1).
template <class Body>
DS_INLINE float solve_agent_floor_position(Body& agent) {
    DS_ASSERT(agent.yaws_only);
    const float depth = -agent.position.z;
    if (!(depth > 0.f)) return 0.f;
    agent.position.z = 0.f;
    agent.previous_position.z += old_overlap(depth, agent.approach_velocity.z);
    const float dx = agent.position.x - agent.previous_position.x, dy = agent.position.y - agent.previous_position.y;
    const float limit = kStaticFriction * agent.friction() * depth;
    if (dx * dx + dy * dy < limit * limit) {
        agent.position.x = agent.previous_position.x;
        agent.position.y = agent.previous_position.y;
    }
    return depth;
}

// Applies one substep's friction at the four lower corners of an agent to its velocities.
// `share` is mu lambda / h / 4.
template <FloatLanes Float>
struct CornerFriction {
    Float x, y, moment;
};
template <FloatLanes Float>
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
