// Doors and buttons: a door is a static panel that sinks while its buttons are pressed.
#pragma once

#include "sim/stages.h"

namespace doorstep {

// A rising panel can lift a body above it.
template <class W>
DS_INLINE bool is_closing(const W& world, int door) {
    const float z = world.statics.z[world.doors.panel_of(door)];
    return !world.doors.open[door] && z < 0.f;
}

// Bits of the panels that do not stop an agent at this position if it walks: those that it is in already. Otherwise a
// panel that rises around an agent would push it back. While it moves, an agent is in it from the overlap on that no
// contact leaves; once it is closed, only with the centre, so that nobody can be pressed into a closed door.
template <class W>
DS_INLINE uint32_t panels_around(const W& world, Vec3 position) {
    constexpr float kLeastOverlap = 0.05f;
    const auto& statics = world.statics;
    uint32_t bits = 0;
    for (int d = 0; d < world.terms().used_doors(W::kDoors); d++) {
        const int panel = world.doors.panel_of(d);
        const float reach = statics.z[panel] < 0.f ? kAgentHalfExtent - kLeastOverlap : 0.f;
        const bool inside = absolute(position.x - statics.x[panel]) < 0.5f * statics.size_x[panel] + reach &&
                            absolute(position.y - statics.y[panel]) < 0.5f * statics.size_y[panel] + reach;
        if (inside) bits |= 1u << panel;
    }
    return bits;
}

// ---- Stages

// Uses the flag of the last step: four steps to open, four to close.
template <WorldTile TileT>
DS_METHOD void Stages<TileT>::move_doors(const Terms& terms, const Doors& doors, Statics& statics) {
    for (int d = 0; d < terms.used_doors(World::kDoors); d++) {
        const int panel = doors.panel_of(d);
        float& z = statics.z[panel];
        if (doors.open[d]) {
            if (z > terms.sink_limit(statics.size_z[panel])) z -= terms.door_drop();
        } else if (z < 0.f) {
            z = minimum(z + terms.door_drop(), 0.f);
        }
    }
}

// A button is pressed while the bounds of any body overlap its plate. Lanes run over buttons.
template <WorldTile TileT>
DS_METHOD void Stages<TileT>::press_buttons(ButtonIndex button, const Bodies& bodies, Buttons& buttons) {
    const int first = button.first;
    DS_ASSERT(first % Float::kLanes == 0 && first + Float::kLanes <= World::kButtonLanes);
    const Float half(kButtonHalf);
    const Float x = Float::load(bodies.x + first), y = Float::load(bodies.y + first);
    const Float left = x - half, right = x + half, front = y - half, back = y + half;
    typename Float::Mask pressed = half < Float(0.f);
    // A thread has one button, and worlds that play any levels may have none here. Nothing touches one that is not used
    const bool may_lack = Float::kLanes == 1 || World::kPlaysLevels;
    const int pressing = may_lack && !any(x < Float(kNowhere)) ? 0 : World::kMostBodies;
    DS_ROLLED
    for (int i = 0; i < pressing; i++) {
        if (!(bodies.min_z[i] < kButtonHeight)) continue;
        pressed = pressed | ((Float(bodies.min_x[i]) < right) & (left < Float(bodies.max_x[i])) &
                             (Float(bodies.min_y[i]) < back) & (front < Float(bodies.max_y[i])));
    }
    const uint32_t bits = lane_bits(pressed);
    for (int k = 0; k < Float::kLanes; k++) buttons.pressed[first + k] = bits >> k & 1;
}

// A door opens when all its buttons are pressed, and closes again unless it is persistent.
template <WorldTile TileT>
DS_METHOD void Stages<TileT>::open_doors(const Terms& terms, const Buttons& buttons, Doors& doors) {
    uint32_t linked = 0, waiting = 0;
    for (int b = 0; b < terms.used_buttons(World::kButtons); b++) {
        DS_ASSERT(buttons.door[b] >= 0 && buttons.door[b] < World::kDoors);
        const uint32_t door = 1u << (buttons.door[b] & 31);
        linked |= door;
        if (!buttons.pressed[b]) waiting |= door;
    }
    for (int d = 0; d < terms.used_doors(World::kDoors); d++) {
        if ((linked & ~waiting) >> d & 1) doors.open[d] = 1;
        else if (!doors.persistent[d]) doors.open[d] = 0;
    }
}

}  // namespace doorstep
