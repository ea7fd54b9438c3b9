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

// Problems that are solved together, at most.
constexpr int kMostTogether = 16;

// The awake bodies of some problems.
template <FloatLanes Float, class Problem>
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

// Lists them, those of the first problems first, so that kernels pass over them without looking for them.
template <FloatLanes Float, class Problem>
class AwakeBodies {
public:
    // Finds them; again whenever bodies may have woken. The first `lone` problems are those that call_lone() is for.
    DS_METHOD void find(Problem* const* problems, int count, int lone) {
        DS_ASSERT(count <= kMostTogether && lone <= count);
        agents_.count = cubes_.count = 0;
        for (int k = 0; k < count; k++) {
            if (k == lone) end_lone();
            for (int i = 0; i < problems[k]->body_count; i++) {
                auto& body = problems[k]->bodies[i];
                if (!body.asleep) (body.yaws_only ? agents_ : cubes_).add(body, problems[k]->floor[i]);
            }
        }
        if (lone == count) end_lone();
    }
    template <BodyKernel OfAgents, BodyKernel OfCubes>
    DS_METHOD void call() const {
        pass<OfAgents>(agents_, 0, agents_.count);
        pass<OfCubes>(cubes_, 0, cubes_.count);
    }
    template <BodyKernel OfAgents, BodyKernel OfCubes>
    DS_METHOD void call_lone() const {
        pass<OfAgents>(agents_, 0, agents_.lone);
        pass<OfCubes>(cubes_, 0, cubes_.lone);
    }
    template <BodyKernel OfAgents, BodyKernel OfCubes>
    DS_METHOD void call_others() const {
        pass<OfAgents>(agents_, agents_.lone, agents_.count);
        pass<OfCubes>(cubes_, cubes_.lone, cubes_.count);
    }

private:
    using Body = typename Problem::Body;
    static constexpr int kLanes = WideFloat::kLanes;
    struct List {
        Body* bodies[kMostTogether * Problem::kMaxBodies];
        FloorContact* floors[kMostTogether * Problem::kMaxBodies];
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

// Calls the kernels for all awake bodies of some problems, one by one.
template <BodyKernel OfAgents, BodyKernel OfCubes, class Problem>
DS_NOINLINE void for_awake_bodies(Problem* const* problems, int count) {
    for (int k = 0; k < count; k++)
        for (int i = 0; i < problems[k]->body_count; i++) {
            auto& body = problems[k]->bodies[i];
            if (body.asleep) continue;
            if (body.yaws_only) OfAgents::call(body, problems[k]->floor[i]);
            else OfCubes::call(body, problems[k]->floor[i]);
        }
}

// A thread's: of one problem. It looks for them in every pass.
template <class Problem>
class AwakeBodies<NarrowFloat, Problem> {
public:
    DS_METHOD void find(Problem* const* problems, int count, int) {
        problems_ = problems;
        count_ = count;
    }
    template <BodyKernel OfAgents, BodyKernel OfCubes>
    DS_METHOD void call() const { for_awake_bodies<OfAgents, OfCubes>(problems_, count_); }
    template <BodyKernel OfAgents, BodyKernel OfCubes>
    DS_METHOD void call_others() const { call<OfAgents, OfCubes>(); }

private:
    Problem* const* problems_;
    int count_;
};

}  // namespace doorstep
