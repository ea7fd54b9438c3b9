// Bodies side by side: what happens to a body alone (its motion, and the floor) is computed for as many bodies at once
// as there are lanes, from any worlds. A lane gives the bits that the body would have got by itself.
#pragma once

#include "physics/floor_contact.h"

namespace doorstep {

// What happens to agents or to cubes alone. call(body, contact) takes a body, or one in each lane; its contact with the
// floor; and of both it uses the leading words that kUse tells.
struct BodyUse {
    int body_read, body_written, floor_read, floor_written;
};
template <class Kernel>
concept BodyKernel = requires {
    { Kernel::kOfAgents } -> SameAs<const bool&>;
    { Kernel::kUse } -> SameAs<const BodyUse&>;
};

// The awake bodies of some problems, for which kernels are called by the workers of a crew.
template <FloatLanes Float, class Problems>
class AwakeBodies;

#if defined(__AVX2__)
// Eight words, from `word` on, of records of floats: those of a record of lanes whose members are the same, in the same
// order.
template <class Lanes, class Record>
DS_INLINE void gather_row(Record* const* records, int word, Lanes& lanes) {
    constexpr int kLanes = WideFloat::kLanes;
    WideFloat rows[kLanes], columns[kLanes];
    for (int k = 0; k < kLanes; k++) rows[k] = WideFloat::load(reinterpret_cast<const float*>(records[k]) + word);
    transpose(rows, columns);
    float* to = reinterpret_cast<float*>(&lanes) + word * kLanes;
    for (int k = 0; k < kLanes; k++) columns[k].store(to + k * kLanes);
}

template <class Lanes, class Record>
DS_INLINE void scatter_row(const Lanes& lanes, int word, Record* const* records) {
    constexpr int kLanes = WideFloat::kLanes;
    WideFloat rows[kLanes], columns[kLanes];
    const float* from = reinterpret_cast<const float*>(&lanes) + word * kLanes;
    for (int k = 0; k < kLanes; k++) columns[k] = WideFloat::load(from + k * kLanes);
    transpose(columns, rows);
    for (int k = 0; k < kLanes; k++) rows[k].store(reinterpret_cast<float*>(records[k]) + word);
}

// The leading words. The last row may overlap the one before.
template <int kWords, class Lanes, class Record>
DS_INLINE void gather(Record* const* records, Lanes& lanes) {
    for (int word = 0; word < kWords; word += 8) gather_row(records, kWords - word < 8 ? kWords - 8 : word, lanes);
}
template <int kWords, class Lanes, class Record>
DS_INLINE void scatter(const Lanes& lanes, Record* const* records) {
    for (int word = 0; word < kWords; word += 8)
        scatter_row(lanes, kWords - word < 8 ? kWords - 8 : word, records);
}

// Up to so many bodies take less time one by one.
constexpr int kFewBodies = 2;

// Calls the kernel for up to eight bodies at once.
template <BodyKernel Kernel, class Body>
DS_INLINE void call_in_lanes(Body* const* bodies, FloorContact* const* floors) {
    using Material = typename Body::Material;
    constexpr BodyUse kUse = Kernel::kUse;
    constexpr int kWords = sizeof(Body) / sizeof(float);
    BodyOf<Material, WideFloat> lanes;
    FloorContactOf<WideFloat> floor;
    gather<kUse.body_read>(bodies, lanes);
    if constexpr (kWords > kBodyWords) gather_row(bodies, kWords - 8, lanes);  // the material, at the end
    gather<kUse.floor_read>(floors, floor);
    lanes.yaws_only = Kernel::kOfAgents;
    lanes.asleep = false;
    Kernel::call(lanes, floor);
    scatter<kUse.body_written>(lanes, bodies);
    scatter<kUse.floor_written>(floor, floors);
}

// Lists them, those of the first problems first, so that kernels pass over them without looking for them. The crew is
// one thread, whose share is all of them.
template <FloatLanes Float, class Problems>
class AwakeBodies {
public:
    // Finds them; again whenever bodies may have woken. The first `lone` problems are those that call_lone() is for.
    DS_METHOD void find(Problems problems, int lone) {
        DS_ASSERT(problems.count <= Problems::kMost && lone <= problems.count);
        agents_.count = cubes_.count = 0;
        for (int k = 0; k < problems.count; k++) {
            if (k == lone) end_lone();
            for (int i = 0; i < problems[k].body_count; i++) {
                auto& body = problems[k].bodies[i];
                if (!body.asleep) (body.yaws_only ? agents_ : cubes_).add(body, problems[k].floor[i]);
            }
        }
        if (lone == problems.count) end_lone();
    }
    template <BodyKernel OfAgents, BodyKernel OfCubes, class Share>
    DS_METHOD void call(Share) const {
        pass<OfAgents>(agents_, 0, agents_.count);
        pass<OfCubes>(cubes_, 0, cubes_.count);
    }
    template <BodyKernel OfAgents, BodyKernel OfCubes, class Share>
    DS_METHOD void call_lone(Share) const {
        pass<OfAgents>(agents_, 0, agents_.lone);
        pass<OfCubes>(cubes_, 0, cubes_.lone);
    }
    template <BodyKernel OfAgents, BodyKernel OfCubes, class Share>
    DS_METHOD void call_others(Share) const {
        pass<OfAgents>(agents_, agents_.lone, agents_.count);
        pass<OfCubes>(cubes_, cubes_.lone, cubes_.count);
    }

private:
    using Problem = typename Problems::Problem;
    using Body = typename Problem::Body;
    static constexpr int kMost = Problems::kMost * Problem::kMaxBodies;
    static constexpr int kLanes = WideFloat::kLanes;
    struct List {
        Body* bodies[kMost];
        FloorContact* floors[kMost];
        int count, lone;

