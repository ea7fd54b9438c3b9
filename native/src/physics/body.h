// A rigid body in the solver: a working copy of one slot of a world, with the variables of a substep.
#pragma once

#include "physics/box.h"
#include "physics/constants.h"

namespace doorstep {

// What a cube is made of: constants in worlds that play the reference's levels.
struct ReferenceMaterial {
    DS_METHOD float cube_inverse_mass() const { return kCubeInverseMass; }
    DS_METHOD float cube_inverse_inertia() const { return kCubeInverseInertia; }
    // Multiplies the coefficients of friction.
    DS_METHOD float friction() const { return 1.f; }
    DS_METHOD void be_made_of(ReferenceMaterial) {}
};

struct LevelMaterial {
    float inverse_mass, inverse_inertia, friction_factor;

    DS_METHOD float cube_inverse_mass() const { return inverse_mass; }
    DS_METHOD float cube_inverse_inertia() const { return inverse_inertia; }
    DS_METHOD float friction() const { return friction_factor; }
    DS_METHOD void be_made_of(LevelMaterial material) { *this = material; }
};

// The material is a base, which takes no memory if it is empty, in every compiler.
template <class Material>
struct BodyOf : Material {
    Vec3 position;
    Quat rotation;
    Vec3 velocity;  // linear
    Vec3 spin;      // angular velocity, world axes

    Vec3 previous_position;  // before the substep
    Quat previous_rotation;
    Vec3 approach_velocity;  // after integration, before contacts: decides restitution
    Vec3 approach_spin;

    Vec3 force;    // constant over the step
    float torque;  // about z

