// Observations: what each agent observes of itself, the other agents, the entities of its room, and its room's door.
//
// As in the reference, bearings are clockwise from forward, yaw is counter-clockwise.
#pragma once

#include "math/lanes.h"
#include "math/trigonometry.h"
#include "sim/lidar.h"
#include "sim/tile.h"

namespace doorstep {

// The tensors to write one observation to: the current ones, or the final ones of an ended episode.
struct ObservationTensors {
    int32_t* steps_remaining;
    float *self, *partners, *room_entities, *doors, *lidar;
    float* flat;  // null without flat_observations
};

DS_INLINE ObservationTensors current_observations(const TensorPointers& t) {
    return {t.steps_remaining, t.self_observations, t.partner_observations, t.room_entity_observations,
            t.door_observations, t.lidar, t.observations};
}
DS_INLINE ObservationTensors final_observations(const TensorPointers& t) {
    return {t.final_steps_remaining, t.final_self_observations, t.final_partner_observations,
            t.final_room_entity_observations, t.final_door_observations, t.final_lidar, t.final_observations};
}

constexpr int kSelfSize = 8, kPolarSize = 3, kLidarSize = 2 * kLidarRays;
constexpr float kInversePi = 0.31830988618f;

DS_INLINE constexpr int flat_size(int agents) {
    return kSelfSize + kPolarSize * (agents - 1) + kPolarSize * kEntitySlots + kPolarSize + kLidarSize + 2;
}

// Everything that an agent observes as distance and bearing: the door, the slots of its room, the other agents.
template <class W>
struct Sights {
    static constexpr int kDoor = 0, kEntities = 1, kPartners = 1 + kEntitySlots;
    static constexpr int kCount = kPartners + W::kAgents - 1;
    static constexpr int kPadded = (kCount + kLanes - 1) / kLanes * kLanes;
    alignas(32) float x[kPadded], y[kPadded];  // position, metres; then distance and bearing
};

template <class W>
DS_INLINE void collect_sights(const W& world, int agent, int room, Sights<W>& sights) {
    using S = Sights<W>;
    const int door = world.panel_of(room);
    sights.x[S::kDoor] = world.static_x[door];
    sights.y[S::kDoor] = world.static_y[door];
    for (int k = 0; k < kEntitySlots; k++) {
        const int thing = world.room_slots[room][k] == kEmptySlot ? 0 : world.room_slots[room][k];
        sights.x[S::kEntities + k] = world.x[thing];
        sights.y[S::kEntities + k] = world.y[thing];
    }
    for (int k = 0; k < S::kPadded - S::kPartners; k++) {
        const int other = k < W::kAgents - 1 ? k + (k >= agent) : agent;
        sights.x[S::kPartners + k] = world.x[W::kButtonLanes + other];
        sights.y[S::kPartners + k] = world.y[W::kButtonLanes + other];
    }
}

template <class Float, class W>
DS_INLINE void to_polar(const W& world, int agent, Heading heading, Sights<W>& sights) {
    const Float c(heading.cosine), s(heading.sine);
    const Float x(world.x[W::kButtonLanes + agent]), y(world.y[W::kButtonLanes + agent]);
    for (int lane = 0; lane < Sights<W>::kPadded; lane += Float::kLanes) {
        const Float dx = Float::load(sights.x + lane) - x, dy = Float::load(sights.y + lane) - y;
        const Float right = c * dx + s * dy, forward = c * dy - s * dx;
        (square_root(right * right + forward * forward) * Float(kDistanceScale)).store(sights.x + lane);
        (arc_tangent(right, forward) * Float(kInversePi)).store(sights.y + lane);
    }
}

template <class W>
DS_INLINE void write_self(const W& world, int agent, int room, float yaw, float* out) {
    const float x = world.x[W::kButtonLanes + agent], y = world.y[W::kButtonLanes + agent];
    out[0] = x * 0.1f;
    out[1] = (y - kRoomLength * static_cast<float>(room)) * (1.f / kRoomLength);
    out[2] = x * kDistanceScale;
    out[3] = y * kDistanceScale;
    out[4] = world.z[W::kButtonLanes + agent] * kDistanceScale;
    out[5] = world.agent_max_y[agent] * kDistanceScale;
    out[6] = yaw * kInversePi;
    out[7] = world.grabs[agent] >= 0 ? 1.f : 0.f;
}

template <class W>
DS_INLINE void write_partners(const W& world, int agent, const Sights<W>& sights, float* out) {
    for (int k = 0; k < W::kAgents - 1; k++) {
        const int other = k + (k >= agent);
        out[3 * k] = sights.x[Sights<W>::kPartners + k];
        out[3 * k + 1] = sights.y[Sights<W>::kPartners + k];
        out[3 * k + 2] = world.grabs[other] >= 0 ? 1.f : 0.f;
    }
}

template <class W>
DS_INLINE void write_room_entities(const W& world, int room, const Sights<W>& sights, float* out) {
    constexpr float kButtonCode = 1.f / kEntityKinds, kCubeCode = 2.f / kEntityKinds;
    for (int k = 0; k < kEntitySlots; k++) {
        const uint8_t thing = world.room_slots[room][k];
        const bool empty = thing == kEmptySlot;
        out[3 * k] = empty ? 0.f : sights.x[Sights<W>::kEntities + k];
        out[3 * k + 1] = empty ? 1.f : sights.y[Sights<W>::kEntities + k];
        out[3 * k + 2] = empty ? 0.f : thing < W::kButtonLanes ? kButtonCode : kCubeCode;
    }
}

template <class W>
DS_INLINE void write_door(const W& world, int room, const Sights<W>& sights, float* out) {
    out[0] = sights.x[Sights<W>::kDoor];
    out[1] = sights.y[Sights<W>::kDoor];
    out[2] = world.door_open[room] ? 1.f : 0.f;
}

DS_INLINE float* append(float* to, const float* from, int count) {
    DS_ROLLED
    for (int i = 0; i < count; i++) to[i] = from[i];
    return to + count;
}

// Concatenates the parts of an agent's row, read from the tensors just written.
template <class W>
DS_INLINE void flatten(const W& world, int agent, const ObservationTensors& to, int64_t slot, int32_t episode_length) {
    const int64_t row = slot * W::kAgents + agent;
    float* out = to.flat + row * flat_size(W::kAgents);
    out = append(out, to.self + row * kSelfSize, kSelfSize);
    out = append(out, to.partners + row * kPolarSize * (W::kAgents - 1), kPolarSize * (W::kAgents - 1));
    out = append(out, to.room_entities + row * kPolarSize * kEntitySlots, kPolarSize * kEntitySlots);
    out = append(out, to.doors + row * kPolarSize, kPolarSize);
    out = append(out, to.lidar + row * kLidarSize, kLidarSize);
    out[0] = static_cast<float>(world.steps_remaining) / static_cast<float>(episode_length);
    out[1] = static_cast<float>(agent) / static_cast<float>(W::kAgents > 1 ? W::kAgents - 1 : 1);
}

// All but lidar and the flat observation. yaw: radians.
template <class Float, class W>
DS_INLINE void observe_agent(const W& world, int agent, float yaw, const ObservationTensors& to, int64_t slot) {
    const int64_t row = slot * W::kAgents + agent;
    const int room = room_of(world.y[W::kButtonLanes + agent]);
    Sights<W> sights;
    collect_sights(world, agent, room, sights);
    to_polar<Float>(world, agent, world.agent_heading(agent), sights);
    write_self(world, agent, room, yaw, to.self + row * kSelfSize);
    write_partners(world, agent, sights, to.partners + row * kPolarSize * (W::kAgents - 1));
    write_room_entities(world, room, sights, to.room_entities + row * kPolarSize * kEntitySlots);
    write_door(world, room, sights, to.doors + row * kPolarSize);
    to.steps_remaining[row] = world.steps_remaining;
}

template <class W>
DS_INLINE float measure_yaw(const W& world, int agent) {
    const Heading heading = world.agent_heading(agent);
    return arc_tangent(NarrowFloat(heading.sine), NarrowFloat(heading.cosine)).v;
}

// The yaws of as many agents of a tile as there are lanes, from agent slot `first` on.
template <class Float, class TileT>
DS_INLINE void measure_yaws(const TileT& tile, int first) {
    constexpr int kAgents = TileT::W::kAgents;
    const int last = tile.count * kAgents - 1;
    float sines[Float::kLanes], cosines[Float::kLanes], yaws[Float::kLanes];
    for (int lane = 0; lane < Float::kLanes; lane++) {
        const int slot = first + lane < last ? first + lane : last;
        const Heading heading = tile.world_of(slot).agent_heading(slot % kAgents);
        sines[lane] = heading.sine;
        cosines[lane] = heading.cosine;
    }
    arc_tangent(Float::load(sines), Float::load(cosines)).store(yaws);
    for (int lane = 0; lane < Float::kLanes && first + lane <= last; lane++)
        tile.records.yaws[first + lane] = yaws[lane];
}

}  // namespace doorstep
