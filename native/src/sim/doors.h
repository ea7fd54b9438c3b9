// Doors and buttons: a door is a static panel that sinks while its buttons are pressed.
#pragma once

#include "math/lanes.h"
#include "sim/world.h"

namespace doorstep {

// Uses the flag of the last step: four steps to open, four to close.
template <class W>
DS_INLINE void move_doors(W& world) {
    for (int d = 0; d < W::kDoors; d++) {
        float& z = world.static_z[world.panel_of(d)];
        if (world.door_open[d]) {
            if (z > kDoorSinkLimit) z -= kDoorDrop;
        } else if (z < 0.f) {
            z = minimum(z + kDoorDrop, 0.f);
        }
    }
}

// A rising panel can lift a body above it.
template <class W>
DS_INLINE bool is_closing(const W& world, int door) {
    const float z = world.static_z[world.panel_of(door)];
    return !world.door_open[door] && z < 0.f;
}

// A button is pressed while the bounds of any body overlap its plate. Handles the buttons from `first` on, one per
// lane.
template <class Float, class W>
DS_INLINE void press_buttons(W& world, int first) {
    const Float half(kButtonHalf);
    const Float x = Float::load(world.x + first), y = Float::load(world.y + first);
    const Float left = x - half, right = x + half, front = y - half, back = y + half;
    typename Float::Mask pressed = half < Float(0.f);
    DS_ROLLED
    for (int i = 0; i < W::kBodies; i++) {
        if (!(world.min_z[i] < kButtonHeight)) continue;
        pressed = pressed | ((Float(world.min_x[i]) < right) & (left < Float(world.max_x[i])) &
                             (Float(world.min_y[i]) < back) & (front < Float(world.max_y[i])));
    }
    const uint32_t bits = lane_bits(pressed);
    for (int k = 0; k < Float::kLanes; k++) world.button_pressed[first + k] = bits >> k & 1;
}

// A door opens when all its buttons are pressed, and closes again unless it is persistent.
template <class W>
DS_INLINE void open_doors(W& world) {
    uint32_t linked = 0, waiting = 0;
    for (int b = 0; b < W::kButtons; b++) {
        const uint32_t door = 1u << (world.button_door[b] & 31);
        linked |= door;
        if (!world.button_pressed[b]) waiting |= door;
    }
    for (int d = 0; d < W::kDoors; d++) {
        if ((linked & ~waiting) >> d & 1) world.door_open[d] = 1;
        else if (!world.door_persistent[d]) world.door_open[d] = 0;
    }
}

}  // namespace doorstep
