// Starting an episode outside a step: creation and reset.
#pragma once

#include "sim/level.h"
#include "sim/score.h"

namespace doorstep {

// A new world, before its first level. Its block is zero.
template <class W>
DS_INLINE void give_identity(W& world, uint32_t seed, uint64_t global_index) {
    world.seed = seed;
    world.global_index = static_cast<uint32_t>(global_index);
    world.culprit_body = world.culprit_step = -1;
}

// The next level, before any step: reward 0, not done, neutral actions.
template <class W>
DS_INLINE void begin_next_level(const Simulation& simulation, int64_t slot, W& world) {
    const float no_rewards[W::kAgents] = {};
    world.episode_index++;
    generate_level(world, simulation.episode_length);
    world.done = 0;
    simulation.tensors.resets[slot] = 0;
    neutral_actions<W>(simulation.tensors.actions + slot * W::kAgents * kActionComponents);
    write_score(simulation.tensors, slot, world, no_rewards, false);
}

}  // namespace doorstep
