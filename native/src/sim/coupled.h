// Moves the bodies of a coupled world: those that may touch each other, with everything they may touch.
#pragma once

#include "physics/solver.h"
#include "sim/health.h"
#include "sim/motion.h"

namespace doorstep {

// ---- Into the solver

// Slots of the problem for the chosen bodies, in body order.
template <class W>
DS_INLINE void load_bodies(const W& world, Participants chosen, Each<const Path> paths, Each<const Action> actions,
                           CoupledWorld<W>& coupled) {
    Problem<W>& problem = coupled.problem;
    problem.body_count = 0;
    for (uint32_t bits = chosen.bodies; bits;) {
        const int i = take_lowest_bit(bits), slot = problem.body_count++;
        DS_ASSERT(i < world.num_bodies() && slot <= i);
        const bool is_agent = world.is_agent(i);
        coupled.body_of[slot] = i;
        coupled.slot_of[i] = slot;
        auto& body = problem.bodies[slot];
        body.position = world.bodies.position(i);
        body.rotation = world.bodies.rotation(i);
        body.velocity = world.bodies.velocity(i);
        body.spin = world.bodies.spin(i);
        body.yaws_only = is_agent;
        body.stays_on_floor = is_agent && body.position.z == 0.f && world.held_by(i) < 0;
        body.asleep = !(chosen.awake >> i & 1);
        body.force = is_agent ? force_of(actions[i], world.bodies.heading(i), world.terms().force_per_amount())
                              : Vec3{0.f, 0.f, 0.f};
        body.torque = is_agent ? torque_of(actions[i], world.terms().torque_per_turn()) : 0.f;
        coupled.areas[slot] = is_agent ? grown(paths[i].area, kContactMargin) : sweep_of(world, i);
        problem.floor[slot].touched = 0.f;
        body.be_made_of(world.terms().of_cubes());
        if (body.asleep) refresh_box(body);
    }
}

template <class W>
DS_INLINE void load_joints(const W& world, CoupledWorld<W>& coupled) {
    Problem<W>& problem = coupled.problem;
    for (int a = 0; a < world.num_agents(); a++)
        if (const int cube = world.held_by(a); cube >= 0) {
            const int agent_slot = coupled.slot_of[a], cube_slot = coupled.slot_of[cube];
            DS_ASSERT(coupled.body_of[agent_slot] == a && coupled.body_of[cube_slot] == cube);  // both are solved
            problem.joints[problem.joint_count++] = {world.grabs.joint[a], agent_slot, cube_slot};
        }
}

// ---- Out of the solver

template <class W>
DS_INLINE bool is_held(const W& world, int cube) {
    for (int a = 0; a < world.num_agents(); a++)
        if (world.grabs.held[a] == cube) return true;
    return false;
}

// A cube flat on the floor that moves less than this in a step falls asleep: 0.03 m/s, 0.03 rad/s. The displacement
// counts, not the velocity: gravity gives a resting cube a velocity in a single substep.
constexpr float kSleepMove2 = (0.03f * kTimeStep) * (0.03f * kTimeStep);
constexpr float kSleepTurn2 = 0.25f * kSleepMove2;  // quaternions change by half the angle
constexpr float kSleepSpeed2 = 0.2f * 0.2f;
constexpr float kSleepHeight = 5e-3f;
constexpr float kSleepTilt = 1e-6f;

template <class W, class Body>
DS_INLINE bool has_come_to_rest(const W& world, int cube, const Body& body) {
    const Vec3 moved = body.position - world.bodies.position(cube);
    const Quat p = body.rotation, q = world.bodies.rotation(cube);
    const float w = p.w - q.w, x = p.x - q.x, y = p.y - q.y, z = p.z - q.z;
    return dot(moved, moved) < kSleepMove2 && w * w + x * x + y * y + z * z < kSleepTurn2 &&
           dot(body.velocity, body.velocity) < kSleepSpeed2 &&
           absolute(body.position.z - kCubeHalfExtent) < kSleepHeight && !is_held(world, cube);
}

// The remaining tilt is removed, so that the sleeping cube is an upright box for all tests.
template <class Body>
DS_INLINE void put_to_sleep(int cube, Body& body, Sleep& sleep) {
    DS_ASSERT(!body.yaws_only);
    sleep.cubes |= 1u << cube;
    body.velocity = body.spin = {0.f, 0.f, 0.f};
    if (tilt_of(body.rotation) > kSleepTilt) return;
    body.rotation = normalize({body.rotation.w, 0.f, 0.f, body.rotation.z});
    body.position.z = kCubeHalfExtent;
}

// Nothing in a room throws a cube upwards. Bounces stay below this, metres per second; higher velocities are artefacts
// of solving agents, joints and walls that squeeze a cube one after the other, and are clamped.
constexpr float kFastestRise = 3.f;

template <class W, class Body>
DS_INLINE void store_body(const W& world, int i, Body& body, bool on_floor, typename W::Bodies& bodies, Sleep& sleep) {
    if (world.is_agent(i)) {
        body.velocity = {0.f, 0.f, minimum(body.velocity.z, 0.f)};
        body.spin = {0.f, 0.f, 0.f};
    } else if (!body.asleep) {
        body.velocity.z = minimum(body.velocity.z, maximum(world.bodies.velocity_z[i], kFastestRise));
        sleep.cubes &= ~(1u << i);
        if (on_floor && has_come_to_rest(world, i, body)) put_to_sleep(i, body, sleep);
    }
    bodies.set_position(i, body.position);
    bodies.set_rotation(i, body.rotation);
    bodies.set_velocity(i, body.velocity);
    bodies.set_spin(i, body.spin);
    refresh_bounds(bodies, i, world.is_agent(i));
}

// The bodies of a world, none if it has nothing for the solver, and their joints.
template <class W>
DS_INLINE void load_world(const W& world, Each<const Motion> motions, Each<const Path> paths,
                          Each<const Action> actions, CoupledWorld<W>& coupled) {
    const Participants chosen = choose_participants(world, motions, paths);
    DS_ASSERT((chosen.awake & ~chosen.bodies) == 0);
    Problem<W>& problem = coupled.problem;
    load_bodies(world, chosen, paths, actions, coupled);
    problem.joint_count = 0;
    if (problem.body_count > 0) load_joints(world, coupled);
    DS_ASSERT(problem.joint_count >= 0 && problem.joint_count <= Problem<W>::kMaxJoints);
    problem.dropped_contacts = 0;
}

template <FloatLanes Float, class W>
DS_INLINE void store_world(CoupledWorld<W>& coupled, W& world, TroubleBits& trouble) {
    auto& problem = coupled.problem;
    if (problem.body_count == 0) return;
    for (int slot = 0; slot < problem.body_count; slot++)
        store_body(world, coupled.body_of[slot], problem.bodies[slot], problem.floor[slot].touched != 0.f, world.bodies,
                   world.sleep);
    trouble.bits |= check_finite<Float>(world, world.health);
    if (problem.dropped_contacts > 0) {
        note_trouble(world.health, world.identity, coupled.body_of[problem.dropped_body]);
        world.health.dropped_contacts += static_cast<uint32_t>(problem.dropped_contacts);
        trouble.bits |= kTroubleDroppedContacts;
    }
}

// ---- The worlds of a group

// The problems of a group.
template <class W, int Most>
struct ProblemsOfGroup {
    using Problem = doorstep::Problem<W>;
    static constexpr int kMost = Most;
    int count;
    CoupledWorld<W>* first;

