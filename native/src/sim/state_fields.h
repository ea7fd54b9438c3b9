// The table of state fields: where each row of DS_STATE_TABLE lies in a world's block.
#pragma once

#include "sim/reference_level.h"
#include "sim/world.h"

namespace doorstep {

constexpr int64_t kFloatBytes = sizeof(float);

constexpr StateField rows_of(size_t offset, int64_t items) {
    return {static_cast<ptrdiff_t>(offset), nullptr, 1, {items, 1}, {kFloatBytes, 0}};
}
// Structure of arrays: coordinate k of item i lies k rows of `pitch` floats further.
constexpr StateField vectors_of(size_t offset, int64_t items, int64_t coordinates, int64_t pitch) {
    return {static_cast<ptrdiff_t>(offset), nullptr, 2, {items, coordinates}, {kFloatBytes, pitch * kFloatBytes}};
}

template <int Agents, int Cubes>
struct BodySizes {
    float extent[Agents + Cubes][3];
};
template <int Agents, int Cubes>
constexpr BodySizes<Agents, Cubes> make_body_sizes() {
    BodySizes<Agents, Cubes> sizes{};
    for (int i = 0; i < Agents + Cubes; i++)
        for (int k = 0; k < 3; k++) sizes.extent[i][k] = 2.f * (i < Agents ? kAgentHalfExtent : kCubeHalfExtent);
    return sizes;
}
template <int Agents, int Cubes>
constexpr BodySizes<Agents, Cubes> kBodySizes = make_body_sizes<Agents, Cubes>();

struct PhysicsRow {
    float number[kPhysics];
};
constexpr PhysicsRow make_reference_physics() {
    const ds_level_physics physics = reference_level().physics;
    return {{physics.cube_mass.low, physics.friction.low, physics.walking_force.low, physics.turning_torque.low,
             physics.door_speed.low}};
}
inline constexpr PhysicsRow kReferencePhysics = make_reference_physics();

template <class W>
constexpr StateField place_of_physics() {
    if constexpr (W::kPlaysLevels)
        return rows_of(sizeof(typename W::Parts) + offsetof(LevelTerms, physics), kPhysics);
    else
        return {-1, &kReferencePhysics, 1, {kPhysics, 1}, {kFloatBytes, 0}};
}

// A field per row, named after it: a missing or additional one does not compile. For worlds of so many agents.
template <class W, int Agents>
struct StateFields {
    using Parts = typename W::Parts;
    using Bodies = typename W::Bodies;
    using Statics = typename W::Statics;
    static constexpr int64_t kCount = Agents + W::kCubes;  // of bodies
    static constexpr size_t kBodies = offsetof(Parts, bodies), kStatics = offsetof(Parts, statics);
    static constexpr size_t kFirstBody = sizeof(float) * W::kButtonLanes;  // in a row of positions

    static constexpr StateField body_positions =
        vectors_of(kBodies + offsetof(Bodies, x) + kFirstBody, kCount, 3, W::kThings);
    static constexpr StateField body_rotations =
        vectors_of(kBodies + offsetof(Bodies, rotation_w), kCount, 4, W::kBodyLanes);
    static constexpr StateField body_linear_velocities =
        vectors_of(kBodies + offsetof(Bodies, velocity_x), kCount, 3, W::kBodyLanes);
    static constexpr StateField body_angular_velocities =
        vectors_of(kBodies + offsetof(Bodies, spin_x), kCount, 3, W::kBodyLanes);
    static constexpr StateField body_sizes = {
        -1, &kBodySizes<Agents, W::kCubes>, 2, {kCount, 3}, {3 * kFloatBytes, kFloatBytes}};
    static constexpr StateField body_kinds = rows_of(kBodies + offsetof(Bodies, kind), kCount);
    static constexpr StateField static_positions =
        vectors_of(kStatics + offsetof(Statics, x), W::kStatics, 3, W::kStaticLanes);
    static constexpr StateField static_sizes =
        vectors_of(kStatics + offsetof(Statics, size_x), W::kStatics, 3, W::kStaticLanes);
    static constexpr StateField static_kinds = rows_of(kStatics + offsetof(Statics, kind), W::kStatics);
    static constexpr StateField button_positions =
        vectors_of(kBodies + offsetof(Bodies, x), W::kButtons, 3, W::kThings);
    static constexpr StateField button_pressed = rows_of(offsetof(Parts, buttons.pressed), W::kButtons);
    static constexpr StateField button_doors = rows_of(offsetof(Parts, buttons.door), W::kButtons);
    static constexpr StateField door_open = rows_of(offsetof(Parts, doors.open), W::kDoors);
    static constexpr StateField door_static = rows_of(offsetof(Parts, doors.panel), W::kDoors);
    static constexpr StateField door_persistent = rows_of(offsetof(Parts, doors.persistent), W::kDoors);
    static constexpr StateField agent_grabs = rows_of(offsetof(Parts, grabs.held), Agents);
    static constexpr StateField physics = place_of_physics<W>();
    static constexpr StateField agent_max_y = rows_of(offsetof(Parts, progress.max_y), Agents);
    static constexpr StateField episode_index = {
        static_cast<ptrdiff_t>(offsetof(Parts, identity.episode_index)), nullptr, 0, {1, 1}, {0, 0}};
};

}  // namespace doorstep
