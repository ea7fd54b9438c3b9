// Observations: what each agent observes of itself, the other agents, the entities of its room, and its room's door.
//
// As in the reference, bearings are clockwise from forward, yaw is counter-clockwise.
#pragma once

#include "math/lanes.h"
#include "math/trigonometry.h"
#include "sim/lidar.h"
#include "sim/observation_layout.h"
#include "sim/stages.h"

namespace doorstep {

constexpr float kInversePi = 0.31830988618f;

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
    // Without a door its position is not used
    const int door = world.doors.panel_of(clamp(world.terms().door_of(room), 0, W::kDoors - 1));
    sights.x[S::kDoor] = world.statics.x[door];
    sights.y[S::kDoor] = world.statics.y[door];
    for (int k = 0; k < kEntitySlots; k++) {
        const int thing = world.rooms.thing[room][k] == kEmptySlot ? 0 : world.rooms.thing[room][k];
        DS_ASSERT(thing >= 0 && thing < W::kThings);
        sights.x[S::kEntities + k] = world.bodies.x[thing];
        sights.y[S::kEntities + k] = world.bodies.y[thing];
    }
    for (int k = 0; k < S::kPadded - S::kPartners; k++) {
        const int other = k < W::kAgents - 1 ? k + (k >= agent) : agent;
        sights.x[S::kPartners + k] = world.bodies.x[W::kButtonLanes + other];
        sights.y[S::kPartners + k] = world.bodies.y[W::kButtonLanes + other];
    }
}

template <FloatLanes Float, class W>
DS_INLINE void to_polar(const W& world, int agent, Heading heading, Sights<W>& sights) {
    const Float c(heading.cosine), s(heading.sine);
    const Float x(world.bodies.x[W::kButtonLanes + agent]), y(world.bodies.y[W::kButtonLanes + agent]);
    for (int lane = 0; lane < Sights<W>::kPadded; lane += Float::kLanes) {
        const Float dx = Float::load(sights.x + lane) - x, dy = Float::load(sights.y + lane) - y;
        const Float right = c * dx + s * dy, forward = c * dy - s * dx;
        (square_root(right * right + forward * forward) * Float(kDistanceScale)).store(sights.x + lane);
        (arc_tangent(right, forward) * Float(kInversePi)).store(sights.y + lane);
    }
}

template <class W>
DS_INLINE void write_self(const W& world, int agent, int room, float yaw, float* out) {
    const float x = world.bodies.x[W::kButtonLanes + agent], y = world.bodies.y[W::kButtonLanes + agent];
    out[0] = x * 0.1f;
    out[1] = world.terms().place_in_room(y, room);
    out[2] = x * kDistanceScale;
    out[3] = y * kDistanceScale;
    out[4] = world.bodies.z[W::kButtonLanes + agent] * kDistanceScale;
    out[5] = world.progress.max_y[agent] * kDistanceScale;
    out[6] = yaw * kInversePi;
    out[7] = world.grabs.held[agent] >= 0 ? 1.f : 0.f;
}

template <class W>
DS_INLINE void write_partners(const W& world, int agent, const Sights<W>& sights, float* out) {
    for (int k = 0; k < W::kAgents - 1; k++) {
        const int other = k + (k >= agent);
        out[3 * k] = sights.x[Sights<W>::kPartners + k];
        out[3 * k + 1] = sights.y[Sights<W>::kPartners + k];
        out[3 * k + 2] = world.grabs.held[other] >= 0 ? 1.f : 0.f;
    }
}

template <class W>
DS_INLINE void write_room_entities(const W& world, int room, const Sights<W>& sights, float* out) {
    constexpr float kButtonCode = 1.f / kEntityKinds, kCubeCode = 2.f / kEntityKinds;
    for (int k = 0; k < kEntitySlots; k++) {
        const uint8_t thing = world.rooms.thing[room][k];
        const bool empty = thing == kEmptySlot;
        out[3 * k] = empty ? 0.f : sights.x[Sights<W>::kEntities + k];
        out[3 * k + 1] = empty ? 1.f : sights.y[Sights<W>::kEntities + k];
        out[3 * k + 2] = empty ? 0.f : thing < W::kButtonLanes ? kButtonCode : kCubeCode;
    }
}

template <class W>
DS_INLINE void write_door(const W& world, int room, const Sights<W>& sights, float* out) {
    const int door = world.terms().door_of(room);
    const bool none = door < 0;
    out[0] = none ? 0.f : sights.x[Sights<W>::kDoor];
    out[1] = none ? 1.f : sights.y[Sights<W>::kDoor];
    out[2] = !none && world.doors.open[door] ? 1.f : 0.f;
}

// Writes numbers multiplied by a scale; returns the place behind them. The last vector overlaps the one before.
template <FloatLanes Float, int kCount>
DS_INLINE float* append(float* to, const float* from, float scale) {
    constexpr int kLanes = Float::kLanes;
    if constexpr (kCount < kLanes && kLanes > 1) {
        return append<NarrowFloat, kCount>(to, from, scale);
    } else {
        DS_ROLLED
        for (int i = 0; i < kCount; i += kLanes) {
            const int at = i < kCount - kLanes ? i : kCount - kLanes;
            (Float(scale) * Float::load(from + at)).store(to + at);
        }
        return to + kCount;
    }
}
DS_INLINE float* append(float* to, float number, float scale) { return append<NarrowFloat, 1>(to, &number, scale); }