    DS_METHOD Problem& operator[](int k) const { return first[k].problem; }
};

// Lists those with bodies.
template <class W, int Most>
DS_INLINE ProblemList<Problem<W>, Most> list_problems(const ProblemsOfGroup<W, Most>& all, Problem<W>** listed) {
    ProblemList<Problem<W>, Most> problems{0, listed};
    for (int k = 0; k < all.count; k++)
        if (all[k].body_count) listed[problems.count++] = &all[k];
    return problems;
}

// Calls operation(coupled) for the worlds of a worker's share.
template <class W, int Most, class Share, class Operation>
DS_INLINE void for_coupled(const ProblemsOfGroup<W, Most>& problems, Share share, const Operation& operation) {
    for (int k = share.solver(Most); k >= 0 && k < problems.count; k += share.solvers(Most))
        operation(problems.first[k]);
}

template <class TileT, class Problems, class Share>
DS_INLINE void load_worlds_to_solve(const CoupledWorlds<TileT>& worlds, const Problems& problems, Share share) {
    constexpr int kMost = Problems::kMost;
    int next = worlds.find(worlds.first, share.solver(kMost));
    for_coupled(problems, share, [&](auto& coupled) {
        const auto item = worlds[next];
        coupled.world = next;
        load_world<typename TileT::W>(item, item, item, item, coupled);
        next = worlds.find(next + 1, share.solvers(kMost) - 1);
    });
}

// ---- Stage

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::solve_bodies(CoupledWorlds& worlds, Crew crew, Solver& solver) {
    const ProblemsOfGroup<World, Solver::kTogether> problems{worlds.count, solver.worlds};
    const auto world_of = [&](const CoupledWorld<World>& coupled) { return worlds[coupled.world]; };
    crew.each([&](auto share) { load_worlds_to_solve(worlds, problems, share); });
    crew.each([&](auto share) {
        for_bodies(problems, share, [&](int k, int i) {
            find_static_candidates<Wide, World>(world_of(solver.worlds[k]), solver.worlds[k], i);
        });
    });
    crew.each([&](auto share) {
        for_coupled(problems, share,
                    [&](auto& coupled) { list_candidate_pairs<World>(world_of(coupled), coupled); });
    });
    if constexpr (Float::kLanes == 1) {
        solve_step<Float>(crew, problems);
    } else {
        Problem<World>* listed[Solver::kTogether];
        solve_step<Float>(crew, list_problems(problems, listed));
    }
    crew.each([&](auto share) {
        for_coupled(problems, share, [&](auto& coupled) {
            const auto item = world_of(coupled);
            store_world<Float, World>(coupled, item, item);
        });
    });
}

}  // namespace doorstep
