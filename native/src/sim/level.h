// Level generation as the reference's: a whole episode from (seed, global world, episode index).
//
// The order of the random draws is the reference's and must not change: x, y, yaw of each agent in index order, then
// for each room the door and the room's entities. Its rooms are always double button, cube blocking, cube buttons;
// worlds that play any levels may have others in their place.
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
    refresh_bounds(world.bodies, body, world.is_agent(body));
}

template <class W>
DS_INLINE void place_cube(W& world, int cube, float x, float y) {
    DS_ASSERT(cube >= 0 && cube < W::kCubes);
    place_body(world, world.num_agents() + cube, DS_ENTITY_CUBE, {x, y, kCubeHalfExtent}, {1.f, 0.f, 0.f, 0.f});
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
    for (int a = 0; a < world.num_agents(); a++) {
        const float side = a % 2 == 0 ? kSpawnSideX : -kSpawnSideX;
        const float x = random.centered(kSpawnRangeX) + side;
        float y = random.between(kSpawnMinY, kSpawnMaxY);
        const Heading half_yaw = sine_cosine(0.5f * random.centered(kSpawnRangeYaw));
        const Quat rotation{half_yaw.cosine, 0.f, 0.f, half_yaw.sine};
        place_body(world, a, DS_ENTITY_AGENT, {x, y, 0.f}, rotation);
        // With two agents the draws are the reference's
        for (int row = 1; world.num_agents() > 2 && overlaps_earlier_agent(world, a); row++) {
            y = kSpawnMaxY + kSpawnRow * static_cast<float>(row);
            place_body(world, a, DS_ENTITY_AGENT, {x, y, 0.f}, rotation);
        }
    }
}

// What begins an episode with an agent: its pose, no progress, nothing held.
template <class W>
DS_INLINE void start_agent(W& world, int a) {
    world.progress.max_y[a] = world.bodies.y[W::kButtonLanes + a];
    world.progress.episode_return[a] = 0.f;
    world.grabs.held[a] = -1;
    world.grabs.joined[a] = -1;
    world.grabs.joint[a] = GrabJoint{};
}

