// Free flight: an agent that touches nothing moves by its action alone, so its motion is read from a table.
#pragma once

#include "physics/slide.h"
#include "sim/tile.h"

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
                slide_agents(batch, 0);
                table.flights[flight_of(action)] = {batch.x[0], batch.y[0], batch.rotation_w[0], batch.rotation_z[0]};
            }
}

template <class TileT, class W>
DS_INLINE void fly(TileT& tile, const W& world, int a, int slot, const Flight& flight) {
    const float x = world.x[W::kButtonLanes + a], y = world.y[W::kButtonLanes + a];
    const float w = world.rotation_w[a], z = world.rotation_z[a];
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
    tile.records.flown_x[slot] = new_x;
    tile.records.flown_y[slot] = new_y;
    tile.records.flown_w[slot] = new_w;
    tile.records.flown_z[slot] = new_z;
    tile.records.path_min_x[slot] = minimum(x, new_x) - reach;
    tile.records.path_max_x[slot] = maximum(x, new_x) + reach;
    tile.records.path_min_y[slot] = minimum(y, new_y) - reach;
    tile.records.path_max_y[slot] = maximum(y, new_y) + reach;
}

// Path of an agent whose action has no row in the table: as far as its force could move it.
template <class TileT, class W>
DS_INLINE void bound_any_path(TileT& tile, const W& world, int a, int slot) {
    constexpr float kPerForce = kSubstep * kSubstep * 10.f * 1.01f;  // h^2 (1 + 2 + 3 + 4)
    constexpr float kReach = kAgentHalfExtent * 1.4143f;
    const float x = world.x[W::kButtonLanes + a], y = world.y[W::kButtonLanes + a];
    const Vec3 force = tile.force(slot);
    const float dx = kReach + absolute(force.x) * kPerForce, dy = kReach + absolute(force.y) * kPerForce;
    tile.records.path_min_x[slot] = x - dx;
    tile.records.path_max_x[slot] = x + dx;
    tile.records.path_min_y[slot] = y - dy;
    tile.records.path_max_y[slot] = y + dy;
}

}  // namespace doorstep
