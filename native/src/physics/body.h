// A rigid body in the solver: a working copy of one slot of a world, with the variables of a substep.
#pragma once

#include "physics/box.h"
#include "physics/constants.h"

namespace doorstep {

// What a cube is made of: constants in worlds that play the reference's levels.
template <class Number>
struct ReferenceMaterialOf {
    template <class Other>
    using With = ReferenceMaterialOf<Other>;

    DS_METHOD Number cube_inverse_mass() const { return Number(kCubeInverseMass); }
    DS_METHOD Number cube_inverse_inertia() const { return Number(kCubeInverseInertia); }
    // Multiplies the coefficients of friction.
    DS_METHOD Number friction() const { return Number(1.f); }
    DS_METHOD void be_made_of(ReferenceMaterialOf) {}
};
using ReferenceMaterial = ReferenceMaterialOf<float>;

template <class Number>
struct LevelMaterialOf {
    template <class Other>
    using With = LevelMaterialOf<Other>;
    Number inverse_mass, inverse_inertia, friction_factor;

    DS_METHOD Number cube_inverse_mass() const { return inverse_mass; }
    DS_METHOD Number cube_inverse_inertia() const { return inverse_inertia; }
    DS_METHOD Number friction() const { return friction_factor; }
    DS_METHOD void be_made_of(LevelMaterialOf material) { *this = material; }
};
using LevelMaterial = LevelMaterialOf<float>;

// The fields are words, in rows of eight that are used together: see body_lanes.h.
template <class Number>
struct BodyFields {
    Vec3Of<Number> position;
    QuatOf<Number> rotation;
    Vec3Of<Number> velocity;  // linear
    Vec3Of<Number> spin;      // angular velocity, world axes

    Vec3Of<Number> previous_position;  // before the substep
    QuatOf<Number> previous_rotation;
    Vec3Of<Number> approach_velocity;  // after integration, before contacts: decides restitution
    Vec3Of<Number> approach_spin;

    Vec3Of<Number> force;  // constant over the step
    Number torque;         // about z

    alignas(Number) bool yaws_only;  // an agent: inverse inertia only about z
    bool stays_on_floor;             // an agent that holds nothing: put back on the floor after every substep
    bool asleep;                     // at rest: not integrated until a body hits it

