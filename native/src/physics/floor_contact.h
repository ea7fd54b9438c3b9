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

template <class Number>
struct FloorContactOf {
    Number lambda;            // normal multiplier of this substep; the rest is that of a cube
    Number touched;           // not 0: in this step
    Number depth_sum;
    Vec3Of<Number> anchor;    // depth-weighted mean corner, at the largest depth, local axes
    Vec3Of<Number> arm[4];    // corners of the lowest face, world axes
    Number depth[4];          // below the floor, 0 if above
};
using FloorContact = FloorContactOf<float>;

template <class N>
DS_INLINE Vec3Of<N> up() { return {N(0.f), N(0.f), N(1.f)}; }

// Corners of the face that points down most: it includes the lowest corner and, in any contact this shallow, all other
// corners that touch.
template <class N>
DS_INLINE void lowest_corners(const BoxOf<N>& box, Vec3Of<N> corners[4]) {
    const Vec3Of<N>* axis = box.axis;
    const N z0 = absolute(axis[0].z), z1 = absolute(axis[1].z), z2 = absolute(axis[2].z), half(kCubeHalfExtent);
    const MaskOf<N> is_2 = (z0 <= z2) & (z1 <= z2), is_1 = z0 <= z1;
    const Vec3Of<N> n = select(is_2, axis[2], select(is_1, axis[1], axis[0]));
    const Vec3Of<N> middle = n * select(N(0.f) < n.z, -half, half);
    const Vec3Of<N> u = select(is_2, axis[0], select(is_1, axis[2], axis[1])) * half;
    const Vec3Of<N> v = select(is_2, axis[1], select(is_1, axis[0], axis[2])) * half;
    corners[0] = middle + u + v;
    corners[1] = middle - u + v;
    corners[2] = middle - u - v;
    corners[3] = middle + u - v;
}

// Static friction: the anchor's slip since the start of the substep is undone if that needs less than mu_s lambda.
template <class Body, class N>
DS_INLINE void stick_to_floor(const FloorContactOf<N>& contact, Body& cube, MaskOf<N> pressing) {
    const auto r = to_world(cube, contact.anchor);
    auto slip = cube.position + r - previous_place(cube, contact.anchor);
    slip.z = N(0.f);
    const N distance2 = dot(slip, slip);
    const MaskOf<N> slipping = pressing & (N(kTinyLength2) < distance2);
    if (!any(slipping)) return;
    const N weight = inverse_mass_along(cube, r, slip, N(1.f) / distance2);
    const N most = N(kStaticFriction) * cube.friction() * contact.lambda * weight;
    const MaskOf<N> sticking = slipping & (distance2 < most * most);
    if (any(sticking)) apply_position_impulse(cube, sticking, r, slip * (N(-1.f) / weight));
}

// Finds the contact of a cube at its pose after integration. Returns whether the cube touches the floor.
template <class Body, class N>
DS_INLINE MaskOf<N> find_floor_contact(FloorContactOf<N>& contact, const Body& cube) {
    const N zero(0.f), z = cube.position.z;
    contact.lambda = contact.depth_sum = zero;
    const auto& box = cube.box;
    const N reach = absolute(box.axis[0].z) + absolute(box.axis[1].z) + absolute(box.axis[2].z);
    const MaskOf<N> low = z - N(kCubeHalfExtent) * reach < zero;
    if (!any(low)) return low;
    lowest_corners(box, contact.arm);
    Vec3Of<N> weighted{zero, zero, zero};
    N deepest = zero, sum = zero;
    for (int i = 0; i < 4; i++) {
        const N depth = maximum(-(z + contact.arm[i].z), zero);
        contact.depth[i] = depth;
        sum = sum + depth;
        deepest = maximum(deepest, depth);
        weighted = weighted + contact.arm[i] * depth;
    }
    DS_ASSERT(!any(sum < deepest));
    contact.depth_sum = zero_unless(low, sum);
    const MaskOf<N> touching = zero < contact.depth_sum;
    if (!any(touching)) return touching;
    const N inverse = N(1.f) / contact.depth_sum;
    contact.anchor = to_local(cube, {weighted.x * inverse, weighted.y * inverse, -deepest - z});
    contact.touched = select(touching, N(1.f), contact.touched);
    return touching;
}

