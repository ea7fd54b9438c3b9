// One world: everything that determines its future, in one block of plain data.
//
// Bodies, statics and buttons are structures of arrays, padded to lanes of 8, so that one vector contains one
// coordinate of all of them. Buttons and bodies share the position arrays ("things"), because observations index both.
// Unused slots have kind 0 and are at kNowhere, where nothing touches them.
#pragma once

#include "math/vector.h"
#include "physics/grab_joint.h"
#include "sim/constants.h"

namespace doorstep {

constexpr float kNowhere = 1e9f;
constexpr int kLanes = 8;

// The thing shown in one observation slot of a room: an index into the position arrays, or none.
constexpr uint8_t kEmptySlot = 255;

template <int Agents>
struct World {
    static constexpr int kAgents = Agents;
    static constexpr int kCubes = Agents == 1 ? 6 : 5;  // a lone agent gets one more, in the first room
    static constexpr int kBodies = kAgents + kCubes;
    static constexpr int kBodyLanes = (kBodies + kLanes - 1) / kLanes * kLanes;
    static constexpr int kStatics = 12;
    static constexpr int kStaticLanes = 16;
    static constexpr int kButtons = 2 * kRooms;
    static constexpr int kButtonLanes = 8;
    static constexpr int kDoors = kRooms;
    static constexpr int kThings = kButtonLanes + kBodyLanes;

    // Things: buttons, then bodies (agents, then cubes). Metres; agents and buttons: bottom centre, cubes: centre.
    float x[kThings], y[kThings], z[kThings];
    // Bodies
    float rotation_w[kBodyLanes], rotation_x[kBodyLanes], rotation_y[kBodyLanes], rotation_z[kBodyLanes];
    float velocity_x[kBodyLanes], velocity_y[kBodyLanes], velocity_z[kBodyLanes];
    float spin_x[kBodyLanes], spin_y[kBodyLanes], spin_z[kBodyLanes];
    // Their bounds at these poses, updated by all code that moves them
    float min_x[kBodyLanes], max_x[kBodyLanes], min_y[kBodyLanes], max_y[kBodyLanes], min_z[kBodyLanes];
    int32_t body_kind[kBodyLanes];

    // Statics: axis-aligned boxes, bottom centre and full extents
    float static_x[kStaticLanes], static_y[kStaticLanes], static_z[kStaticLanes];
    float static_size_x[kStaticLanes], static_size_y[kStaticLanes], static_size_z[kStaticLanes];
    int32_t static_kind[kStaticLanes];

    int32_t button_pressed[kButtonLanes];
    int32_t button_door[kButtonLanes];
    int32_t door_open[kDoors];
    int32_t door_static[kDoors];
    int32_t door_persistent[kDoors];         // stays open once opened
    uint8_t room_slots[kRooms][kEntitySlots];  // observed things, or kEmptySlot
    uint8_t padding_slots[2];                // zero

    // Agents
    int32_t grabs[kAgents];                  // body held, or -1
    int32_t joined[kAgents];                 // body the joint below was made for, or -1; differs after an edit
    GrabJoint joint[kAgents];
    float agent_max_y[kAgents];
    float agent_return[kAgents];             // sum of rewards of this episode

    uint32_t asleep;                         // bit per body: a cube at rest, not simulated until something hits it
    int32_t steps_remaining;
    int32_t done;                            // as the dones tensor

    // Identity
    uint32_t seed, global_index;
    uint32_t episode_index;                  // of the current level
    uint32_t age;                            // steps since creation

    // Counts of trouble, see ds_health
    uint32_t clamped_actions, dropped_contacts, nonfinite_values, repaired_indices;
    int32_t culprit_body, culprit_step;      // -1: none

    static DS_METHOD int thing_of_body(int body) { return kButtonLanes + body; }
    static constexpr uint32_t kCubeBits = ((1u << kCubes) - 1u) << kAgents;

