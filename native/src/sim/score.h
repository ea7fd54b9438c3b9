// Reward, bonus, and the counter of steps that ends an episode.
#pragma once

#include "sim/tile.h"

namespace doorstep {

template <class W>
DS_INLINE void score_progress(W& world, float* rewards) {
    for (int a = 0; a < W::kAgents; a++) {
        const float y = world.y[W::kButtonLanes + a], reached = minimum(y, kMaxProgress);
        const float progress = reached - world.agent_max_y[a];
        // minimum() turns a NaN into the limit; from minus infinity all y are progress
        const bool gained = progress > 0.f && is_finite(y - world.agent_max_y[a]);
        rewards[a] = gained ? kRewardPerMetre * progress : kSlackReward;
        if (gained) world.agent_max_y[a] = reached;
    }
}

// Bonus for progress made while all other agents are close, by their largest y.
template <class W>
DS_INLINE void share_bonus(const W& world, float* rewards) {
    if (W::kAgents == 1) return;
    for (int a = 0; a < W::kAgents; a++) {
        bool close = true;
        for (int b = 0; b < W::kAgents; b++)
            close &= absolute(world.agent_max_y[a] - world.agent_max_y[b]) <= kBonusDistance;
        if (close && rewards[a] > 0.f) rewards[a] *= kBonusFactor;
    }
}

// Returns whether the episode has run out of steps.
template <class W>
DS_INLINE bool count_step(W& world, const float* rewards, int32_t episode_length) {
    world.age++;
    if (world.steps_remaining == 0) return false;
    for (int a = 0; a < W::kAgents; a++) world.agent_return[a] += rewards[a];
    world.steps_remaining--;
    if (world.steps_remaining == episode_length - 1) world.done = 0;
    if (world.steps_remaining > 0) return false;
    world.done = 1;
    return true;
}

template <class W>
DS_INLINE void write_score(const TensorPointers& tensors, int64_t slot, const W& world, const float* rewards,
                           bool truncated) {
    for (int a = 0; a < W::kAgents; a++) {
        const int64_t row = slot * W::kAgents + a;
        tensors.rewards[row] = rewards[a];
        tensors.dones[row] = world.done;
        tensors.terminations[row] = 0;
        tensors.truncations[row] = truncated;
    }
}

// Return and length of the episode that has just ended.
template <class W>
DS_INLINE void write_episode(const TensorPointers& tensors, int64_t slot, const W& world, int32_t episode_length) {
    for (int a = 0; a < W::kAgents; a++) tensors.episode_returns[slot * W::kAgents + a] = world.agent_return[a];
    tensors.episode_lengths[slot] = episode_length - world.steps_remaining;
}

}  // namespace doorstep
