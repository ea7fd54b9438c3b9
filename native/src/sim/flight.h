// Free flight: an agent that touches nothing moves by its action alone, so its motion is read from a table.
#pragma once

#include "physics/slide.h"
#include "sim/stages.h"

namespace doorstep {

// Displacement in the agent's frame and turn, as a quaternion (w, 0, 0, z), of one step.
struct Flight {
    float x, y, w, z;
};
struct FlightTable {
    Flight flights[kFlights];
};

// How much the half extents of a square turning through 45 degrees grow per step, at most: over the largest turn.
constexpr float kTurningReach = 0.05f;

inline void make_flight_table(FlightTable& table) {
    for (int amount = 0; amount < kFlightAmounts; amount++)
        for (int angle = 0; angle < kMoveAngles; angle++)
            for (int turn = 0; turn < kTurns; turn++) {
                const Action action{amount, angle, turn, 0};
                const Vec3 force = force_of(action, {1.f, 0.f});
                SlideBatch<NarrowFloat> batch{};
                batch.rotation_w[0] = 1.f;
                batch.force_x[0] = force.x;
                batch.force_y[0] = force.y;
                batch.torque[0] = torque_of(action);
                slide_batch(batch, 0);
                table.flights[flight_of(action)] = {batch.x[0], batch.y[0], batch.rotation_w[0], batch.rotation_z[0]};
            }
}

template <class Bodies>
DS_INLINE void fly(const Bodies& bodies, int agent, const Flight& flight, FlownPose& flown, Path& path) {
    DS_ASSERT(is_finite(flight.x) && is_finite(flight.y));
    const Vec3 position = bodies.position(agent);
    const float x = position.x, y = position.y;
    const float w = bodies.rotation_w[agent], z = bodies.rotation_z[agent];
    const Heading before = heading_of(w, z);
    const float new_x = x + (before.cosine * flight.x - before.sine * flight.y);
    const float new_y = y + (before.sine * flight.x + before.cosine * flight.y);
    const float turned_w = w * flight.w - z * flight.z, turned_z = w * flight.z + z * flight.w;
    // First-order renormalisation: both factors are unit up to rounding
    const float scale = 1.5f - 0.5f * (turned_w * turned_w + turned_z * turned_z);
    const float new_w = turned_w * scale, new_z = turned_z * scale;
    const Heading after = heading_of(new_w, new_z);
    const float reach = kTurningReach + kAgentHalfExtent * maximum(absolute(before.cosine) + absolute(before.sine),
                                                                   absolute(after.cosine) + absolute(after.sine));
    flown = {new_x, new_y, new_w, new_z};
    path.area = {minimum(x, new_x) - reach, maximum(x, new_x) + reach, minimum(y, new_y) - reach,
                 maximum(y, new_y) + reach};
}

// Path of an agent whose action has no row in the table: as far as its force could move it.
DS_INLINE Path bound_any_path(Vec3 position, Vec3 force) {
    constexpr float kPerForce = kSubstep * kSubstep * 10.f * 1.01f;  // h^2 (1 + 2 + 3 + 4)
    constexpr float kReach = kAgentHalfExtent * 1.4143f;
    const float dx = kReach + absolute(force.x) * kPerForce, dy = kReach + absolute(force.y) * kPerForce;
    return {{position.x - dx, position.x + dx, position.y - dy, position.y + dy}};
}

// An agent's new pose, on the floor and at rest.
template <class Bodies>
DS_INLINE void settle_agent(Bodies& bodies, int agent, float x, float y, float w, float z) {
    DS_ASSERT(agent >= 0 && agent < Bodies::kMostAgents);
    bodies.x[Bodies::kButtonLanes + agent] = x;
    bodies.y[Bodies::kButtonLanes + agent] = y;
    bodies.rotation_w[agent] = w;
    bodies.rotation_z[agent] = z;
    refresh_bounds(bodies, agent, true);
}

// ---- Stages

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::load_actions(AgentIndex index, const ActionRow& row, const Rules& rules,
                                           const Terms& terms, const FlightTable& flights, const Bodies& bodies,
                                           Action& action, ClampedCount& clamped, Motion& motion, FlownPose& flown,
                                           Path& path) {
    const int agent = index.agent;
    Action read;
    const int moved = read_action(row.first, rules.action_check, read);
    const int flight = terms.has_reference_motion() ? flight_of(read) : -1;
    DS_ASSERT(flight < kFlights && moved <= kActionComponents);
    if (flight < 0) {
        const Vec3 force = force_of(read, bodies.heading(agent), terms.force_per_amount());
        path = bound_any_path(bodies.position(agent), force);
    } else {
        fly(bodies, agent, flights.flights[flight], flown, path);
    }
    action = read;
    motion = flight < 0 ? kCoupled : kFree;
    clamped.components = static_cast<uint8_t>(moved);
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::fly_agents(AgentIndex agent, const Motion& motion, const FlownPose& flown,
                                         Bodies& bodies) {
    if (motion == kFree) settle_agent(bodies, agent.agent, flown.x, flown.y, flown.w, flown.z);
}

}  // namespace doorstep
