// Solving a contact of a body with another body or with a static box.
//
// Extended position-based dynamics (Mueller, Macklin, Chentanez, Jeschke, Kim: "Detailed Rigid Body Simulation with
// Extended Position Based Dynamics", SCA 2020), one position iteration per substep, no compliance. The up to four
// points of a manifold are collapsed to their depth-weighted mean with the largest depth d:
//     position pass   lambda = c / (w_a + w_b) along the normal n, where c is the overlap left at the anchors, then
//                     static friction: the tangential slip since the start of the substep is undone if that needs less
//                     than mu_s lambda. Overlap older than the substep is removed first by displacing the bodies, which
//                     changes neither orientation nor velocity.
//     velocity pass   the normal velocity becomes -e v0 (v0: approach, e = 0 at rest), which also removes the velocity
//                     that separating the bodies added; then friction at each point i with its share d_i / sum(d) of
//                     the normal impulse: min(mu_d lambda d_i / (h sum(d) w), |v_t|) / w
// The clamp by |v_t| comes before the last division by w only for the shared impulse; clamping the other way
// overshoots for bodies with w < 1.
//
// slide.h has the same passes in the plane, for agents that touch only walls; a native test compares them.
#pragma once

#include "physics/body.h"
#include "physics/contact.h"

namespace doorstep {

struct PairContact {
    int8_t a, b;  // indices of bodies; b < 0: a static box
    int16_t count;
    Vec3 normal;
    Vec3 anchor_a;  // deepest common point on each side: local to a; local to b, or world for a static box
    Vec3 anchor_b;
    float depth_sum;
    float approach_speed;    // along the normal, negative when closing
    float dynamic_friction;  // of the pair
    float lambda;            // normal multiplier of this substep
    Vec3 point[4];
    float depth[4];
};

// Overlapping bodies are separated by at most this per substep, or they could be pushed through a wall, metres.
constexpr float kMostParting = 0.2f;

// Whether a normal belongs to stacked boxes, rather than to boxes side by side.
DS_INLINE bool is_stacked(Vec3 n) { return absolute(n.z) >= 0.7071f; }

// Direction of separation: along the normal of stacked boxes, otherwise horizontal, far enough to remove the overlap
// along the normal. Following a tilted normal would let a cube that is pressed against a wall climb it.
DS_INLINE Vec3 parting_direction(Vec3 n) {
    if (is_stacked(n)) return n;
    const float inverse = 1.f / (n.x * n.x + n.y * n.y);
    return {n.x * inverse, n.y * inverse, 0.f};
}

// The part of a slip or sliding velocity that friction opposes.
DS_INLINE Vec3 rubbing(Vec3 v, Vec3 n) { return v - n * dot(n, v); }

// Body pairs and body-static pairs share the code: the static side of `Partner` does nothing.
struct StaticPartner {
    DS_METHOD Vec3 arm(Vec3) const { return {0.f, 0.f, 0.f}; }
    DS_METHOD Vec3 place(Vec3 anchor, Vec3) const { return anchor; }
    DS_METHOD float weight(Vec3, Vec3) const { return 0.f; }
    DS_METHOD float weight_along(Vec3, Vec3, float) const { return 0.f; }
    DS_METHOD void push(Vec3, Vec3) {}
    template <class Body>
    DS_METHOD void part(Body& a, Vec3 n, float distance) {
        shift(a, parting_direction(n) * distance);
    }
    DS_METHOD void kick(Vec3, Vec3) {}
    DS_METHOD Vec3 slip(Vec3, Vec3) const { return {0.f, 0.f, 0.f}; }
    DS_METHOD Vec3 velocity(Vec3) const { return {0.f, 0.f, 0.f}; }
    DS_METHOD Vec3 approach(Vec3) const { return {0.f, 0.f, 0.f}; }
    DS_METHOD Vec3 from_origin(Vec3) const { return {0.f, 0.f, 0.f}; }
    DS_METHOD Vec3 anchor(Vec3 point) const { return point; }
    DS_METHOD float extra_friction() const { return 0.f; }
};

template <class Body>
struct BodyPartner {
    Body& body;
    DS_METHOD Vec3 arm(Vec3 anchor) const { return to_world(body, anchor); }
    DS_METHOD Vec3 place(Vec3, Vec3 r) const { return body.position + r; }
    DS_METHOD float weight(Vec3 r, Vec3 n) const { return inverse_mass_at(body, r, n); }
    DS_METHOD float weight_along(Vec3 r, Vec3 v, float inverse_v2) const {
        return inverse_mass_along(body, r, v, inverse_v2);
    }
    DS_METHOD void push(Vec3 r, Vec3 impulse) { apply_position_impulse(body, r, -impulse); }
    DS_METHOD void part(Body& a, Vec3 n, float distance) {
        const float wa = inverse_mass(a), wb = inverse_mass(body);
        DS_ASSERT(distance > 0.f && &a != &body);
        const float share = minimum(distance, kMostParting) / (wa + wb);
        const Vec3 direction = parting_direction(n);
        shift(a, direction * (wa * share));
        shift(body, direction * (-wb * share));
    }
    DS_METHOD void kick(Vec3 r, Vec3 impulse) { apply_impulse(body, r, -impulse); }
    DS_METHOD Vec3 slip(Vec3 anchor, Vec3 r) const { return body.position + r - previous_place(body, anchor); }
    DS_METHOD Vec3 velocity(Vec3 r) const { return velocity_at(body, r); }
    DS_METHOD Vec3 approach(Vec3 r) const { return approach_velocity_at(body, r); }
    DS_METHOD Vec3 from_origin(Vec3 point) const { return point - body.position; }
    DS_METHOD Vec3 anchor(Vec3 point) const { return to_local(body, point - body.position); }
    DS_METHOD float extra_friction() const { return body.yaws_only ? 0.f : kCubeExtraDynamicFriction; }
};

// From the manifold of two boxes at their poses after integration.
template <class Partner, class Body>
DS_INLINE void prepare_contact(const Manifold& manifold, const Body& a, const Partner& b, PairContact& contact) {
    DS_ASSERT(has_points(manifold));
    Vec3 weighted{0.f, 0.f, 0.f};
    float depth_sum = 0.f, depth_max = 0.f;
    contact.count = static_cast<int16_t>(manifold.count);
    for (int i = 0; i < manifold.count; i++) {
        contact.point[i] = manifold.point[i];
        contact.depth[i] = manifold.depth[i];
        weighted = weighted + manifold.point[i] * manifold.depth[i];
        depth_sum += manifold.depth[i];
        depth_max = maximum(depth_max, manifold.depth[i]);
    }
    DS_ASSERT(!(depth_sum < depth_max));
    const Vec3 n = manifold.normal, middle = weighted * (1.f / depth_sum);
    const Vec3 on_a = middle - n * (0.5f * depth_max), on_b = middle + n * (0.5f * depth_max);
    contact.normal = n;
    contact.depth_sum = depth_sum;
    contact.lambda = 0.f;
    contact.anchor_a = to_local(a, on_a - a.position);
    contact.anchor_b = b.anchor(on_b);
    contact.approach_speed = dot(n, approach_velocity_at(a, on_a - a.position) - b.approach(b.from_origin(on_b)));
    contact.dynamic_friction =
        (kDynamicFriction + (a.yaws_only ? 0.f : kCubeExtraDynamicFriction) + b.extra_friction()) * a.friction();
}

template <class Partner, class Body>
DS_INLINE void solve_contact_position(PairContact& contact, Body& a, Partner b) {
    const Vec3 n = contact.normal;
    DS_ASSERT(contact.lambda == 0.f);
    Vec3 ra = to_world(a, contact.anchor_a), rb = b.arm(contact.anchor_b);
    float overlap = dot(n, b.place(contact.anchor_b, rb) - (a.position + ra));
    if (!(overlap > 0.f)) return;
    const float old = old_overlap(overlap, contact.approach_speed);
    if (old > 0.f) {
        b.part(a, n, old);
        overlap -= old;
    }
    const float lambda = overlap / (inverse_mass_at(a, ra, n) + b.weight(rb, n));
    DS_ASSERT(!(lambda < 0.f));
    contact.lambda = lambda;
    apply_position_impulse(a, ra, n * lambda);
    b.push(rb, n * lambda);

    ra = to_world(a, contact.anchor_a);
    rb = b.arm(contact.anchor_b);
    Vec3 slip = a.position + ra - previous_place(a, contact.anchor_a) - b.slip(contact.anchor_b, rb);
    slip = rubbing(slip, n);
    const float distance2 = dot(slip, slip);
    if (!(distance2 > kTinyLength2)) return;
    const float inverse2 = 1.f / distance2;
    const float weight = inverse_mass_along(a, ra, slip, inverse2) + b.weight_along(rb, slip, inverse2);
    DS_ASSERT(!(weight <= 0.f));
    const float most = kStaticFriction * a.friction() * lambda * weight;
    if (!(distance2 < most * most)) return;
    const Vec3 friction = slip * (-1.f / weight);
    apply_position_impulse(a, ra, friction);
    b.push(rb, friction);
}

template <class Partner, class Body>
DS_INLINE void solve_contact_velocity(const PairContact& contact, Body& a, Partner b) {
    if (!(contact.lambda > 0.f)) return;
    DS_ASSERT(contact.count >= 1 && contact.count <= 4);
    DS_ASSERT(!(contact.depth_sum <= 0.f) && !(contact.dynamic_friction < 0.f));
    const Vec3 n = contact.normal;
    const Vec3 ra = to_world(a, contact.anchor_a), rb = b.arm(contact.anchor_b);
    const float speed = dot(n, velocity_at(a, ra) - b.velocity(rb));
    const float bounce = -contact.approach_speed > kRestingSpeed ? kRestitution : 0.f;
    const float wanted = maximum(-bounce * contact.approach_speed, 0.f);
    const Vec3 impulse = n * ((wanted - speed) / (inverse_mass_at(a, ra, n) + b.weight(rb, n)));
    apply_impulse(a, ra, impulse);
    b.kick(rb, impulse);

    const float per_depth = contact.dynamic_friction * kInverseSubstep * contact.lambda / contact.depth_sum;
    for (int i = 0; i < contact.count; i++) {
        const Vec3 pa = contact.point[i] - a.position, pb = b.from_origin(contact.point[i]);
        const Vec3 v = rubbing(velocity_at(a, pa) - b.velocity(pb), n);
        const float speed2 = dot(v, v);
        if (!(speed2 > kTinyLength2)) continue;
        const float inverse2 = 1.f / speed2;
        const float weight = inverse_mass_along(a, pa, v, inverse2) + b.weight_along(pb, v, inverse2);
        const Vec3 friction = v * -friction_scale(per_depth * contact.depth[i], speed2, inverse2, weight);
        apply_impulse(a, pa, friction);
        b.kick(pb, friction);
    }
}

}  // namespace doorstep