    Number reach_x, reach_y;  // half extents of its bounds
    BoxOf<Number> box;
};

constexpr int kBodyWords = sizeof(BodyFields<float>) / 4;

// A body, or one in each lane of a Number: all agents, or all cubes. The material is a base, which takes no memory if
// it is empty, in every compiler.
template <class MaterialT, class NumberT = float>
struct BodyOf : BodyFields<NumberT>, MaterialT::template With<NumberT> {
    using Material = MaterialT;
    using Number = NumberT;
    using Mask = MaskOf<Number>;
    using Vector = Vec3Of<Number>;
};

// The same on a device, whose memory the host allocates.
static_assert(sizeof(BodyOf<ReferenceMaterial>) == 192 && sizeof(BodyOf<LevelMaterial>) == 192 + 12);

// Tilt up to which two boxes collide as if upright; see tilt_of(). 3e-6 is 0.2 degrees, 1 cm over the edge of a cube.
// Much more would hide the height at which a leaning cube is pressed, which decides how a row of cubes rocks.
constexpr float kNearlyUpright = 3e-6f;

// Whether it may use upright_contact().
template <class Body>
DS_INLINE bool is_nearly_upright(const Body& body) {
    return body.yaws_only || tilt_of(body.rotation) <= kNearlyUpright;
}

template <class Body>
DS_INLINE typename Body::Number inverse_mass(const Body& body) {
    return body.yaws_only ? typename Body::Number(kAgentInverseMass) : body.cube_inverse_mass();
}
template <class Body>
DS_INLINE typename Body::Number inverse_inertia(const Body& body) {
    return body.yaws_only ? typename Body::Number(kAgentInverseInertia) : body.cube_inverse_inertia();
}

template <class N>
DS_INLINE Vec3Of<N> rotate(bool yaws_only, QuatOf<N> q, Vec3Of<N> v) {
    return yaws_only ? rotate(heading_of(q.w, q.z), v) : rotate(q, v);
}
template <class Body>
DS_INLINE auto to_world(const Body& body, typename Body::Vector v) { return rotate(body.yaws_only, body.rotation, v); }
template <class Body>
DS_INLINE auto to_local(const Body& body, typename Body::Vector v) {
    return rotate(body.yaws_only, conjugate(body.rotation), v);
}

// Angular velocity gained by an angular impulse.
template <class Body>
DS_INLINE typename Body::Vector spin_change(const Body& body, typename Body::Vector moment) {
    using Number = typename Body::Number;
    const Number inertia = inverse_inertia(body);
    return body.yaws_only ? typename Body::Vector{Number(0.f), Number(0.f), inertia * moment.z} : moment * inertia;
}

// Generalised inverse mass of the point at arm r (from the body's origin), along n. Mueller et al. 2020, eq. 2.
template <class Body>
DS_INLINE auto inverse_mass_at(const Body& body, typename Body::Vector r, typename Body::Vector n) {
    DS_ASSERT(all(0.f < inverse_mass(body)) && all(0.f < inverse_inertia(body)));
    const auto c = cross(r, n);
    return inverse_mass(body) + inverse_inertia(body) * (body.yaws_only ? c.z * c.z : dot(c, c));
}

// The same along a vector v of any length; inverse_v2 is 1 / |v|^2.
template <class Body>
DS_INLINE auto inverse_mass_along(const Body& body, typename Body::Vector r, typename Body::Vector v,
                                  typename Body::Number inverse_v2) {
    DS_ASSERT(all(0.f < inverse_mass(body)) && !any(inverse_v2 < 0.f));
    const auto c = cross(r, v);
    return inverse_mass(body) + inverse_inertia(body) * ((body.yaws_only ? c.z * c.z : dot(c, c)) * inverse_v2);
}

template <class Body>
DS_INLINE auto velocity_at(const Body& body, typename Body::Vector r) { return body.velocity + cross(body.spin, r); }
template <class Body>
DS_INLINE auto approach_velocity_at(const Body& body, typename Body::Vector r) {
    return body.approach_velocity + cross(body.approach_spin, r);
}

// Turns an agent by a small angle about z, first order, normalised.
template <class N>
DS_INLINE void yaw(QuatOf<N>& q, N angle) {
    const N d = N(0.5f) * angle;
    q = renormalize(QuatOf<N>{q.w - d * q.z, N(0.f), N(0.f), q.z + d * q.w});
}

// For assertions: a rotation after it was turned, which normalises it; all zero if its squares overflowed, and not finite
// if they were denormal.
DS_INLINE bool may_be_rotation(Quat q) {
    const float squares = length2(q);
    return squares == 0.f || may_be_unit(squares);
}
template <class N>
DS_INLINE bool may_be_rotation(QuatOf<N>) { return true; }  // lanes without a body of their own have any

template <class Body>
DS_INLINE void turn(Body& body, typename Body::Vector rotation) {
    if (body.yaws_only) yaw(body.rotation, rotation.z);
    else body.rotation = turned(body.rotation, rotation);
    DS_ASSERT(may_be_rotation(body.rotation));
}

// Applies a positional impulse at arm r; pairs apply it with opposite signs. Eq. 6-9.
template <class Body>
DS_INLINE void apply_position_impulse(Body& body, typename Body::Vector r, typename Body::Vector impulse) {
    body.position = body.position + impulse * inverse_mass(body);
    turn(body, spin_change(body, cross(r, impulse)));
}

// The same in the lanes of a mask. In the others r and the impulse may be anything, also not a number.
template <class Body>
DS_INLINE void apply_position_impulse(Body& body, typename Body::Mask mask, typename Body::Vector r,
                                      typename Body::Vector impulse) {
    const auto position = body.position;
    const auto rotation = body.rotation;
    body.position = select(mask, position + impulse * inverse_mass(body), position);
    turn(body, zero_unless(mask, spin_change(body, cross(r, impulse))));
    body.rotation = select(mask, body.rotation, rotation);
}

// Displaces a body and its pose before the substep, so that it gains no velocity.
template <class Body>
DS_INLINE void shift(Body& body, typename Body::Vector by) {
    body.position = body.position + by;
    body.previous_position = body.previous_position + by;
}

// How much of an overlap was not caused by this substep's motion: a door that rose into a body, an overlapping start.
// A margin excludes what contacts and joints solved later in a substep press into those solved before: it is force.
template <class N>
DS_INLINE N old_overlap(N overlap, N approach_speed) {
    constexpr float kSlack = 0.03f;
    return maximum(overlap - (maximum(-approach_speed, N(0.f)) * N(kSubstep) + N(kSlack)), N(0.f));
}

// Friction at a point that slides with velocity v: the impulse is -v times this. `share` is mu lambda / h of the point,
// w its generalised inverse mass: min(share / w, |v|) / (w |v|), without normalising v.
DS_INLINE float friction_scale(float share, float v2, float inverse_v2, float weight) {
    DS_ASSERT(!(share < 0.f) && v2 > 0.f && !(weight <= 0.f));
    const float inverse = 1.f / weight, inverse_length = square_root(v2) * inverse_v2;
    return minimum(share * inverse * inverse_length, 1.f) * inverse;
}

template <class Body>
DS_INLINE void apply_impulse(Body& body, typename Body::Vector r, typename Body::Vector impulse) {
    body.velocity = body.velocity + impulse * inverse_mass(body);
    body.spin = body.spin + spin_change(body, cross(r, impulse));
}

// Position before the substep of a point of the body (local axes).
template <class Body>
DS_INLINE auto previous_place(const Body& body, typename Body::Vector local) {
    return body.previous_position + rotate(body.yaws_only, body.previous_rotation, local);
}

template <class Body>
DS_INLINE void refresh_box(Body& body) {
    using Number = typename Body::Number;
    DS_ASSERT(body.asleep || may_be_rotation(body.rotation));  // a sleeping one may have been given any
    const Number half(body.yaws_only ? kAgentHalfExtent : kCubeHalfExtent);
    if (body.yaws_only) {
        const auto heading = heading_of(body.rotation.w, body.rotation.z);
        const typename Body::Vector center{body.position.x, body.position.y, body.position.z + half};
        body.box = upright_box(center, heading, {half, half, half});
        body.reach_x = body.reach_y = half * (absolute(heading.cosine) + absolute(heading.sine));
        return;
    }
    body.box = turned_box(body.position, body.rotation, {half, half, half});
    const auto reach = reach_of(body.box);
    body.reach_x = reach.x;
    body.reach_y = reach.y;
}

// Semi-implicit Euler over one substep. The cube's inertia is isotropic, so there is no gyroscopic term.
template <class Body>
DS_INLINE void integrate(Body& body) {
    using Number = typename Body::Number;
    DS_ASSERT(!body.asleep);
    body.previous_position = body.position;
    body.previous_rotation = body.rotation;
    body.velocity.x = body.velocity.x + Number(kSubstep) * inverse_mass(body) * body.force.x;
    body.velocity.y = body.velocity.y + Number(kSubstep) * inverse_mass(body) * body.force.y;
    body.velocity.z = body.velocity.z - Number(kSubstep * kGravity);
    body.position = body.position + body.velocity * Number(kSubstep);
    if (body.yaws_only) body.spin.z = body.spin.z + Number(kSubstep * kAgentInverseInertia) * body.torque;
    turn(body, body.spin * Number(kSubstep));
    body.approach_velocity = body.velocity;
    body.approach_spin = body.spin;
}

// Derives velocities from the corrected poses. Eq. 12 and algorithm 2 of the paper.
template <class Body>
DS_INLINE void derive_velocity(Body& body) {
    using Number = typename Body::Number;
    const Number zero(0.f), minus(-2.f), plus(2.f), per_second(kInverseSubstep);
    body.velocity = (body.position - body.previous_position) * per_second;
    const auto q = body.rotation, p = body.previous_rotation;
    DS_ASSERT(!body.asleep);
    if (body.yaws_only) {
        const Number w = q.w * p.w + q.z * p.z, z = q.z * p.w - q.w * p.z;
        body.spin = {zero, zero, select(w < zero, minus, plus) * per_second * z};
        return;
    }
    const auto d = q * conjugate(p);
    body.spin = typename Body::Vector{d.x, d.y, d.z} * (select(d.w < zero, minus, plus) * per_second);
}

}  // namespace doorstep