    DS_METHOD Vec3 body_position(int i) const {
        return {x[kButtonLanes + i], y[kButtonLanes + i], z[kButtonLanes + i]};
    }
    DS_METHOD void set_body_position(int i, Vec3 p) {
        x[kButtonLanes + i] = p.x;
        y[kButtonLanes + i] = p.y;
        z[kButtonLanes + i] = p.z;
    }
    DS_METHOD Quat body_rotation(int i) const { return {rotation_w[i], rotation_x[i], rotation_y[i], rotation_z[i]}; }
    DS_METHOD void set_body_rotation(int i, Quat q) {
        rotation_w[i] = q.w;
        rotation_x[i] = q.x;
        rotation_y[i] = q.y;
        rotation_z[i] = q.z;
    }
    DS_METHOD Vec3 body_velocity(int i) const { return {velocity_x[i], velocity_y[i], velocity_z[i]}; }
    DS_METHOD void set_body_velocity(int i, Vec3 v) {
        velocity_x[i] = v.x;
        velocity_y[i] = v.y;
        velocity_z[i] = v.z;
    }
    DS_METHOD Vec3 body_spin(int i) const { return {spin_x[i], spin_y[i], spin_z[i]}; }
    DS_METHOD void set_body_spin(int i, Vec3 v) {
        spin_x[i] = v.x;
        spin_y[i] = v.y;
        spin_z[i] = v.z;
    }
    // Indices clamped when they are used: another thread may have written them since the checks at the start of the
    // step.
    DS_METHOD int held_by(int agent) const {
        const uint32_t cube = static_cast<uint32_t>(grabs[agent]) - static_cast<uint32_t>(kAgents);
        return cube < static_cast<uint32_t>(kCubes) ? kAgents + static_cast<int>(cube) : -1;
    }
    DS_METHOD int panel_of(int door) const { return door_static[door] & (kStaticLanes - 1); }

    DS_METHOD Heading agent_heading(int a) const { return heading_of(rotation_w[a], rotation_z[a]); }
    DS_METHOD bool at_rest(int i) const {
        return velocity_x[i] == 0.f && velocity_y[i] == 0.f && velocity_z[i] == 0.f && spin_x[i] == 0.f &&
               spin_y[i] == 0.f && spin_z[i] == 0.f;
    }
};

// Distance in memory from one world's block to the next; each begins a cache line.
template <class W>
constexpr int kBlockBytes = static_cast<int>((sizeof(W) + 63) / 64 * 64);

// Rooms divide y equally; the first and last extend to infinity. Safe for any value.
DS_INLINE int room_of(float y) { return y < kRoomLength ? 0 : y < 2.f * kRoomLength ? 1 : 2; }

DS_INLINE Bounds body_bounds(bool is_agent, Vec3 p, Quat q) {
    if (is_agent || tilt_of(q) <= kExactlyUpright) {
        const Heading heading = heading_of(q.w, q.z);
        const float half = is_agent ? kAgentHalfExtent : kCubeHalfExtent;
        const float reach = half * (absolute(heading.cosine) + absolute(heading.sine));
        const float bottom = is_agent ? p.z : p.z - kCubeHalfExtent;
        return {p.x - reach, p.x + reach, p.y - reach, p.y + reach, bottom, bottom + 2.f * half};
    }
    const Vec3 reach = reach_of(turned_box(p, q, {kCubeHalfExtent, kCubeHalfExtent, kCubeHalfExtent}));
    return {p.x - reach.x, p.x + reach.x, p.y - reach.y, p.y + reach.y, p.z - reach.z, p.z + reach.z};
}

template <class W>
DS_INLINE void refresh_bounds(W& world, int body) {
    const Bounds bounds = body_bounds(body < W::kAgents, world.body_position(body), world.body_rotation(body));
    world.min_x[body] = bounds.min_x;
    world.max_x[body] = bounds.max_x;
    world.min_y[body] = bounds.min_y;
    world.max_y[body] = bounds.max_y;
    world.min_z[body] = bounds.min_z;
}

}  // namespace doorstep
