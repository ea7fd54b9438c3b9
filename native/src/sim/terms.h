// The terms of an episode: its rooms, goal, rewards, length, and what parts of the world it uses.
//
// Worlds that play the reference's levels only have ReferenceTerms, which are constants and take no memory. Worlds that
// play any levels have LevelTerms, which a reset copies from the level. Both have the same functions.
#pragma once

#include "physics/body.h"
#include "sim/constants.h"
#include "sim/world_model.h"

namespace doorstep {

struct Episode {
    int32_t steps_remaining;
    int32_t done;  // as the dones tensor
};

// Rooms of the reference divide y equally; the first and last extend to infinity.
struct ReferenceTerms {
    static constexpr size_t kSavedBytes = 0;
    static constexpr bool kAllCubesUsed = true;
    using Material = ReferenceMaterial;

    DS_METHOD bool is_valid() const { return true; }
    DS_METHOD Material of_cubes() const { return {}; }

    // Whether agents that touch nothing, or walls only, move as in the reference: what the flight table has.
    DS_METHOD bool has_reference_motion() const { return true; }
    DS_METHOD float force_per_amount() const { return kForcePerAmount; }
    DS_METHOD float torque_per_turn() const { return kTorquePerTurn; }
    // Its numbers of ds_level_physics, divided by the reference's.
    DS_METHOD void relative_physics(float* numbers) const {
        for (int i = 0; i < kPhysics; i++) numbers[i] = 1.f;
    }

    // Which door agents observe in a room, or -1.
    DS_METHOD int door_of(int room) const { return room; }
    // Safe for any value.
    DS_METHOD int room_of(float y) const { return y < kRoomLength ? 0 : y < 2.f * kRoomLength ? 1 : 2; }
    // 0 where the room starts, 1 where it ends.
    DS_METHOD float place_in_room(float y, int room) const {
        return (y - kRoomLength * static_cast<float>(room)) * (1.f / kRoomLength);
    }

    // How many of the capacity are in use.
    DS_METHOD int used_doors(int capacity) const { return capacity; }
    DS_METHOD int used_buttons(int capacity) const { return capacity; }

    // of_rules: the simulator's.
    DS_METHOD int32_t episode_length(int32_t of_rules) const { return of_rules; }
    DS_METHOD void limit_length(int32_t) {}
    // Whether an episode has ended that no reset has followed.
    DS_METHOD bool is_over(const Episode& episode) const { return episode.steps_remaining == 0; }

    DS_METHOD bool is_beyond_rooms(float y) const { return y > kWorldLength; }

    DS_METHOD ds_level_rewards rewards_of(const GivenRewards& given) const { return given.rewards; }

    // Which agents must be in the goal for it to be reached, and whether a position is in it.
    DS_METHOD int32_t goal_agents() const { return DS_GOAL_NONE; }
    DS_METHOD bool is_in_goal(float, float) const { return false; }

    // Writes which level of the table this is.
    DS_METHOD void tell_level(int32_t*) const {}

    // Metres that a door's panel moves per step, and the height below which an open panel of some size stops.
    DS_METHOD float door_drop() const { return kDoorDrop; }
    DS_METHOD float sink_limit(float) const { return kDoorSinkLimit; }
};

struct LevelTerms {
    static constexpr int kMostRooms = DS_LEVEL_MAX_ROOMS;
    static constexpr size_t kSavedBytes = 4 * (3 + 3 * kMostRooms + 5 + 9 + kPhysics + 3 + 6);

    int32_t num_rooms, num_doors, num_buttons;
    float room_start[kMostRooms];      // metres; the first is not used to find an agent's room
    float room_scale[kMostRooms];      // 1 / length
    int32_t room_door[kMostRooms];
    ds_level_goal goal;
    ds_level_rewards rewards;
    float physics[kPhysics];       // as drawn; what follows is derived from it
    LevelMaterial material;
    float force, torque;           // per amount, per turn
    int32_t reference_motion;      // 0 or 1
    float drop;                    // of open doors, metres per step
    int32_t length;                // steps
    int32_t level;                 // its index in the table

    static constexpr bool kAllCubesUsed = false;
    using Material = LevelMaterial;

    // Indices and counts in range.
    DS_METHOD bool is_valid() const {
        bool valid = num_rooms >= 1 && num_rooms <= kMostRooms && num_doors >= 0 && num_doors <= DS_LEVEL_MAX_DOORS &&
                     num_buttons >= 0 && num_buttons <= DS_LEVEL_MAX_BUTTONS && length >= 1 && level >= 0;
        for (int32_t door : room_door) valid = valid && door >= -1 && door < DS_LEVEL_MAX_DOORS;
        return valid;
    }

    DS_METHOD int door_of(int room) const { return room_door[room]; }
    DS_METHOD int room_of(float y) const {
        int room = 0;
        for (int i = 1; i < kMostRooms; i++) room += i < num_rooms && !(y < room_start[i]);
        return room;
    }
    DS_METHOD float place_in_room(float y, int room) const { return (y - room_start[room]) * room_scale[room]; }

    DS_METHOD Material of_cubes() const { return material; }
    DS_METHOD bool has_reference_motion() const { return reference_motion; }
    DS_METHOD float force_per_amount() const { return force; }
    DS_METHOD float torque_per_turn() const { return torque; }
    DS_METHOD void relative_physics(float* numbers) const {
        constexpr float kReference[kPhysics] = {1.f / kCubeInverseMass, 1.f, kWalkingForce, kTurningTorque, kDoorSpeed};
        for (int i = 0; i < kPhysics; i++) numbers[i] = physics[i] / kReference[i];
    }

    DS_METHOD int used_doors(int) const { return num_doors; }
    DS_METHOD int used_buttons(int) const { return num_buttons; }

    DS_METHOD int32_t episode_length(int32_t) const { return length; }
    DS_METHOD void limit_length(int32_t most) { length = length < most ? length : most; }
    DS_METHOD bool is_over(const Episode& episode) const {
        return episode.steps_remaining == 0 || (episode.done && episode.steps_remaining < length);
    }

    DS_METHOD bool is_beyond_rooms(float y) const { return place_in_room(y, (num_rooms - 1) % kMostRooms) > 1.f; }

    DS_METHOD ds_level_rewards rewards_of(const GivenRewards& given) const {
        return given.replace_those_of_levels ? given.rewards : rewards;
    }

    DS_METHOD int32_t goal_agents() const { return goal.agents; }
    DS_METHOD bool is_in_goal(float x, float y) const {
        return goal.min_x <= x && x <= goal.max_x && goal.min_y <= y && y <= goal.max_y;
    }

    DS_METHOD void tell_level(int32_t* drawn) const { *drawn = level; }

    DS_METHOD float door_drop() const { return drop; }
    DS_METHOD float sink_limit(float height) const { return -(height + kDoorClearance); }
};

}  // namespace doorstep
