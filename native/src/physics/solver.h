// The general solver: advances bodies of one world that may touch each other, statics and the floor by one step.
//
// Every substep runs the narrow phase on the candidate pairs of the broad phase and one pass over the contacts, in
// positions and then in velocities, in the order of the reference environment: agents with each other and with cubes,
// everything with the floor, bodies with statics, cubes with cubes. What is solved last gives way least, so the floor
// holds a cube that an agent pushes, and the next cube of a row holds both. Three things deviate from it:
// - A joint is solved before statics, whose contacts are found after it, so that an agent or a cube that is dragged
//   into a wall is moved out of it before the substep ends.
// - Friction between stacked cubes comes before the floor's, or the upper one would slide away.
// - An agent that holds nothing is put back on the floor after every substep. Within it, contacts may lift it, so that
//   it follows a cube's face that moves upwards instead of braking it.
// Several worlds go through a substep together, so that what happens to a body alone is computed in lanes.
// Sleeping bodies are candidates that do not move; they wake in the substep in which an awake body overlaps them.
#pragma once

#include "physics/body_lanes.h"
#include "physics/box_box.h"
#include "physics/grab_joint.h"
#include "physics/pair_contact.h"

namespace doorstep {

struct StaticBox {
    Vec3 center, half;
};

// A candidate: bodies a and b, or body a and static b. Indices into the problem's arrays.
struct CandidatePair {
    uint8_t a, b;
};

struct HeldJoint {
    GrabJoint joint;
    int agent, cube;
};

// One world's bodies to be solved. `Agents`: the most that hold something.
template <int Bodies, int Statics, int Agents, class MaterialT = ReferenceMaterial>
struct SolverProblem {
    using Material = MaterialT;
    using Body = BodyOf<Material>;
    static constexpr int kMaxBodies = Bodies;
    static constexpr int kMaxJoints = Agents;
    static constexpr int kMaxBodyPairs = Bodies * (Bodies - 1) / 2;
    static constexpr int kMaxStaticPairs = Bodies * Statics;
    // Boxes this large touch at most a handful of others; further contacts are dropped and reported
    static constexpr int kMaxBodyContacts = 3 * Bodies;
    static constexpr int kMaxStaticContacts = 3 * Bodies;

    Body bodies[Bodies];
    int body_count;
    StaticBox statics[Statics];
    CandidatePair body_pairs[kMaxBodyPairs];
    CandidatePair static_pairs[kMaxStaticPairs];
    int body_pair_count, static_pair_count;
    HeldJoint joints[kMaxJoints];
    int joint_count;

