// Edits of the state from outside: made safe, and derived data brought up to date, before the next step uses it.
#pragma once

#include "sim/grab.h"
#include "sim/motion.h"

namespace doorstep {

// Puts an index back into its range; true if it was outside.
DS_INLINE bool repair(int32_t& index, int32_t low, int32_t high, int32_t otherwise) {
    if (index >= low && index <= high) return false;
    index = otherwise;
    return true;
}

template <class W>
DS_INLINE uint32_t repair_indices(W& world) {
    uint32_t repaired = 0;
    for (int i = 0; i < W::kStaticLanes; i++) repaired += repair(world.static_kind[i], 0, kEntityKinds - 1, 0);
    for (int b = 0; b < W::kButtonLanes; b++) repaired += repair(world.button_door[b], 0, W::kDoors - 1, 0);
    for (int d = 0; d < W::kDoors; d++) repaired += repair(world.door_static[d], 0, W::kStatics - 1, 3 * d + 5);
    for (int a = 0; a < W::kAgents; a++)
        if (world.grabs[a] != -1) repaired += repair(world.grabs[a], W::kAgents, W::kBodies - 1, -1);
    return repaired;
}

// A grab set from outside holds the cube as it stands; the anchor lies as far forward as the cube's centre.
template <class W>
DS_INLINE void follow_grab_edits(W& world) {
    for (int a = 0; a < W::kAgents; a++) {
        if (world.grabs[a] == world.joined[a]) continue;
        const int cube = world.grabs[a];
        release(world, a);
        if (cube < 0) continue;
        const Vec3 offset = world.body_position(cube) - world.body_position(a);
        hold(world, a, cube, rotate_inverse(world.agent_heading(a), offset).y);
    }
}

// Bounds follow poses; a sleeping cube that was moved or given a velocity wakes.
template <class W>
DS_INLINE void follow_pose_edits(W& world) {
    for (int i = 0; i < W::kBodies; i++) {
        const float min_x = world.min_x[i], max_x = world.max_x[i], min_y = world.min_y[i], max_y = world.max_y[i];
        const float min_z = world.min_z[i];
        refresh_bounds(world, i);
        const bool moved = min_x != world.min_x[i] || max_x != world.max_x[i] || min_y != world.min_y[i] ||
                           max_y != world.max_y[i] || min_z != world.min_z[i];
        if (moved || !world.at_rest(i)) world.asleep &= ~(1u << i);
    }
}

// Idempotent; changes nothing in a world that was not edited.
template <class W>
DS_NOINLINE uint32_t absorb_edits(W& world) {
    uint32_t trouble = kTroubleNone;
    if (const uint32_t repaired = repair_indices(world)) {
        if (world.repaired_indices == 0) note_trouble(world, -1);
        world.repaired_indices += repaired;
        trouble |= kTroubleRepairedIndex;
    }
    follow_grab_edits(world);
    follow_pose_edits(world);
    return trouble | check_finite(world);
}

}  // namespace doorstep