        DS_METHOD void add(Body& body, FloorContact& floor) {
            bodies[count] = &body;
            floors[count++] = &floor;
        }
    };

    DS_METHOD void end_lone() {
        agents_.lone = agents_.count;
        cubes_.lone = cubes_.count;
    }

    template <BodyKernel Kernel>
    static __attribute__((noinline)) void pass(const List& list, int first, int end) {
        Body* bodies[kLanes];
        FloorContact* floors[kLanes];
        for (; end - first > kFewBodies; first += kLanes) {
            // Lanes without a body of their own repeat the first
            for (int k = 0; k < kLanes; k++) {
                const int i = first + k < end ? first + k : first;
                bodies[k] = list.bodies[i];
                floors[k] = list.floors[i];
            }
            call_in_lanes<Kernel>(bodies, floors);
        }
        for (int i = first; i < end; i++) Kernel::call(*list.bodies[i], *list.floors[i]);
    }

    List agents_, cubes_;
};
#endif

// Calls operation(k, i) for the bodies of a worker's share: each body i of problem k. Neighbouring threads take the
// bodies of the same number of neighbouring problems: agents come first, so most threads of a warp have bodies of one
// kind.
template <class Problems, class Share, class Operation>
DS_INLINE void for_bodies(const Problems& problems, Share share, const Operation& operation) {
    const int apart = share.stride < Problems::kMost ? share.stride : Problems::kMost;
    DS_ASSERT(share.stride % apart == 0);
    for (int k = share.first % apart; k < problems.count; k += apart)
        for (int i = share.first / apart; i < problems[k].body_count; i += share.stride / apart) operation(k, i);
}

// Calls agent(body, floor) or cube(body, floor) for those that are awake.
template <class Problems, class Share, class OfAgent, class OfCube>
DS_INLINE void for_awake_bodies(const Problems& problems, Share share, const OfAgent& agent, const OfCube& cube) {
    for_bodies(problems, share, [&](int k, int i) {
        auto& problem = problems[k];
        auto& body = problem.bodies[i];
        if (body.asleep) return;
        if (body.yaws_only) agent(body, problem.floor[i]);
        else cube(body, problem.floor[i]);
    });
}

// Calls the kernels for those bodies, one by one.
template <BodyKernel OfAgents, BodyKernel OfCubes, class Problems, class Share>
DS_NOINLINE void call_for_awake_bodies(Problems problems, Share share) {
    for_awake_bodies(problems, share, [](auto& body, auto& floor) { OfAgents::call(body, floor); },
                     [](auto& body, auto& floor) { OfCubes::call(body, floor); });
}

// One by one: a worker looks for those of its share in every pass.
template <class Problems>
class AwakeBodies<NarrowFloat, Problems> {
public:
    DS_METHOD void find(Problems problems, int) { problems_ = problems; }
    template <BodyKernel OfAgents, BodyKernel OfCubes, class Share>
    DS_METHOD void call(Share share) const { call_for_awake_bodies<OfAgents, OfCubes>(problems_, share); }
    template <BodyKernel OfAgents, BodyKernel OfCubes, class Share>
    DS_METHOD void call_others(Share share) const { call<OfAgents, OfCubes>(share); }

private:
    Problems problems_;
};

}  // namespace doorstep