    PairContact body_contacts[kMaxBodyContacts];
    PairContact static_contacts[kMaxStaticContacts];
    int body_contact_count, static_contact_count;
    FloorContact floor[Bodies];
    int dropped_contacts, dropped_body;  // number that did not fit, and a body of one of them
    BoxScratch boxes;
    Manifold manifold;  // of the current pair
};

template <class Body>
DS_INLINE bool overlap_of(const Body& a, const Box& b, bool b_upright, BoxScratch& scratch, Manifold& manifold) {
    if (b_upright && is_nearly_upright(a)) {
        const Overlap overlap = upright_contact(a.box, b, manifold);
        if (overlap != Overlap::kVertical) return overlap == Overlap::kContact;
    }
    return box_contact(a.box, b, scratch, manifold);
}

template <class Problem>
DS_NOINLINE void wake(Problem& problem, int i) {
    auto& body = problem.bodies[i];
    if (!body.asleep) return;
    DS_ASSERT(!body.yaws_only);  // only cubes sleep
    body.asleep = false;
    integrate(body);
    refresh_box(body);
    find_floor_contact(problem.floor[i], body);
}

template <class Problem>
DS_INLINE void drop_contact(Problem& problem, int body) {
    DS_ASSERT(body >= 0 && body < problem.body_count);
    problem.dropped_contacts++;
    problem.dropped_body = body;
}

template <class Problem>
DS_INLINE void find_body_contact(Problem& problem, CandidatePair pair) {
    DS_ASSERT(pair.a < pair.b && pair.b < problem.body_count);
    auto& a = problem.bodies[pair.a];
    auto& b = problem.bodies[pair.b];
    if (absolute(a.position.x - b.position.x) >= a.reach_x + b.reach_x) return;
    if (absolute(a.position.y - b.position.y) >= a.reach_y + b.reach_y) return;
    if (!overlap_of(a, b.box, is_nearly_upright(b), problem.boxes, problem.manifold)) return;
    wake(problem, pair.a);
    wake(problem, pair.b);
    if (problem.body_contact_count == Problem::kMaxBodyContacts) {
        drop_contact(problem, pair.a);
        return;
    }
    DS_ASSERT(problem.body_contact_count < Problem::kMaxBodyContacts);
    PairContact& contact = problem.body_contacts[problem.body_contact_count++];
    contact.a = static_cast<int8_t>(pair.a);
    contact.b = static_cast<int8_t>(pair.b);
    prepare_contact(problem.manifold, a, BodyPartner{b}, contact);
}

// Pairs of two sleeping bodies are skipped, and tested again whenever one of them has been woken.
template <class Problem>
DS_INLINE void find_body_contacts(Problem& problem) {
    problem.body_contact_count = 0;
    uint64_t tested[(Problem::kMaxBodyPairs + 63) / 64] = {};
    for (bool woken = true; woken;) {
        woken = false;
        for (int i = 0; i < problem.body_pair_count; i++) {
            if (tested[i / 64] >> (i % 64) & 1) continue;
            const CandidatePair pair = problem.body_pairs[i];
            const bool a_asleep = problem.bodies[pair.a].asleep, b_asleep = problem.bodies[pair.b].asleep;
            if (a_asleep && b_asleep) continue;
            tested[i / 64] |= uint64_t{1} << (i % 64);
            find_body_contact(problem, pair);
            woken |= a_asleep != problem.bodies[pair.a].asleep || b_asleep != problem.bodies[pair.b].asleep;
        }
    }
}

// A body farther than this from a box along x or y cannot touch it in any orientation.
template <class Body>
DS_INLINE bool is_clear_of(const Body& body, const StaticBox& box) {
    constexpr float kCubeRadius = 1.7321f * kCubeHalfExtent, kAgentRadius = 1.4143f * kAgentHalfExtent;
    const float radius = body.yaws_only ? kAgentRadius : kCubeRadius;
    return absolute(body.position.x - box.center.x) >= radius + box.half.x ||
           absolute(body.position.y - box.center.y) >= radius + box.half.y;
}

template <class Problem>
DS_INLINE void find_static_contacts(Problem& problem) {
    problem.static_contact_count = 0;
    int refreshed = -1;  // pairs of one body are consecutive
    for (int i = 0; i < problem.static_pair_count; i++) {
        const CandidatePair pair = problem.static_pairs[i];
        DS_ASSERT(pair.a < problem.body_count);
        auto& body = problem.bodies[pair.a];
        const StaticBox& box = problem.statics[pair.b];
        if (body.asleep || is_clear_of(body, box)) continue;
        if (refreshed != pair.a) refresh_box(body);
        refreshed = pair.a;
        if (absolute(body.position.x - box.center.x) >= body.reach_x + box.half.x) continue;
        if (absolute(body.position.y - box.center.y) >= body.reach_y + box.half.y) continue;
        const Box solid = upright_box(box.center, Heading{1.f, 0.f}, box.half);
        if (!overlap_of(body, solid, true, problem.boxes, problem.manifold)) continue;
        DS_ASSERT(may_be_unit(dot(problem.manifold.normal, problem.manifold.normal)));
        if (problem.static_contact_count == Problem::kMaxStaticContacts) {
            drop_contact(problem, pair.a);
            continue;
        }
        DS_ASSERT(problem.static_contact_count < Problem::kMaxStaticContacts);
        PairContact& contact = problem.static_contacts[problem.static_contact_count++];
        contact.a = static_cast<int8_t>(pair.a);
        contact.b = -1;
        prepare_contact(problem.manifold, body, StaticPartner{}, contact);
    }
}

// The contacts between bodies that involve an agent, or those that do not. A row of cubes is solved from its far end.
template <class Problem>
DS_NOINLINE void solve_body_positions(Problem& problem, bool of_agents) {
    for (int i = problem.body_contact_count - 1; i >= 0; i--) {
        PairContact& contact = problem.body_contacts[i];
        auto& a = problem.bodies[contact.a];
        if (a.yaws_only == of_agents) solve_contact_position(contact, a, BodyPartner{problem.bodies[contact.b]});
    }
}

template <class Problem>
DS_INLINE void solve_joints(Problem& problem) {
    for (int i = 0; i < problem.joint_count; i++) {
        const HeldJoint& held = problem.joints[i];
        DS_ASSERT(held.agent >= 0 && held.agent < held.cube && held.cube < problem.body_count);
        solve_joint(held.joint, problem.bodies[held.agent], problem.bodies[held.cube]);
    }
}

template <class Problem>
DS_INLINE void solve_static_positions(Problem& problem) {
    for (int i = 0; i < problem.static_contact_count; i++) {
        PairContact& contact = problem.static_contacts[i];
        solve_contact_position(contact, problem.bodies[contact.a], StaticPartner{});
    }
}

// As solve_body_positions(); stacked cubes are solved together with the contacts of agents.
template <class Problem>
DS_NOINLINE void solve_body_velocities(Problem& problem, bool of_agents) {
    for (int i = problem.body_contact_count - 1; i >= 0; i--) {
        const PairContact& contact = problem.body_contacts[i];
        auto& a = problem.bodies[contact.a];
        if ((a.yaws_only || is_stacked(contact.normal)) == of_agents)
            solve_contact_velocity(contact, a, BodyPartner{problem.bodies[contact.b]});
    }
}

template <class Problem>
DS_INLINE void solve_static_velocities(Problem& problem) {
    for (int i = 0; i < problem.static_contact_count; i++) {
        const PairContact& contact = problem.static_contacts[i];
        solve_contact_velocity(contact, problem.bodies[contact.a], StaticPartner{});
    }
}

template <class Problem>
DS_INLINE void put_agents_on_floor(Problem& problem) {
    for (int i = 0; i < problem.body_count; i++) {
        auto& body = problem.bodies[i];
        if (body.stays_on_floor) body.position.z = body.velocity.z = 0.f;
    }
}

// ---- What happens to each body alone

struct BeginAgent {
    static constexpr bool kOfAgents = true;
    static constexpr BodyUse kUse{32, 48, 0, 0};
    template <class Body, class Floor>
    static DS_METHOD void call(Body& agent, Floor&) {
        integrate(agent);
        refresh_box(agent);
    }
};
struct BeginCube {
    static constexpr bool kOfAgents = false;
    static constexpr BodyUse kUse{32, 48, 8, 22};
    template <class Body, class Floor>
    static DS_METHOD void call(Body& cube, Floor& floor) {
        integrate(cube);
        refresh_box(cube);
        find_floor_contact(floor, cube);
    }
};

struct PlaceAgent {
    static constexpr bool kOfAgents = true;
    static constexpr BodyUse kUse{24, 16, 0, 8};
    template <class Body, class Floor>
    static DS_METHOD void call(Body& agent, Floor& floor) { solve_agent_floor_position(floor, agent); }
};
struct PlaceCube {
    static constexpr bool kOfAgents = false;
    static constexpr BodyUse kUse{32, 16, 8, 8};
    template <class Body, class Floor>
    static DS_METHOD void call(Body& cube, Floor& floor) { solve_cube_floor_position(floor, cube); }
};

struct RubAgent {
    static constexpr bool kOfAgents = true;
    static constexpr BodyUse kUse{24, 16, 8, 0};
    template <class Body, class Floor>
    static DS_METHOD void call(Body& agent, Floor& floor) { solve_agent_floor_velocity(floor, agent); }
};
struct RubCube {
    static constexpr bool kOfAgents = false;
    static constexpr BodyUse kUse{32, 16, 22, 0};
    template <class Body, class Floor>
    static DS_METHOD void call(Body& cube, Floor& floor) { solve_cube_floor_velocity(floor, cube); }
};

// As those, of bodies that touch no others, so that nothing comes before the floor.
template <class Rub>
struct DeriveAndRub : Rub {
    template <class Body, class Floor>
    static DS_METHOD void call(Body& body, Floor& floor) {
        derive_velocity(body);
        Rub::call(body, floor);
    }
};

// ---- The step

// Problems that are solved together, in any order. Lanes of vectors take them from a list.
template <class ProblemT, int Most>
struct ProblemList {
    using Problem = ProblemT;
    static constexpr int kMost = Most;
    int count;
    Problem** listed;

