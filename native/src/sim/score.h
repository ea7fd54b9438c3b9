// Reward, bonus, and the counter of steps that ends an episode.
#pragma once

#include "sim/stages.h"

namespace doorstep {

// Reward for every metre beyond the largest y so far.
template <class W>
DS_INLINE void reward_progress(const typename W::Bodies& bodies, typename W::Progress& progress, Each<Reward> rewards) {
    for (int a = 0; a < W::kAgents; a++) {
        const float y = bodies.y[W::kButtonLanes + a], reached = minimum(y, kMaxProgress);
        const float gain = reached - progress.max_y[a];
        // minimum() turns a NaN into the limit; from minus infinity all y are progress
        const bool gained = gain > 0.f && is_finite(y - progress.max_y[a]);
        rewards[a].value = gained ? kRewardPerMetre * gain : kSlackReward;
        if (gained) progress.max_y[a] = reached;
    }
}

// Bonus for progress made while all other agents are close, by their largest y.
template <class W>
DS_INLINE void share_bonus(const typename W::Progress& progress, Each<Reward> rewards) {
    if (W::kAgents == 1) return;
    for (int a = 0; a < W::kAgents; a++) {
        bool close = true;
        for (int b = 0; b < W::kAgents; b++)
            close &= absolute(progress.max_y[a] - progress.max_y[b]) <= kBonusDistance;
        if (close && rewards[a].value > 0.f) rewards[a].value *= kBonusFactor;
    }
}

// Returns whether the episode has run out of steps.
template <class W>
DS_INLINE bool use_step(Each<const Reward> rewards, int32_t episode_length, typename W::Progress& progress,
                        Episode& episode) {
    DS_ASSERT(episode.steps_remaining >= 0 && episode.steps_remaining <= episode_length);
    if (episode.steps_remaining == 0) return false;
    for (int a = 0; a < W::kAgents; a++) progress.episode_return[a] += rewards[a].value;
    episode.steps_remaining--;
    if (episode.steps_remaining == episode_length - 1) episode.done = 0;
    if (episode.steps_remaining > 0) return false;
    episode.done = 1;
    return true;
}

template <class W>
DS_INLINE void write_score(Each<const Reward> rewards, const Episode& episode, bool truncated, const ScoreRows& rows) {
    for (int a = 0; a < W::kAgents; a++) {
        rows.rewards[a] = rewards[a].value;
        rows.dones[a] = episode.done;
        rows.terminations[a] = 0;
        rows.truncations[a] = truncated;
    }
}

// ---- Stages

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::score_progress(const Bodies& bodies, Progress& progress, Each<Reward> rewards) {
    reward_progress<World>(bodies, progress, rewards);
    share_bonus<World>(progress, rewards);
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::count_step(const Rules& rules, Each<const ClampedCount> clamped,
                                         Each<const Reward> rewards, ResetRow reset, Progress& progress,
                                         Episode& episode, Identity& identity, WorldHealth& health, EpisodeEnd& end,
                                         ScoreRows scores) {
    for (int a = 0; a < World::kAgents; a++) health.clamped_actions += clamped[a].components;
    identity.age++;
    const bool truncated = use_step<World>(rewards, rules.episode_length, progress, episode);
    const bool requested = *reset.first != 0;
    end.ends = truncated || requested;
    end.regenerates = requested || (episode.done && rules.auto_reset);
    *reset.first = 0;
    write_score<World>(rewards, episode, truncated, scores);
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::record_episodes(const Rules& rules, const Progress& progress, const Episode& episode,
                                              EpisodeRows rows) {
    for (int a = 0; a < World::kAgents; a++) rows.returns[a] = progress.episode_return[a];
    *rows.length = rules.episode_length - episode.steps_remaining;
}

}  // namespace doorstep