// Puts the parts of an agent's observation side by side, most of them read from the tensors just written.
template <FloatLanes Float, class W>
DS_INLINE void lay_out(const FlatLayout& layout, const typename W::Terms& terms, int32_t steps_remaining,
                       int32_t episode_length, int agent, const ObservationRow& row) {
    DS_ASSERT(row.flat);
    constexpr float kLastAgent = W::kAgents > 1 ? W::kAgents - 1 : 1;
    float* out = row.flat;
    DS_ROLLED
    for (int i = 0; i < layout.parts.num_parts; i++) {
        const float scale = layout.parts.scales[i];
        switch (layout.parts.parts[i]) {
            case DS_OBSERVATION_PART_self_observations: out = append<Float, kSelfSize>(out, row.self, scale); break;
            case DS_OBSERVATION_PART_partner_observations:
                out = append<Float, kPolarSize * (W::kAgents - 1)>(out, row.partners, scale);
                break;
            case DS_OBSERVATION_PART_room_entity_observations:
                out = append<Float, kPolarSize * kEntitySlots>(out, row.room_entities, scale);
                break;
            case DS_OBSERVATION_PART_door_observations: out = append<Float, kPolarSize>(out, row.doors, scale); break;
            case DS_OBSERVATION_PART_lidar: out = append<Float, kLidarSize>(out, row.lidar, scale); break;
            case DS_OBSERVATION_PART_steps_remaining:
                out = append(out, static_cast<float>(steps_remaining) / static_cast<float>(episode_length), scale);
                break;
            case DS_OBSERVATION_PART_agent_index:
                out = append(out, static_cast<float>(agent) / kLastAgent, scale);
                break;
            case DS_OBSERVATION_PART_physics: {
                float numbers[kPhysics];
                terms.relative_physics(numbers);
                out = append<Float, kPhysics>(out, numbers, scale);
                break;
            }
        }
    }
    DS_ASSERT(out == row.flat + layout.size);
}

// All but lidar and the flat observation.
template <FloatLanes Float, class W>
DS_INLINE void observe_agent(const W& world, int agent, Yaw yaw, const ObservationRow& row) {
    const int room = world.terms().room_of(world.bodies.y[W::kButtonLanes + agent]);
    Sights<W> sights;
    collect_sights(world, agent, room, sights);
    to_polar<Float>(world, agent, world.bodies.heading(agent), sights);
    write_self(world, agent, room, yaw.radians, row.self);
    write_partners(world, agent, sights, row.partners);
    write_room_entities(world, room, sights, row.room_entities);
    write_door(world, room, sights, row.doors);
    *row.steps_remaining = world.episode.steps_remaining;
}

template <class W>
DS_INLINE Yaw measure_yaw(const W& world, int agent) {
    const Heading heading = world.bodies.heading(agent);
    return {arc_tangent(NarrowFloat(heading.sine), NarrowFloat(heading.cosine)).v};
}

// ---- Stages

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::prepare_sights(const AgentVector& agents, Each<Yaw> yaws, Each<StaticsInSight> sights) {
    float sines[Float::kLanes], cosines[Float::kLanes], radians[Float::kLanes];
    for (int lane = 0; lane < Float::kLanes; lane++) {
        const int used = lane < agents.count ? lane : agents.count - 1;
        const Heading heading = agents.world(used).bodies.heading(agents.agent(used));
        sines[lane] = heading.sine;
        cosines[lane] = heading.cosine;
    }
    arc_tangent(Float::load(sines), Float::load(cosines)).store(radians);
    for (int lane = 0; lane < agents.count; lane++) yaws[lane] = {radians[lane]};
    if constexpr (Float::kLanes == 1) sights[0] = statics_in_sight(agents.world(0), agents.agent(0));
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::observe(AgentIndex agent, const World& world, const Yaw& yaw, ObservationRow row) {
    observe_agent<Float>(world, agent.agent, yaw, row);
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::observe_final(AgentIndex agent, const World& world, const Yaw& yaw,
                                            FinalObservationRow row) {
    observe_agent<Float>(world, agent.agent, yaw, row.row);
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::cast_lidar(LineIndex line, const World& world, const StaticsInSight& sight,
                                         ObservationRow row) {
    cast_item<Float, Wide>(world, line, sight, row.lidar);
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::cast_final_lidar(LineIndex line, const World& world, const StaticsInSight& sight,
                                               FinalObservationRow row) {
    cast_item<Float, Wide>(world, line, sight, row.row.lidar);
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::flatten(AgentIndex agent, const FlatLayout& layout, const Rules& rules,
                                      const Terms& terms, const Episode& episode, ObservationRow row) {
    const int32_t length = terms.episode_length(rules.episode_length);
    lay_out<Float, World>(layout, terms, episode.steps_remaining, length, agent.agent, row);
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::flatten_final(AgentIndex agent, const FlatLayout& layout, const Rules& rules,
                                            const Terms& terms, const Episode& episode, FinalObservationRow row) {
    const int32_t length = terms.episode_length(rules.episode_length);
    lay_out<Float, World>(layout, terms, episode.steps_remaining, length, agent.agent, row.row);
}

}  // namespace doorstep
