// The level of a world's next episode: the reference's, or one drawn from a table, with its terms.
#pragma once

#include "sim/level.h"
#include "sim/stages.h"

namespace doorstep {

// Draws for anything but the contents of generated levels begin here in the episode's stream, so that they leave the
// reference's draws as they are.
constexpr uint32_t kFirstOtherDraw = 1u << 24;

// ---- The choice

// Where the sum of a row of weights overflows, all are multiplied by this: then it cannot, and what becomes 0 has a
// probability below 2^-240.
constexpr float kOverflowScale = 0x1p-21f;
static_assert(DS_MAX_LEVELS < 1 << 21);

// Weights may hold anything: the caller edits them in place.
DS_INLINE float usable_weight(float weight, float scale) {
    return weight > 0.f && is_finite(weight) ? weight * scale : 0.f;
}

// Calls visit(index, weight) in order until it returns false. Weights are read some at a time, because a CUDA thread waits
// as long for one as for all of them; zeros follow the last.
template <class Visit>
DS_INLINE void visit_weights(LevelSource source, const Visit& visit) {
    constexpr int kTogether = 8;
    DS_ROLLED
    for (int64_t first = 0; first < source.count; first += kTogether) {
        float weights[kTogether];
        for (int k = 0; k < kTogether; k++) weights[k] = first + k < source.count ? source.weights[first + k] : 0.f;
        for (int k = 0; k < kTogether; k++)
            if (!visit(first + k, weights[k])) return;
    }
}

struct WeightSum {
    float scale, total;
    bool has_nonfinite;
};
DS_INLINE WeightSum sum_weights(LevelSource source, float scale) {
    WeightSum sum{scale, 0.f, false};
    visit_weights(source, [&](int64_t, float weight) {
        sum.total += usable_weight(weight, scale);
        sum.has_nonfinite |= !is_finite(weight);
        return true;
    });
    return sum;
}

// Counts a draw from weights that are not finite, and one that they do not allow. Returns Trouble bits.
template <class W>
DS_INLINE uint32_t check_draw(W& world, const WeightSum& sum, bool found) {
    if (sum.has_nonfinite) world.health.nonfinite_values++;
    if (!found) world.health.repaired_indices++;
    if (sum.has_nonfinite || !found) note_trouble(world.health, world.identity, -1);
    return (sum.has_nonfinite ? kTroubleNonfinite : kTroubleNone) | (found ? kTroubleNone : kTroubleRepairedIndex);
}

// Draws a level with the probabilities of the world's weights; level 0, which always exists, if they allow none. Returns
// Trouble bits.
template <class W>
DS_INLINE uint32_t draw_level(W& world, LevelSource source, RandomStream& random, int32_t* level) {
    WeightSum sum = sum_weights(source, 1.f);
    if (!is_finite(sum.total)) sum = sum_weights(source, kOverflowScale);
    const float drawn = sum.total * random.uniform();
    float passed = 0.f;
    int64_t found = -1;
    visit_weights(source, [&](int64_t i, float given) {
        const float weight = usable_weight(given, sum.scale);
        if (weight > 0.f) found = i;
        passed += weight;
        return !(passed > drawn);
    });
    *level = found < 0 ? 0 : static_cast<int32_t>(found);
    return check_draw(world, sum, found >= 0);
}

// ---- Limits

// How much of a level's arrays is in use. Batches draw from tables in the caller's memory, which was not checked:
// whatever they hold, nothing beyond the arrays is read or written.
struct LevelCounts {
    int32_t walls, doors, buttons, cubes, rooms;
};
DS_INLINE LevelCounts counts_of(const ds_level& level) {
    const int32_t walls = clamp(level.num_walls, 0, DS_LEVEL_MAX_STATICS);
    const int32_t doors = clamp(level.num_doors, 0, DS_LEVEL_MAX_DOORS);
    return {walls, doors < DS_LEVEL_MAX_STATICS - walls ? doors : DS_LEVEL_MAX_STATICS - walls,
            clamp(level.num_buttons, 0, DS_LEVEL_MAX_BUTTONS), clamp(level.num_cubes, 0, DS_LEVEL_MAX_CUBES),
            clamp(level.num_rooms, 1, DS_LEVEL_MAX_ROOMS)};
}

// ---- Terms

// Rooms as in ReferenceTerms, bit by bit.
DS_INLINE void set_reference_rooms(LevelTerms& terms, UsedParts used) {
    terms.num_rooms = terms.num_doors = kRooms;
    terms.num_buttons = used.buttons;
    for (int room = 0; room < LevelTerms::kMostRooms; room++) {
        terms.room_start[room] = kRoomLength * static_cast<float>(room);
        terms.room_scale[room] = 1.f / kRoomLength;
        terms.room_door[room] = room < kRooms ? room : -1;
    }
}

DS_INLINE void set_fixed_rooms(LevelTerms& terms, const ds_level& level, LevelCounts counts) {
    terms.num_rooms = counts.rooms;
    terms.num_doors = counts.doors;
    terms.num_buttons = counts.buttons;
    for (int i = 0; i < LevelTerms::kMostRooms; i++) {
        const bool used = i < counts.rooms;
        terms.room_start[i] = used ? level.rooms[i].start : 0.f;
        terms.room_scale[i] = used ? 1.f / (level.rooms[i].end - level.rooms[i].start) : 1.f;
        terms.room_door[i] = used ? clamp(level.rooms[i].door, -1, DS_LEVEL_MAX_DOORS - 1) : -1;
    }
}

DS_INLINE float draw(ds_range range, RandomStream& random) {
    const float drawn = random.uniform();
    return range.low == range.high ? range.low : minimum(drawn * (range.high - range.low) + range.low, range.high);
}

DS_INLINE int32_t draw_length(const ds_level& level, int32_t length_of_rules, RandomStream& random) {
    const float drawn = random.uniform();
    const int32_t high = clamp(level.max_episode_length, 0, DS_MAX_EPISODE_LENGTH);
    if (high == 0) return length_of_rules;
    const int32_t low = clamp(level.min_episode_length, 1, high);
    return low + clamp(static_cast<int32_t>(drawn * static_cast<float>(high - low + 1)), 0, high - low);
}

DS_INLINE void set_physics(LevelTerms& terms, const ds_level_physics& physics, RandomStream& random) {
    const float mass = draw(physics.cube_mass, random), friction = draw(physics.friction, random);
    const float force = draw(physics.walking_force, random), torque = draw(physics.turning_torque, random);
    const float speed = draw(physics.door_speed, random);
    const float drawn[] = {mass, friction, force, torque, speed};
    static_assert(sizeof drawn == sizeof terms.physics);
    for (int i = 0; i < kPhysics; i++) terms.physics[i] = drawn[i];
    terms.material = {1.f / mass, 1.f / (mass * kCubeInertiaPerMass), friction};
    terms.force = force / static_cast<float>(kMoveAmounts - 1);
    terms.torque = torque / static_cast<float>(kNeutralTurn);
    terms.reference_motion = friction == 1.f && force == kWalkingForce && torque == kTurningTorque;
    terms.drop = speed / kStepsPerSecond;
}

DS_INLINE void set_terms(LevelTerms& terms, const ds_level& level, int32_t length_of_rules, RandomStream& random) {
    terms.goal = level.goal;
    terms.rewards = level.rewards;
    terms.length = draw_length(level, length_of_rules, random);
    set_physics(terms, level.physics, random);
}

// ---- Contents

DS_INLINE Heading twice(Heading angle) {
    return {1.f - 2.f * angle.sine * angle.sine, 2.f * angle.sine * angle.cosine};
}

// yaw: up to one turn, of whose eighth sine_cosine() is accurate.
DS_INLINE Quat rotation_of_yaw(float yaw) {
    const Heading half = twice(twice(sine_cosine(0.125f * yaw)));
    return {half.cosine, 0.f, 0.f, half.sine};
}

template <class W>
DS_INLINE void place_level_agents(W& world, const ds_level& level, RandomStream& random) {
    for (int a = 0; a < world.num_agents(); a++) {
        const float x = draw(level.agents[a].x, random), y = draw(level.agents[a].y, random);
        const float yaw = draw(level.agents[a].yaw, random);
        place_body(world, a, DS_ENTITY_AGENT, {x, y, 0.f}, rotation_of_yaw(yaw));
    }
}

template <class W>
DS_INLINE void place_level_box(W& world, int slot, int kind, const ds_level_box& box) {
    place_static(world, slot, kind, box.x, box.y, {box.size_x, box.size_y, box.size_z});
    world.statics.z[slot] = box.z;
}

// Walls, then the panels of doors. Doors that the level does not have refer to the first static, and are not moved.
template <class W>
DS_INLINE void place_level_statics(W& world, const ds_level& level, LevelCounts counts) {
    for (int i = 0; i < counts.walls; i++) place_level_box(world, i, DS_ENTITY_WALL, level.walls[i]);
    for (int d = 0; d < W::kDoors; d++) {
        const bool used = d < counts.doors;
        const int panel = used ? counts.walls + d : 0;
        if (used) place_level_box(world, panel, DS_ENTITY_DOOR, level.doors[d].panel);
        world.doors.open[d] = 0;
        world.doors.panel[d] = panel;
        world.doors.persistent[d] = used && level.doors[d].persistent;
    }
}

template <class W>
DS_INLINE void place_level_objects(W& world, const ds_level& level, LevelCounts counts) {
    for (int b = 0; b < counts.buttons; b++) {
        const int32_t door = clamp(level.buttons[b].door, 0, DS_LEVEL_MAX_DOORS - 1);
        place_button(world, b, door, level.buttons[b].x, level.buttons[b].y);
    }
    for (int c = 0; c < counts.cubes; c++) {
        const ds_level_cube& cube = level.cubes[c];
        place_body(world, world.num_agents() + c, DS_ENTITY_CUBE, {cube.x, cube.y, kCubeHalfExtent},
                   rotation_of_yaw(cube.yaw));
    }
}

// The first of the room's buttons and cubes, by their place at the start.
template <class W>
DS_INLINE void show_in_rooms(W& world, UsedParts used) {
    for (int room = 0; room < W::kRooms; room++) {
        int slot = 0;
        for (int i = 0; i < used.buttons + used.cubes && slot < kEntitySlots; i++) {
            const int thing = i < used.buttons ? i : W::thing_of_body(world.num_agents() + i - used.buttons);
            if (world.terms().room_of(world.bodies.y[thing]) == room)
                world.rooms.thing[room][slot++] = static_cast<uint8_t>(thing);
        }
        while (slot < kEntitySlots) world.rooms.thing[room][slot++] = kEmptySlot;
    }
}

template <class W>
DS_INLINE UsedParts place_fixed_level(W& world, const ds_level& level, RandomStream& random) {
    const LevelCounts counts = counts_of(level);
    const UsedParts used{counts.walls + counts.doors, counts.buttons, counts.cubes};
    set_fixed_rooms(world.terms(), level, counts);
    place_level_agents(world, level, random);
    place_level_statics(world, level, counts);
    place_level_objects(world, level, counts);
    show_in_rooms(world, used);
    return used;
}

// Doors and rooms beyond the generator's.
template <class W>
DS_INLINE void clear_unused_rooms(W& world) {
    for (int d = kRooms; d < W::kDoors; d++) world.doors.open[d] = world.doors.panel[d] = world.doors.persistent[d] = 0;
    for (int room = kRooms; room < W::kRooms; room++)
        for (uint8_t& thing : world.rooms.thing[room]) thing = kEmptySlot;
}

// ---- What may differ from the reference's generator in a generated level

constexpr float kCubeMaxX = 0.5f * kWorldWidth - kCubeHalfExtent;

// Moves a cube to anywhere on the way to a button, as near as the walls of the room allow.
template <class W>
DS_INLINE void move_cube_towards(W& world, int cube, int button, int room, RandomStream& random) {
    const int thing = W::thing_of_body(world.num_agents() + cube);
    const float start = kRoomLength * static_cast<float>(room), end = start + kRoomLength - kWallThickness;
    const float x = minimum(maximum(world.bodies.x[button], -kCubeMaxX), kCubeMaxX);
    const float y = minimum(maximum(world.bodies.y[button], start + kCubeHalfExtent), end - kCubeHalfExtent);
    const float way = random.uniform();
    place_cube(world, cube, world.bodies.x[thing] + way * (x - world.bodies.x[thing]),
               world.bodies.y[thing] + way * (y - world.bodies.y[thing]));
}

template <class W>
DS_INLINE void move_cubes_near_buttons(W& world, const RoomTypes& types, float share, RandomStream& random) {
    int button = 0, cube = 0;
    for (int room = 0; room < kRooms; room++) {
        const int32_t type = types.of[room];
        for (int i = 0; type == DS_ROOM_CUBE_BUTTONS && i < cubes_of(type); i++)
            if (random.uniform() < share) move_cube_towards(world, cube + i, button + i, room, random);
        button += buttons_of(type);
        cube += cubes_of(type);
    }
}


// The places of a grid that fills a room, and is shifted by what the room has to spare. Agents in different places do
// not touch, whatever their yaws are. Cubes of a room reach into 18 places at most: into three along x and along y each,
// if there are two, and five along x if there are three side by side. So there is one for every agent.
struct SpawnGrid {
    static constexpr int kRows = 4;
    static constexpr float kPitch = 2.85f, kReach = 0.5f * kPitch;
    static constexpr float kSpareY = kRoomLength - kWallThickness - kPitch * kRows;
    static DS_METHOD constexpr int columns_for(int agents) { return agents > 6 ? 7 : 6; }
    static DS_METHOD constexpr float spare_x(int columns) { return kWorldWidth - kPitch * static_cast<float>(columns); }
    static_assert(kReach > 1.4143f * kAgentHalfExtent && kReach + kCubeHalfExtent < 1.5f * kPitch && kSpareY >= 0.f);

