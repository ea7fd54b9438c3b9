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

// Everything that an agent observes as distance, bearing, and what it is or does: the entities of its room, its room's
// door, the other agents. Each is a lane, with a byte in both rows of words.
template <class W>
struct Sights {
    static constexpr int kDoor = kEntitySlots, kPartners = kDoor + 1, kCount = kPartners + W::kMostAgents - 1;
    static constexpr int kPadded = padded_to_lanes(kCount);
    static constexpr uint8_t kIdle = 0, kActive = 1;  // a door that is open, an agent that holds something
    static constexpr uint8_t kEntity = 2;

    uint64_t things[kPadded / 8]{};  // indices into the rows of positions, or kEmptySlot; any for a door
    uint64_t states[kPadded / 8]{};

    DS_METHOD void set(int lane, uint8_t thing, uint8_t state) {
        DS_ASSERT(lane >= 0 && lane < kCount && (thing < W::kThings || thing == kEmptySlot));
        things[lane / 8] |= uint64_t{thing} << lane % 8 * 8;
        states[lane / 8] |= uint64_t{state} << lane % 8 * 8;
    }
};

template <class W>
DS_INLINE Sights<W> find_sights(const W& world, int agent, int room, int door) {
    using S = Sights<W>;
    S sights;
    for (int k = 0; k < kEntitySlots; k++) sights.set(k, world.rooms.thing[room][k], S::kEntity);
    if (door < 0) sights.set(S::kDoor, kEmptySlot, S::kIdle);
    else sights.set(S::kDoor, 0, world.doors.open[door] ? S::kActive : S::kIdle);
    for (int k = 0; k < world.num_agents() - 1; k++) {
        const int other = k + (k >= agent);
        const bool holds = world.grabs.held[other] >= 0;
        sights.set(S::kPartners + k, static_cast<uint8_t>(W::thing_of_body(other)), holds ? S::kActive : S::kIdle);
    }
    return sights;
}

template <FloatLanes Float>
struct SeenLanes {
    Float distance, bearing, code;
};

// Of the sights from `lane` on. Nothing is at distance 0, bearing 1.
template <FloatLanes Float, class W>
DS_INLINE SeenLanes<Float> see(const W& world, const Sights<W>& sights, int lane, int agent, int door) {
    using S = Sights<W>;
    const auto bits = [](uint32_t all) { return all_lanes(Float(), all); };
    const auto things = load_bytes(Float(), sights.things, lane), states = load_bytes(Float(), sights.states, lane);
    Float x = look_up<W::kThings>(world.bodies.x, things), y = look_up<W::kThings>(world.bodies.y, things);
    if (lane <= S::kDoor && S::kDoor < lane + Float::kLanes) {
        const int panel = world.doors.panel_of(door < 0 ? 0 : door);
        x = with_lane(x, S::kDoor - lane, world.statics.x[panel]);
        y = with_lane(y, S::kDoor - lane, world.statics.y[panel]);
    }

    const Heading heading = world.bodies.heading(agent);
    const Float c(heading.cosine), s(heading.sine), one(1.f);
    const Float dx = x - Float(world.bodies.x[W::thing_of_body(agent)]);
    const Float dy = y - Float(world.bodies.y[W::thing_of_body(agent)]);
    const Float right = c * dx + s * dy, forward = c * dy - s * dx;
    const Float distance = square_root(right * right + forward * forward) * Float(kDistanceScale);
    const Float bearing = arc_tangent(right, forward) * Float(kInversePi);

    const Float button(1.f / kEntityKinds), cube(2.f / kEntityKinds);
    const Float entity = select(things < bits(W::kButtonLanes), button, cube);
    const Float activity = zero_unless(equal(states, bits(S::kActive)), one);
    const Float code = select(equal(states, bits(S::kEntity)), entity, activity);
    const auto empty = equal(things, bits(kEmptySlot));
    return {zero_unless(~empty, distance), select(empty, one, bearing), zero_unless(~empty, code)};
}

// A number at a time, which a compiler joins; on a GPU a copy of memory would move bytes.
DS_INLINE void copy_numbers(float* to, const float* from, int count) {
    for (int i = 0; i < count; i++) to[i] = from[i];
}