template <class W>
DS_INLINE void place_border(W& world) {
    place_static(world, 0, DS_ENTITY_WALL, 0.f, -0.5f, {kWorldWidth + 2.f, kWallThickness, kBorderHeight});
    place_static(world, 1, DS_ENTITY_WALL, 10.5f, 20.f, {kWallThickness, kWorldLength, kBorderHeight});
    place_static(world, 2, DS_ENTITY_WALL, -10.5f, 20.f, {kWallThickness, kWorldLength, kBorderHeight});
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

// ---- Rooms

// A room in the making. Its buttons and cubes follow those of the rooms before it.
struct RoomPlan {
    int room;
    float start, end;     // y in metres
    float door;           // x
    int button, buttons;  // the first, and how many
    int cube, cubes;
    int lone_cube;        // a cube for a lone agent, or -1
};

template <class W>
DS_INLINE void plan_button(W& world, RoomPlan& plan, float x, float y) {
    place_button(world, plan.button + plan.buttons++, plan.room, x, y);
}
template <class W>
DS_INLINE void plan_cube(W& world, RoomPlan& plan, float x, float y) {
    place_cube(world, plan.cube + plan.cubes++, x, y);
}

template <class W>
DS_INLINE void show_in_room(W& world, const RoomPlan& plan) {
    const int cubes_end = plan.buttons + plan.cubes;
    DS_ASSERT(plan.room < W::kRooms && cubes_end + (plan.lone_cube >= 0) <= kEntitySlots);
    for (int slot = 0; slot < kEntitySlots; slot++) {
        const int cube = slot < cubes_end ? plan.cube + slot - plan.buttons : slot == cubes_end ? plan.lone_cube : -1;
        world.rooms.thing[plan.room][slot] =
            slot < plan.buttons ? static_cast<uint8_t>(plan.button + slot)
            : cube >= 0         ? static_cast<uint8_t>(W::thing_of_body(world.num_agents() + cube))
                                : kEmptySlot;
    }
}

// A lone agent needs something to leave on a button: a cube next to its start, away from button a.
template <class W>
DS_INLINE void place_lone_agents_cube(W& world, const RoomPlan& plan) {
    constexpr float kCubeX = -3.5f, kOtherX = -8.f, kCubeY = 1.6f, kClear = kCubeHalfExtent + kButtonHalf;
    const float y = plan.start + kCubeY;
    const bool under = absolute(world.bodies.x[plan.button] - kCubeX) < kClear &&
                       absolute(world.bodies.y[plan.button] - y) < kClear;
    place_cube(world, plan.lone_cube, under ? kOtherX : kCubeX, y);
}

template <class W>
DS_INLINE void place_single_button_room(W& world, RoomPlan& plan, RandomStream& random) {
    const float side = kWorldWidth / 2.f - kButtonSize;
    const float x = random.centered(side);
    const float y = random.between(plan.start + kRoomLength / 4.f, plan.end - kWallThickness - kButtonHalf);
    plan_button(world, plan, x, y);
}

template <class W>
DS_INLINE void place_double_button_room(W& world, RoomPlan& plan, RandomStream& random) {
    const float side = kWorldWidth / 2.f - kButtonSize;
    for (int b = 0; b < 2; b++) {
        const float x = b == 0 ? random.between(-side, -kButtonSize) : random.between(kButtonSize, side);
        const float y = random.between(plan.start + kRoomLength / 4.f, plan.end - kWallThickness - kButtonHalf);
        plan_button(world, plan, x, y);
    }
    if (plan.lone_cube >= 0) place_lone_agents_cube(world, plan);
}

// Buttons near the side walls, as in both rooms with cubes.
template <class W>
DS_INLINE void place_side_buttons(W& world, RoomPlan& plan, RandomStream& random) {
    const float outer = kWorldWidth / 2.f - kButtonSize, inner = kWorldWidth / 2.f - 3.7f;
    for (int b = 0; b < 2; b++) {
        const float x = b == 0 ? random.between(-outer, -inner) : random.between(inner, outer);
        const float y = random.between(plan.start + kButtonSize, plan.end - kRoomLength / 4.f);
        plan_button(world, plan, x, y);
    }
}

template <class W>
DS_INLINE void place_cube_blocking_room(W& world, RoomPlan& plan, RandomStream& random) {
    place_side_buttons(world, plan, random);
    for (int i = 0; i < 3; i++) plan_cube(world, plan, plan.door + 3.f * static_cast<float>(i - 1), plan.end - 2.5f);
}

template <class W>
DS_INLINE void place_cube_buttons_room(W& world, RoomPlan& plan, RandomStream& random) {
    place_side_buttons(world, plan, random);
    for (int i = 0; i < 2; i++) {
        const float x = i == 0 ? random.between(-5.f, -1.5f) : random.between(1.5f, 5.f);
        const float y = random.between(plan.start + 2.f, plan.end - 3.f);
        plan_cube(world, plan, x, y);
    }
}

template <class W>
DS_INLINE void place_room(W& world, RoomPlan& plan, int32_t type, RandomStream& random) {
    if (type == DS_ROOM_SINGLE_BUTTON) place_single_button_room(world, plan, random);
    else if (type == DS_ROOM_DOUBLE_BUTTON) place_double_button_room(world, plan, random);
    else if (type == DS_ROOM_CUBE_BLOCKING) place_cube_blocking_room(world, plan, random);
    else place_cube_buttons_room(world, plan, random);
    show_in_room(world, plan);
}

// Rooms of the generator, one type each.
struct RoomTypes {
    int32_t of[kRooms];
};
constexpr RoomTypes kReferenceRooms = {{DS_ROOM_DOUBLE_BUTTON, DS_ROOM_CUBE_BLOCKING, DS_ROOM_CUBE_BUTTONS}};

DS_INLINE int cubes_of(int32_t type) {
    return type == DS_ROOM_CUBE_BLOCKING ? 3 : type == DS_ROOM_CUBE_BUTTONS ? 2 : 0;
}
DS_INLINE int buttons_of(int32_t type) { return type == DS_ROOM_SINGLE_BUTTON ? 1 : 2; }
// Only then a button stays pressed while a lone agent is at the other one.
DS_INLINE bool has_lone_agents_cube(int agents, int32_t type) { return agents == 1 && type == DS_ROOM_DOUBLE_BUTTON; }

// How much of the capacity a level uses.
struct UsedParts {
    int statics, buttons, cubes;
};

// Cubes of a lone agent come after those of the rooms.
template <class W>
DS_INLINE UsedParts place_rooms(W& world, const RoomTypes& types, RandomStream& random) {
    int cubes = 0, lone_cubes = 0, button = 0, cube = 0;
    for (int32_t type : types.of) cubes += cubes_of(type);
    for (int room = 0; room < kRooms; room++) {
        RoomPlan plan{};
        plan.room = room;
        plan.start = kRoomLength * static_cast<float>(room);
        plan.end = plan.start + kRoomLength;
        plan.button = button;
        plan.cube = cube;
        plan.lone_cube = has_lone_agents_cube(world.num_agents(), types.of[room]) ? cubes + lone_cubes++ : -1;
        const bool persistent = types.of[room] != DS_ROOM_CUBE_BUTTONS;
        plan.door = place_end_wall(world, room, plan.end - 0.5f * kWallThickness, persistent, random);
        place_room(world, plan, types.of[room], random);
        button += plan.buttons;
        cube += plan.cubes;
    }
    return {3 + 3 * kRooms, button, cubes + lone_cubes};
}

// Lanes that the level does not use are at kNowhere.
template <class W>
DS_INLINE void clear_unused_parts(W& world, UsedParts used) {
    DS_ASSERT(used.statics <= W::kStatics && used.buttons <= W::kButtons && used.cubes <= W::kCubes);
    for (int i = world.num_agents() + used.cubes; i < W::kBodyLanes; i++)
        place_body(world, i, DS_ENTITY_NONE, {kNowhere, kNowhere, kNowhere}, {1.f, 0.f, 0.f, 0.f});
    for (int b = used.buttons; b < W::kButtonLanes; b++) place_button(world, b, 0, kNowhere, kNowhere);
    for (int slot = used.statics; slot < W::kStaticLanes; slot++)
        place_static(world, slot, DS_ENTITY_NONE, kNowhere, kNowhere, {0.f, 0.f, 0.f});
}

// The random draws of the world's present episode.
template <class W>
DS_INLINE RandomStream draws_of(const W& world) {
    return {episode_key(world.identity.seed, world.identity.episode_index, world.identity.global_index), 0};
}

// Agents, walls, doors, buttons and cubes; identity and trouble counters are kept.
template <class W>
DS_INLINE UsedParts generate_contents(W& world, const RoomTypes& types) {
    RandomStream random = draws_of(world);
    place_agents(world, random);
    place_border(world);
    return place_rooms(world, types, random);
}

// All cubes sleep, and no step has been made.
template <class W>
DS_INLINE void start_episode(W& world, UsedParts used, int32_t episode_length) {
    clear_unused_parts(world, used);
    for (int a = 0; a < world.num_agents(); a++) start_agent(world, a);
    world.sleep.cubes = world.cube_bits();
    world.episode.steps_remaining = episode_length;
    DS_ASSERT(episode_length > 0);
}

}  // namespace doorstep
