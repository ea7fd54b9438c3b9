// Level generation: a whole episode from (seed, global world, episode index).
//
// The order of the random draws is the reference's and must not change: x, y, yaw of each agent in index order, then
// for each room the door and the room's entities. Rooms are always double button, cube blocking, cube buttons.
#pragma once

#include "math/threefry.h"
#include "math/trigonometry.h"
#include "sim/world.h"

namespace doorstep {

constexpr float kSpawnMinY = 1.1f, kSpawnMaxY = 2.f;
constexpr float kSpawnRangeX = kWorldWidth / 2.f - 2.5f;
constexpr float kSpawnSideX = kWorldWidth / 4.f;
constexpr float kSpawnRangeYaw = kPi / 4.f;
// Start rows for agents beyond two: far enough apart for any two yaws (cos + sin of pi/8, times two, is 2.613)
constexpr float kSpawnRow = 2.625f;

template <class W>
DS_INLINE void place_body(W& world, int body, int kind, Vec3 position, Quat rotation) {
    DS_ASSERT(body >= 0 && body < W::kBodyLanes);
    world.bodies.kind[body] = kind;
    world.bodies.set_position(body, position);
    world.bodies.set_rotation(body, rotation);
    world.bodies.set_velocity(body, {0.f, 0.f, 0.f});
    world.bodies.set_spin(body, {0.f, 0.f, 0.f});
    refresh_bounds(world.bodies, body);
}

template <class W>
DS_INLINE void place_cube(W& world, int cube, float x, float y) {
    DS_ASSERT(cube >= 0 && cube < W::kCubes);
    place_body(world, W::kAgents + cube, DS_ENTITY_CUBE, {x, y, kCubeHalfExtent}, {1.f, 0.f, 0.f, 0.f});
}

template <class W>
DS_INLINE void place_static(W& world, int slot, int kind, float x, float y, Vec3 size) {
    DS_ASSERT(slot >= 0 && slot < W::kStaticLanes && size.x >= 0.f && size.y >= 0.f && size.z >= 0.f);
    world.statics.kind[slot] = kind;
    world.statics.x[slot] = x;
    world.statics.y[slot] = y;
    world.statics.z[slot] = 0.f;
    world.statics.size_x[slot] = size.x;
    world.statics.size_y[slot] = size.y;
    world.statics.size_z[slot] = size.z;
}

template <class W>
DS_INLINE void place_button(W& world, int button, int door, float x, float y) {
    DS_ASSERT(button >= 0 && button < W::kButtonLanes && door >= 0 && door < W::kDoors);
    world.bodies.x[button] = x;
    world.bodies.y[button] = y;
    world.bodies.z[button] = 0.f;
    world.buttons.pressed[button] = 0;
    world.buttons.door[button] = door;
}

template <class W>
DS_INLINE bool overlaps_earlier_agent(const W& world, int agent) {
    const auto& bodies = world.bodies;
    for (int other = 0; other < agent; other++)
        if (bodies.min_x[agent] < bodies.max_x[other] && bodies.min_x[other] < bodies.max_x[agent] &&
            bodies.min_y[agent] < bodies.max_y[other] && bodies.min_y[other] < bodies.max_y[agent])
            return true;
    return false;
}

template <class W>
DS_INLINE void place_agents(W& world, RandomStream& random) {
    for (int a = 0; a < W::kAgents; a++) {
        const float side = a % 2 == 0 ? kSpawnSideX : -kSpawnSideX;
        const float x = random.centered(kSpawnRangeX) + side;
        float y = random.between(kSpawnMinY, kSpawnMaxY);
        const Heading half_yaw = sine_cosine(0.5f * random.centered(kSpawnRangeYaw));
        const Quat rotation{half_yaw.cosine, 0.f, 0.f, half_yaw.sine};
        place_body(world, a, DS_ENTITY_AGENT, {x, y, 0.f}, rotation);
        // With two agents the draws are the reference's
        for (int row = 1; W::kAgents > 2 && overlaps_earlier_agent(world, a); row++) {
            y = kSpawnMaxY + kSpawnRow * static_cast<float>(row);
            place_body(world, a, DS_ENTITY_AGENT, {x, y, 0.f}, rotation);
        }
        world.progress.max_y[a] = y;
        world.progress.episode_return[a] = 0.f;
        world.grabs.held[a] = -1;
        world.grabs.joined[a] = -1;
        world.grabs.joint[a] = GrabJoint{};
    }
}

template <class W>
DS_INLINE void place_border(W& world) {
    place_static(world, 0, DS_ENTITY_WALL, 0.f, -0.5f, {kWorldWidth + 2.f, kWallThickness, kBorderHeight});
    place_static(world, 1, DS_ENTITY_WALL, 10.5f, 20.f, {kWallThickness, kWorldLength, kBorderHeight});
    place_static(world, 2, DS_ENTITY_WALL, -10.5f, 20.f, {kWallThickness, kWorldLength, kBorderHeight});
    for (int slot = W::kStatics; slot < W::kStaticLanes; slot++)
        place_static(world, slot, DS_ENTITY_NONE, kNowhere, kNowhere, {0.f, 0.f, 0.f});
}

// Two walls and the door between them; returns the door's x.
template <class W>
DS_INLINE float place_end_wall(W& world, int room, float y, bool persistent, RandomStream& random) {
    const float door = random.between(0.75f * kDoorSlot, kWorldWidth - 0.75f * kDoorSlot);  // from the left edge
    const float left = door - 0.5f * kDoorSlot, right = kWorldWidth - door - 0.5f * kDoorSlot;
    DS_ASSERT(left > 0.f && right > 0.f);
    const float x = door - kWorldWidth / 2.f;
    const int slot = 3 + 3 * room;
    place_static(world, slot, DS_ENTITY_WALL, (-kWorldWidth + left) / 2.f, y, {left, kWallThickness, kRoomWallHeight});
    place_static(world, slot + 1, DS_ENTITY_WALL, (kWorldWidth - right) / 2.f, y,
                 {right, kWallThickness, kRoomWallHeight});
    place_static(world, slot + 2, DS_ENTITY_DOOR, x, y, {kDoorWidth, kWallThickness, kRoomWallHeight});
    world.doors.open[room] = 0;
    world.doors.panel[room] = slot + 2;
    world.doors.persistent[room] = persistent;
    return x;
}

template <class W>
DS_INLINE void show_in_room(W& world, int room, int first_cube, int cubes) {
    DS_ASSERT(room >= 0 && room < kRooms && cubes <= kEntitySlots - 2 && first_cube + cubes <= W::kCubes);
    for (int slot = 0; slot < kEntitySlots; slot++)
        world.rooms.thing[room][slot] =
            slot < 2          ? static_cast<uint8_t>(2 * room + slot)
            : slot < 2 + cubes ? static_cast<uint8_t>(W::thing_of_body(W::kAgents + first_cube + slot - 2))
                               : kEmptySlot;
}

// A lone agent needs something to leave on a button: a cube next to its start, away from button a.
template <class W>
DS_INLINE void place_lone_agents_cube(W& world) {
    constexpr float kCubeX = -3.5f, kOtherX = -8.f, kCubeY = 1.6f, kClear = kCubeHalfExtent + kButtonHalf;
    const bool under = absolute(world.bodies.x[0] - kCubeX) < kClear && absolute(world.bodies.y[0] - kCubeY) < kClear;
    place_cube(world, W::kCubes - 1, under ? kOtherX : kCubeX, kCubeY);
}

template <class W>
DS_INLINE void place_double_button_room(W& world, float start, float end, RandomStream& random) {
    const float side = kWorldWidth / 2.f - kButtonSize;
    for (int b = 0; b < 2; b++) {
        const float x = b == 0 ? random.between(-side, -kButtonSize) : random.between(kButtonSize, side);
        const float y = random.between(start + kRoomLength / 4.f, end - kWallThickness - kButtonHalf);
        place_button(world, b, 0, x, y);
    }
    if (W::kAgents == 1) place_lone_agents_cube(world);
    show_in_room(world, 0, W::kCubes - 1, W::kAgents == 1 ? 1 : 0);
}

// Buttons near the side walls, as in both rooms with cubes.
template <class W>
DS_INLINE void place_side_buttons(W& world, int room, float start, float end, RandomStream& random) {
    const float outer = kWorldWidth / 2.f - kButtonSize, inner = kWorldWidth / 2.f - 3.7f;
    for (int b = 0; b < 2; b++) {
        const float x = b == 0 ? random.between(-outer, -inner) : random.between(inner, outer);
        const float y = random.between(start + kButtonSize, end - kRoomLength / 4.f);
        place_button(world, 2 * room + b, room, x, y);
    }
}

template <class W>
DS_INLINE void place_cube_blocking_room(W& world, float start, float end, float door, RandomStream& random) {
    place_side_buttons(world, 1, start, end, random);
    for (int i = 0; i < 3; i++) place_cube(world, i, door + 3.f * static_cast<float>(i - 1), end - 2.5f);
    show_in_room(world, 1, 0, 3);
}

template <class W>
DS_INLINE void place_cube_buttons_room(W& world, float start, float end, RandomStream& random) {
    place_side_buttons(world, 2, start, end, random);
    for (int i = 0; i < 2; i++) {
        const float x = i == 0 ? random.between(-5.f, -1.5f) : random.between(1.5f, 5.f);
        const float y = random.between(start + 2.f, end - 3.f);
        place_cube(world, 3 + i, x, y);
    }
    show_in_room(world, 2, 3, 2);
}

// Unused body and button lanes are placed at kNowhere.
template <class W>
DS_INLINE void clear_unused_lanes(W& world) {
    for (int i = W::kBodies; i < W::kBodyLanes; i++) {
        place_body(world, i, DS_ENTITY_NONE, {kNowhere, kNowhere, kNowhere}, {1.f, 0.f, 0.f, 0.f});
    }
    for (int b = W::kButtons; b < W::kButtonLanes; b++) place_button(world, b, 0, kNowhere, kNowhere);
}

// Generates the level of world.identity.episode_index; identity and trouble counters are kept.
template <class W>
DS_NOINLINE void generate_level(W& world, int32_t episode_length) {
    RandomStream random{episode_key(world.identity.seed, world.identity.episode_index, world.identity.global_index), 0};
    clear_unused_lanes(world);
    place_agents(world, random);
    place_border(world);
    for (int room = 0; room < kRooms; room++) {
        const float start = kRoomLength * static_cast<float>(room), end = start + kRoomLength;
        const float door = place_end_wall(world, room, end - 0.5f * kWallThickness, room < 2, random);
        if (room == 0) place_double_button_room(world, start, end, random);
        else if (room == 1) place_cube_blocking_room(world, start, end, door, random);
        else place_cube_buttons_room(world, start, end, random);
    }
    world.sleep.cubes = W::kCubeBits;
    world.episode.steps_remaining = episode_length;
    DS_ASSERT(episode_length > 0);
}

}  // namespace doorstep
