// Trouble in a world: what a step cannot report as an error is counted, with the latest culprit.
#pragma once

#include "math/lanes.h"
#include "sim/world.h"

namespace doorstep {

// Records the latest trouble of a world: its body, or -1, and its step.
DS_INLINE void note_trouble(WorldHealth& health, const Identity& identity, int body) {
    health.culprit_body = body;
    health.culprit_step = static_cast<int32_t>(identity.age & 0x7FFFFFFFu);
}

// Bits of the bodies with a value that is not finite. Lanes run over bodies.
template <FloatLanes Float, class W>
DS_INLINE uint32_t nonfinite_bodies(const W& world) {
    const auto& bodies = world.bodies;
    uint32_t bits = 0;
    DS_ROLLED
    for (int lane = 0; lane < W::kBodyLanes; lane += Float::kLanes) {
        const auto load = [&](const float* row) { return Float::load(row + lane); };
        const Float place = load(bodies.x + W::kButtonLanes) + load(bodies.y + W::kButtonLanes) +
                            load(bodies.z + W::kButtonLanes);
        const Float rotation = load(bodies.rotation_w) + load(bodies.rotation_x) + load(bodies.rotation_y) +
                               load(bodies.rotation_z);
        const Float speed = load(bodies.velocity_x) + load(bodies.velocity_y) + load(bodies.velocity_z);
        const Float spin = load(bodies.spin_x) + load(bodies.spin_y) + load(bodies.spin_z);
        const Float zero(0.f);
        bits |= lane_bits(~(equal(place - place, zero) & equal(rotation - rotation, zero) &
                            equal(speed - speed, zero) & equal(spin - spin, zero)))
                << lane;
    }
    return bits & low_bits(world.num_bodies());
}

// Counts them. Returns Trouble bits.
template <FloatLanes Float, class W>
DS_INLINE uint32_t check_finite(const W& world, WorldHealth& health) {
    const uint32_t bits = nonfinite_bodies<Float>(world);
    if (bits == 0) return kTroubleNone;
    note_trouble(health, world.identity, lowest_bit(bits));
    health.nonfinite_values += static_cast<uint32_t>(count_bits(bits));
    return kTroubleNonfinite;
}

}  // namespace doorstep
