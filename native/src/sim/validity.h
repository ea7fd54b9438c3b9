// What holds for every world between the stages of a step, whatever callers did: a restore checks blocks for it, and
// builds with assertions check it after every stage.
#pragma once

#include "sim/edits.h"

namespace doorstep {

template <class W>
DS_INLINE bool has_valid_counters(const W& world, int32_t episode_length) {
    const Episode& episode = world.episode;
    return episode.steps_remaining >= 0 &&
           episode.steps_remaining <= world.terms().episode_length(episode_length) &&
           (episode.done == 0 || episode.done == 1);
}

template <class W>
DS_INLINE bool has_valid_bodies(const W& world) {
    for (int i = world.num_bodies(); i < W::kBodyLanes; i++)
        if (world.bodies.min_x[i] != kNowhere || world.bodies.x[W::kButtonLanes + i] != kNowhere) return false;
    for (int i = 0; i < W::kBodyLanes; i++) {
        const int32_t kind = world.is_agent(i)          ? DS_ENTITY_AGENT
                             : i < world.num_bodies() ? DS_ENTITY_CUBE
                                                      : DS_ENTITY_NONE;
        const bool unused = !W::Terms::kAllCubesUsed && !world.is_agent(i) && world.bodies.kind[i] == DS_ENTITY_NONE;
        if (world.bodies.kind[i] != kind && !unused) return false;
    }
    return (world.sleep.cubes & ~world.cube_bits()) == 0;
}

template <class W>
DS_INLINE bool has_valid_joints(const W& world) {
    for (int a = 0; a < world.num_agents(); a++) {
        const int32_t cube = world.grabs.joined[a];
        if (cube != -1 && (cube < world.num_agents() || cube >= world.num_bodies())) return false;
    }
    return true;
}

template <class W>
DS_INLINE bool has_valid_room_slots(const W& world) {
    for (const auto& room : world.rooms.thing)
        for (uint8_t thing : room)
            if (thing != kEmptySlot && thing >= W::kThings) return false;
    return true;
}

// Indices and counters in range, unused slots empty.
template <class W>
DS_INLINE bool is_valid(const W& world, int32_t episode_length) {
    return world.terms().is_valid() && has_valid_indices(world) && has_valid_counters(world, episode_length) &&
           has_valid_bodies(world) && has_valid_joints(world) && has_valid_room_slots(world);
}

}  // namespace doorstep