    int columns;
    float x, y;  // of the first place

    DS_METHOD int places() const { return columns * kRows; }
    DS_METHOD Vec3 place(int index) const {
        const int column = index % columns, row = index / columns;
        return {x + kPitch * static_cast<float>(column), y + kPitch * static_cast<float>(row), 0.f};
    }
};

static_assert(SpawnGrid::spare_x(7) >= 0.f && 6 * SpawnGrid::kRows >= 18 + 6 &&
              7 * SpawnGrid::kRows >= 18 + DS_MAX_AGENTS);

DS_INLINE SpawnGrid draw_spawn_grid(int agents, int room, RandomStream& random) {
    const int columns = SpawnGrid::columns_for(agents);
    const float left = SpawnGrid::kReach - 0.5f * kWorldWidth;
    const float start = SpawnGrid::kReach + kRoomLength * static_cast<float>(room);
    const float x = left + random.between(0.f, SpawnGrid::spare_x(columns));
    return {columns, x, start + random.between(0.f, SpawnGrid::kSpareY)};
}

// Whether an agent there touches no cube, and none of the agents before it.
template <class W>
DS_INLINE bool is_free(const W& world, Vec3 place, int agent, UsedParts used) {
    for (int other = 0; other < world.num_agents() + used.cubes; other++) {
        if (other >= agent && world.is_agent(other)) continue;
        const float reach = SpawnGrid::kReach + (world.is_agent(other) ? 0.f : kCubeHalfExtent);
        const int thing = W::thing_of_body(other);
        if (absolute(world.bodies.x[thing] - place.x) < reach && absolute(world.bodies.y[thing] - place.y) < reach)
            return false;
    }
    return true;
}

// The first free place from a drawn one on.
template <class W>
DS_INLINE Vec3 free_place(const W& world, const SpawnGrid& grid, int drawn, int agent, UsedParts used) {
    for (int i = 0; i < grid.places(); i++) {
        const Vec3 place = grid.place((drawn + i) % grid.places());
        if (is_free(world, place, agent, used)) return place;
    }
    DS_ASSERT(false);
    return grid.place(drawn);
}

template <class W>
DS_INLINE void place_agents_in(W& world, int room, UsedParts used, RandomStream& random) {
    const SpawnGrid grid = draw_spawn_grid(world.num_agents(), room, random);
    for (int a = 0; a < world.num_agents(); a++) {
        const int drawn = static_cast<int>(static_cast<float>(grid.places()) * random.uniform());
        const Quat rotation = rotation_of_yaw(random.between(-kPi, kPi));
        place_body(world, a, DS_ENTITY_AGENT, free_place(world, grid, drawn, a, used), rotation);
    }
}

template <class W>
DS_INLINE UsedParts generate_level(W& world, const ds_level& level, RandomStream& random) {
    RoomTypes types;
    for (int room = 0; room < kRooms; room++) {
        const int32_t drawn = clamp(static_cast<int32_t>(4.f * random.uniform()), 0, DS_ROOM_CUBE_BUTTONS);
        types.of[room] = level.room_types[room] == DS_ROOM_ANY ? drawn : level.room_types[room];
    }
    const UsedParts used = generate_contents(world, types);
    if (level.cubes_near_buttons > 0.f) move_cubes_near_buttons(world, types, level.cubes_near_buttons, random);
    const int first_room = clamp(level.first_room, 0, kRooms - 1);
    if (first_room > 0) place_agents_in(world, first_room, used, random);
    set_reference_rooms(world.terms(), used);
    clear_unused_rooms(world);
    return used;
}

// ---- The next episode's level: by the kind of world

// By value: what a CUDA function gets by reference has to be in memory.
template <class W>
DS_NOINLINE void play_reference(W& world, int32_t episode_length) {
    const UsedParts used = generate_contents(world, kReferenceRooms);
    start_episode(world, used, episode_length);
}

template <class W>
DS_NOINLINE uint32_t play_drawn_level(W& world, int32_t episode_length, LevelSource source) {
    RandomStream random = draws_of(world);
    random.count = kFirstOtherDraw;
    int32_t drawn;
    const uint32_t trouble = draw_level(world, source, random, &drawn);
    const ds_level& level = source.levels[drawn];
    const UsedParts used = level.source == DS_LEVEL_SOURCE_GENERATED ? generate_level(world, level, random)
                                                                    : place_fixed_level(world, level, random);
    set_terms(world.terms(), level, episode_length, random);
    world.terms().level = drawn;
    start_episode(world, used, world.terms().length);
    *source.drawn = drawn;
    return trouble;
}

// Returns Trouble bits.
template <class W>
DS_INLINE uint32_t begin_episode(W& world, const Rules& rules, LevelSource source) {
    if constexpr (W::kPlaysLevels) {
        return play_drawn_level(world, rules.episode_length, source);
    } else {
        play_reference(world, rules.episode_length);
        return kTroubleNone;
    }
}

}  // namespace doorstep