template <class Body, class N>
DS_INLINE void solve_cube_floor_position(FloorContactOf<N>& contact, Body& cube) {
    DS_ASSERT(!cube.yaws_only);
    const N zero(0.f);
    const MaskOf<N> touching = zero < contact.depth_sum;
    if (!any(touching)) return;
    const auto r = to_world(cube, contact.anchor);
    const N depth = -(cube.position.z + r.z);
    const MaskOf<N> pressing = touching & (zero < depth);
    if (!any(pressing)) return;
    const N old = old_overlap(depth, approach_velocity_at(cube, r).z);
    const auto position = cube.position, previous_position = cube.previous_position;
    shift(cube, up<N>() * old);
    cube.position = select(pressing, cube.position, position);
    cube.previous_position = select(pressing, cube.previous_position, previous_position);
    contact.lambda = zero_unless(pressing, (depth - old) / inverse_mass_at(cube, r, up<N>()));
    DS_ASSERT(!any(contact.lambda < zero));
    apply_position_impulse(cube, pressing, r, up<N>() * contact.lambda);
    stick_to_floor(contact, cube, pressing);
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
template <class Body, class N>
DS_INLINE void rub_on_floor(const FloorContactOf<N>& contact, Body& cube, MaskOf<N> rubbing) {
    DS_ASSERT(!any(MaskOf<N>(rubbing & (contact.depth_sum <= N(0.f)))) && !any(contact.lambda < N(0.f)));
    const N mass = cube.cube_inverse_mass(), inertia = cube.cube_inverse_inertia();  // inverse
    const N coefficient = N(kDynamicFriction + kCubeExtraDynamicFriction) * cube.friction();
    const N per_depth = coefficient * N(kInverseSubstep) * contact.lambda / contact.depth_sum;
    N x[4], y[4], z[4], left[4];
    for (int i = 0; i < 4; i++) {
        x[i] = contact.arm[i].x;
        y[i] = contact.arm[i].y;
        z[i] = contact.arm[i].z;
        left[i] = per_depth * contact.depth[i];
    }
    DS_ROLLED
    for (int pass = 0; pass < kFrictionPasses; pass++) {
        N fx[4], fy[4], mx[4], my[4], mz[4];  // impulses and their moments
        for (int i = 0; i < 4; i++) {
            const N vx = cube.velocity.x + (cube.spin.y * z[i] - cube.spin.z * y[i]);
            const N vy = cube.velocity.y + (cube.spin.z * x[i] - cube.spin.x * z[i]);
            const N speed2 = maximum(vx * vx + vy * vy, N(kTinyLength2));
            const N speed = square_root(speed2), inverse2 = N(1.f) / speed2;
            const N about_z = x[i] * vy - y[i] * vx;
            const N weight = mass + inertia * (z[i] * z[i] + about_z * about_z * inverse2);
            const N inverse_weight = N(1.f) / weight;
            const N spent = minimum(left[i], N(kCornerPart) * speed * weight);
            left[i] = left[i] - spent;
            DS_ASSERT(!any(MaskOf<N>(rubbing & (left[i] < N(0.f)))));
            const N scale = spent * inverse_weight * inverse_weight * (speed * inverse2);
            fx[i] = -vx * scale;
            fy[i] = -vy * scale;
            mx[i] = -z[i] * fy[i];
            my[i] = z[i] * fx[i];
            mz[i] = -about_z * scale;
        }
        const auto sum = [](const N* v) { return (v[0] + v[1]) + (v[2] + v[3]); };
        const Vec3Of<N> force{sum(fx), sum(fy), N(0.f)}, moment{sum(mx), sum(my), sum(mz)};
        cube.velocity = select(rubbing, cube.velocity + force * mass, cube.velocity);
        cube.spin = select(rubbing, cube.spin + moment * inertia, cube.spin);
        rubbing = rubbing & (N(0.f) < sum(left));
        if (!any(rubbing)) return;
    }
}

// Approaches above the resting speed bounce.
template <class N>
DS_INLINE N bounce_of(N approach) {
    const N bounce = zero_unless(N(kRestingSpeed) < -approach, N(kRestitution));
    return maximum(-bounce * approach, N(0.f));
}

template <class Body, class N>
DS_INLINE void solve_cube_floor_velocity(const FloorContactOf<N>& contact, Body& cube) {
    const MaskOf<N> pressing = N(0.f) < contact.lambda;
    if (!any(pressing)) return;
    const auto r = to_world(cube, contact.anchor);
    const N wanted = bounce_of(approach_velocity_at(cube, r).z);
    const auto velocity = cube.velocity, spin = cube.spin;
    apply_impulse(cube, r, up<N>() * ((wanted - velocity_at(cube, r).z) / inverse_mass_at(cube, r, up<N>())));
    cube.velocity = select(pressing, cube.velocity, velocity);
    cube.spin = select(pressing, cube.spin, spin);
    rub_on_floor(contact, cube, pressing);
}

// The normal multiplier is the depth of the agent below the floor (its inverse mass is 1).
template <class Body, class N>
DS_INLINE void solve_agent_floor_position(FloorContactOf<N>& contact, Body& agent) {
    DS_ASSERT(agent.yaws_only);
    const N zero(0.f), depth = -agent.position.z;
    auto& previous = agent.previous_position;
    const MaskOf<N> touching = zero < depth;
    contact.lambda = zero_unless(touching, depth);
    if (!any(touching)) return;
    agent.position.z = select(touching, zero, agent.position.z);
    previous.z = select(touching, previous.z + old_overlap(depth, agent.approach_velocity.z), previous.z);
    const N dx = agent.position.x - previous.x, dy = agent.position.y - previous.y;
    const N limit = N(kStaticFriction) * agent.friction() * depth;
    const MaskOf<N> sticking = touching & (dx * dx + dy * dy < limit * limit);
    agent.position.x = select(sticking, previous.x, agent.position.x);
    agent.position.y = select(sticking, previous.y, agent.position.y);
}

// Applies one substep's friction at the four lower corners of an agent to its velocities.
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

template <class Body, class N>
DS_INLINE void solve_agent_floor_velocity(const FloorContactOf<N>& contact, Body& agent) {
    DS_ASSERT(agent.yaws_only);
    const MaskOf<N> pressing = N(0.f) < contact.lambda;
    if (!any(pressing)) return;
    const auto heading = heading_of(agent.rotation.w, agent.rotation.z);
    const auto friction = agent_corner_friction<N>(
        agent.velocity.x, agent.velocity.y, agent.spin.z, heading.cosine, heading.sine,
        N(kDynamicFriction) * agent.friction() * N(kInverseSubstep) * N(0.25f) * contact.lambda);
    agent.velocity.x = select(pressing, agent.velocity.x - friction.x, agent.velocity.x);
    agent.velocity.y = select(pressing, agent.velocity.y - friction.y, agent.velocity.y);
    agent.velocity.z = select(pressing, bounce_of(agent.approach_velocity.z), agent.velocity.z);
    agent.spin.z = select(pressing, agent.spin.z - N(kAgentInverseInertia) * friction.moment, agent.spin.z);
}

}  // namespace doorstep