    DS_METHOD Problem& operator[](int k) const { return *listed[k]; }
};

// Moves the problems without contacts between bodies to the front; returns their number.
template <class List>
DS_INLINE int bring_lone_forward(List problems) {
    int lone = 0;
    for (int k = 0; k < problems.count; k++) {
        auto* const problem = problems.listed[k];
        if (problem->body_contact_count) continue;
        problems.listed[k] = problems.listed[lone];
        problems.listed[lone++] = problem;
    }
    return lone;
}

// Calls operation(problem) for the problems of a worker's share.
template <class Problems, class Share, class Operation>
DS_INLINE void for_problems(const Problems& problems, Share share, const Operation& operation) {
    constexpr int kMost = Problems::kMost;
    for (int k = share.solver(kMost); k >= 0 && k < problems.count; k += share.solvers(kMost))
        operation(problems[k]);
}

// What contacts between bodies and the floor do to velocities.
template <class Crew, class Problems, class Awake>
DS_INLINE void solve_velocities(Crew crew, Problems problems, const Awake& awake) {
    crew.each([&](auto share) {
        const auto derive = [](auto& body, auto&) { derive_velocity(body); };
        for_awake_bodies(problems, share, derive, derive);
    });
    crew.each([&](auto share) {
        for_problems(problems, share, [](auto& problem) { solve_body_velocities(problem, /*of_agents=*/true); });
    });
    crew.each([&](auto share) { awake.template call_others<RubAgent, RubCube>(share); });
}

// The workers of a crew share the bodies and the problems, and meet after each part of a substep: crew.each(part) calls
// part(share) for the share of every worker.
template <FloatLanes Float, class Crew, class Problems>
DS_NOINLINE void solve_step(Crew crew, Problems problems) {
    AwakeBodies<Float, Problems> awake;
    awake.find(problems, 0);
    for (int substep = 0; substep < kSubsteps; substep++) {
        crew.each([&](auto share) { awake.template call<BeginAgent, BeginCube>(share); });
        crew.each([&](auto share) {
            for_problems(problems, share, [](auto& problem) {
                find_body_contacts(problem);
                solve_body_positions(problem, /*of_agents=*/true);
            });
        });
        int lone = 0;  // problems at the front, without contacts between bodies
        if constexpr (Float::kLanes > 1) {
            lone = bring_lone_forward(problems);
            awake.find(problems, lone);
        }
        crew.each([&](auto share) { awake.template call<PlaceAgent, PlaceCube>(share); });
        crew.each([&](auto share) {
            for_problems(problems, share, [](auto& problem) {
                solve_joints(problem);
                find_static_contacts(problem);
                solve_static_positions(problem);
                solve_body_positions(problem, /*of_agents=*/false);
            });
        });
        if constexpr (Float::kLanes == 1) {
            solve_velocities(crew, problems, awake);
        } else {
            crew.each([&](auto share) {
                awake.template call_lone<DeriveAndRub<RubAgent>, DeriveAndRub<RubCube>>(share);
            });
            solve_velocities(crew, Problems{problems.count - lone, problems.listed + lone}, awake);
        }
        crew.each([&](auto share) {
            for_problems(problems, share, [](auto& problem) {
                solve_static_velocities(problem);
                solve_body_velocities(problem, /*of_agents=*/false);
                put_agents_on_floor(problem);
            });
        });
    }
}

}  // namespace doorstep