template <FloatLanes Float, class W>
DS_INLINE void write_sights(const W& world, typename W::AgentCount agents, int agent, int room,
                            const ObservationRow& row) {
    using S = Sights<W>;
    const int door = world.terms().door_of(room);
    const S sights = find_sights(world, agent, room, door);
    alignas(32) float seen[kPolarSize * S::kPadded];
    for (int lane = 0; lane < S::kPadded; lane += Float::kLanes) {
        const SeenLanes<Float> lanes = see<Float>(world, sights, lane, agent, door);
        store_triples(lanes.distance, lanes.bearing, lanes.code, seen + kPolarSize * lane, Float::kLanes);
    }
    copy_numbers(row.room_entities, seen, kPolarSize * kEntitySlots);
    copy_numbers(row.doors, seen + kPolarSize * S::kDoor, kPolarSize);
    copy_numbers(row.partners, seen + kPolarSize * S::kPartners, kPolarSize * (agents.num_agents() - 1));
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

// Writes numbers multiplied by a scale; returns the place behind them. The last vector overlaps the one before.
template <FloatLanes Float>
DS_INLINE float* append(float* to, const float* from, int count, float scale) {
    constexpr int kLanes = Float::kLanes;
    if constexpr (kLanes > 1)
        if (count < kLanes) return append<NarrowFloat>(to, from, count, scale);
    DS_ROLLED
    for (int i = 0; i < count; i += kLanes) {
        const int at = i < count - kLanes ? i : count - kLanes;
        (Float(scale) * Float::load(from + at)).store(to + at);
    }
    return to + count;
}
DS_INLINE float* append(float* to, float number, float scale) { return append<NarrowFloat>(to, &number, 1, scale); }

// Puts the parts of an agent's observation side by side, most of them read from the tensors just written.
template <FloatLanes Float, class W>
DS_INLINE void lay_out(const FlatLayout& layout, const typename W::Terms& terms, typename W::AgentCount agents,
                       int32_t steps_remaining, int32_t episode_length, int agent, const ObservationRow& row) {
    DS_ASSERT(row.flat);
    const int partners = agents.num_agents() - 1;
    float* out = row.flat;
    DS_ROLLED
    for (int i = 0; i < layout.parts.num_parts; i++) {
        const float scale = layout.parts.scales[i];
        switch (layout.parts.parts[i]) {
            case DS_OBSERVATION_PART_self_observations: out = append<Float>(out, row.self, kSelfSize, scale); break;
            case DS_OBSERVATION_PART_partner_observations:
                out = append<Float>(out, row.partners, kPolarSize * partners, scale);
                break;
            case DS_OBSERVATION_PART_room_entity_observations:
                out = append<Float>(out, row.room_entities, kPolarSize * kEntitySlots, scale);
                break;
            case DS_OBSERVATION_PART_door_observations: out = append<Float>(out, row.doors, kPolarSize, scale); break;
            case DS_OBSERVATION_PART_lidar: out = append<Float>(out, row.lidar, kLidarSize, scale); break;
            case DS_OBSERVATION_PART_steps_remaining:
                out = append(out, static_cast<float>(steps_remaining) / static_cast<float>(episode_length), scale);
                break;
            case DS_OBSERVATION_PART_agent_index:
                out = append(out, static_cast<float>(agent) / static_cast<float>(partners > 1 ? partners : 1), scale);
                break;
            case DS_OBSERVATION_PART_physics: {
                float numbers[kPhysics];
                terms.relative_physics(numbers);
                out = append<Float>(out, numbers, kPhysics, scale);
                break;
            }
        }
    }
    DS_ASSERT(out == row.flat + layout.size);
}

// All but lidar and the flat observation.
template <FloatLanes Float, class W>
DS_INLINE void observe_agent(const W& world, typename W::AgentCount agents, int agent, Yaw yaw,
                             const ObservationRow& row) {
    const int room = world.terms().room_of(world.bodies.y[W::kButtonLanes + agent]);
    write_sights<Float>(world, agents, agent, room, row);
    write_self(world, agent, room, yaw.radians, row.self);
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
DS_METHOD void Stages<TileT>::observe(AgentIndex agent, const World& world, AgentCount agents, const Yaw& yaw,
                                      ObservationRow row) {
    observe_agent<Float>(world, agents, agent.agent, yaw, row);
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::observe_final(AgentIndex agent, const World& world, AgentCount agents, const Yaw& yaw,
                                            FinalObservationRow row) {
    observe_agent<Float>(world, agents, agent.agent, yaw, row.row);
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
                                      const Terms& terms, AgentCount agents, const Episode& episode,
                                      ObservationRow row) {
    const int32_t length = terms.episode_length(rules.episode_length);
    lay_out<Float, World>(layout, terms, agents, episode.steps_remaining, length, agent.agent, row);
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::flatten_final(AgentIndex agent, const FlatLayout& layout, const Rules& rules,
                                            const Terms& terms, AgentCount agents, const Episode& episode,
                                            FinalObservationRow row) {
    const int32_t length = terms.episode_length(rules.episode_length);
    lay_out<Float, World>(layout, terms, agents, episode.steps_remaining, length, agent.agent, row.row);
}

}  // namespace doorstep