    Box box;
    float reach_x, reach_y;  // half extents of its bounds
    bool yaws_only;          // an agent: inverse inertia only about z
    bool stays_on_floor;     // an agent that holds nothing: put back on the floor after every substep
    bool nearly_upright;     // may use upright_contact()
    bool asleep;             // at rest: not integrated until a body hits it
};

// The same on a device, whose memory the host allocates.
static_assert(sizeof(BodyOf<ReferenceMaterial>) == 192 && sizeof(BodyOf<LevelMaterial>) == 192 + 12);

// Tilt up to which two boxes collide as if upright; see tilt_of(). 3e-6 is 0.2 degrees, 1 cm over the edge of a cube.
// Much more would hide the height at which a leaning cube is pressed, which decides how a row of cubes rocks.
constexpr float kNearlyUpright = 3e-6f;

template <class Body>
DS_INLINE float inverse_mass(const Body& body) { return body.yaws_only ? kAgentInverseMass : body.cube_inverse_mass(); }
template <class Body>
DS_INLINE float inverse_inertia(const Body& body) {
    return body.yaws_only ? kAgentInverseInertia : body.cube_inverse_inertia();
}

DS_INLINE Vec3 rotate(bool yaws_only, Quat q, Vec3 v) {
    return yaws_only ? rotate(heading_of(q.w, q.z), v) : rotate(q, v);
}
template <class Body>
DS_INLINE Vec3 to_world(const Body& body, Vec3 v) { return rotate(body.yaws_only, body.rotation, v); }
template <class Body>
DS_INLINE Vec3 to_local(const Body& body, Vec3 v) {
    return rotate(body.yaws_only, conjugate(body.rotation), v);
}

// Angular velocity gained by an angular impulse.
template <class Body>
DS_INLINE Vec3 spin_change(const Body& body, Vec3 moment) {
    const float inertia = inverse_inertia(body);
    return body.yaws_only ? Vec3{0.f, 0.f, inertia * moment.z} : moment * inertia;
}

// Generalised inverse mass of the point at arm r (from the body's origin), along n. Mueller et al. 2020, eq. 2.
template <class Body>
DS_INLINE float inverse_mass_at(const Body& body, Vec3 r, Vec3 n) {
    DS_ASSERT(inverse_mass(body) > 0.f && inverse_inertia(body) > 0.f);
    const Vec3 c = cross(r, n);
    return inverse_mass(body) + inverse_inertia(body) * (body.yaws_only ? c.z * c.z : dot(c, c));
}

// The same along a vector v of any length; inverse_v2 is 1 / |v|^2.
template <class Body>
DS_INLINE float inverse_mass_along(const Body& body, Vec3 r, Vec3 v, float inverse_v2) {
    DS_ASSERT(inverse_mass(body) > 0.f && !(inverse_v2 < 0.f));
    const Vec3 c = cross(r, v);
    return inverse_mass(body) + inverse_inertia(body) * ((body.yaws_only ? c.z * c.z : dot(c, c)) * inverse_v2);
}

template <class Body>
DS_INLINE Vec3 velocity_at(const Body& body, Vec3 r) { return body.velocity + cross(body.spin, r); }
template <class Body>
DS_INLINE Vec3 approach_velocity_at(const Body& body, Vec3 r) {
    return body.approach_velocity + cross(body.approach_spin, r);
}

// Turns an agent by a small angle about z, first order, normalised.
DS_INLINE void yaw(Quat& q, float angle) {
    const float d = 0.5f * angle;
    q = renormalize({q.w - d * q.z, 0.f, 0.f, q.z + d * q.w});
}

// For assertions: a rotation after it was turned, which normalises it; all zero if its squares overflowed.
DS_INLINE bool may_be_rotation(Quat q) {
    const float length2 = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z;
    return length2 == 0.f || may_be_unit(length2);
}

template <class Body>
DS_INLINE void turn(Body& body, Vec3 rotation) {
    if (body.yaws_only) yaw(body.rotation, rotation.z);
    else body.rotation = turned(body.rotation, rotation);
    DS_ASSERT(may_be_rotation(body.rotation));
}

// Applies a positional impulse at arm r; pairs apply it with opposite signs. Eq. 6-9.
template <class Body>
DS_INLINE void apply_position_impulse(Body& body, Vec3 r, Vec3 impulse) {
    body.position = body.position + impulse * inverse_mass(body);
    turn(body, spin_change(body, cross(r, impulse)));
}

// Displaces a body and its pose before the substep, so that it gains no velocity.
template <class Body>
DS_INLINE void shift(Body& body, Vec3 by) {
    body.position = body.position + by;
    body.previous_position = body.previous_position + by;
}

// How much of an overlap was not caused by this substep's motion: a door that rose into a body, an overlapping start.
// A margin excludes what contacts and joints solved later in a substep press into those solved before: it is force.
DS_INLINE float old_overlap(float overlap, float approach_speed) {
    constexpr float kSlack = 0.03f;
    DS_ASSERT(overlap > 0.f);
    return maximum(overlap - (maximum(-approach_speed, 0.f) * kSubstep + kSlack), 0.f);
}

// Friction at a point that slides with velocity v: the impulse is -v times this. `share` is mu lambda / h of the point,
// w its generalised inverse mass: min(share / w, |v|) / (w |v|), without normalising v.
DS_INLINE float friction_scale(float share, float v2, float inverse_v2, float weight) {
    DS_ASSERT(!(share < 0.f) && v2 > 0.f && !(weight <= 0.f));
    const float inverse = 1.f / weight, inverse_length = square_root(v2) * inverse_v2;
    return minimum(share * inverse * inverse_length, 1.f) * inverse;
}

template <class Body>
DS_INLINE void apply_impulse(Body& body, Vec3 r, Vec3 impulse) {
    body.velocity = body.velocity + impulse * inverse_mass(body);
    body.spin = body.spin + spin_change(body, cross(r, impulse));
}

// Position before the substep of a point of the body (local axes).
template <class Body>
DS_INLINE Vec3 previous_place(const Body& body, Vec3 local) {
    return body.previous_position + rotate(body.yaws_only, body.previous_rotation, local);
}

template <class Body>
DS_INLINE void refresh_box(Body& body) {
    DS_ASSERT(body.asleep || may_be_rotation(body.rotation));  // a sleeping one may have been given any
    if (body.yaws_only) {
        const Heading heading = heading_of(body.rotation.w, body.rotation.z);
        const Vec3 center{body.position.x, body.position.y, body.position.z + kAgentHalfExtent};
        body.box = upright_box(center, heading, {kAgentHalfExtent, kAgentHalfExtent, kAgentHalfExtent});
        body.nearly_upright = true;
        body.reach_x = body.reach_y = kAgentHalfExtent * (absolute(heading.cosine) + absolute(heading.sine));
        return;
    }
    body.box = turned_box(body.position, body.rotation, {kCubeHalfExtent, kCubeHalfExtent, kCubeHalfExtent});
    body.nearly_upright = tilt_of(body.rotation) <= kNearlyUpright;
    const Vec3 reach = reach_of(body.box);
    body.reach_x = reach.x;
    body.reach_y = reach.y;
}

// Semi-implicit Euler over one substep. The cube's inertia is isotropic, so there is no gyroscopic term.
template <class Body>
DS_INLINE void integrate(Body& body) {
    DS_ASSERT(!body.asleep);
    body.previous_position = body.position;
    body.previous_rotation = body.rotation;
    body.velocity.x += kSubstep * inverse_mass(body) * body.force.x;
    body.velocity.y += kSubstep * inverse_mass(body) * body.force.y;
    body.velocity.z -= kSubstep * kGravity;
    body.position = body.position + body.velocity * kSubstep;
    if (body.yaws_only) body.spin.z += kSubstep * kAgentInverseInertia * body.torque;
    turn(body, body.spin * kSubstep);
    body.approach_velocity = body.velocity;
    body.approach_spin = body.spin;
}

// Derives velocities from the corrected poses. Eq. 12 and algorithm 2 of the paper.
template <class Body>
DS_INLINE void derive_velocity(Body& body) {
    body.velocity = (body.position - body.previous_position) * kInverseSubstep;
    const Quat q = body.rotation, p = body.previous_rotation;
    DS_ASSERT(!body.asleep);
    if (body.yaws_only) {
        const float w = q.w * p.w + q.z * p.z, z = q.z * p.w - q.w * p.z;
        body.spin = {0.f, 0.f, (w < 0.f ? -2.f : 2.f) * kInverseSubstep * z};
        return;
    }
    const Quat d = q * conjugate(p);
    body.spin = Vec3{d.x, d.y, d.z} * ((d.w < 0.f ? -2.f : 2.f) * kInverseSubstep);
}

}  // namespace doorstep
