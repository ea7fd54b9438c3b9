// Reward, bonus, goal, and the counter of steps: what ends an episode.
#pragma once

#include "sim/cube_approach.h"

namespace doorstep {

// Reward for every metre beyond the largest y so far.
template <class W>
DS_INLINE void reward_progress(const ds_level_rewards& weights, typename W::AgentCount agents,
                               const typename W::Bodies& bodies, typename W::Progress& progress, Each<Reward> rewards) {
    for (int a = 0; a < agents.num_agents(); a++) {
        const float y = bodies.y[W::kButtonLanes + a], reached = minimum(y, weights.max_y);
        const float gain = reached - progress.max_y[a];
        // minimum() turns a NaN into the limit; from minus infinity all y are progress
        const bool gained = gain > 0.f && is_finite(y - progress.max_y[a]);
        rewards[a].value = gained ? weights.progress * gain : weights.idle;
        if (gained) progress.max_y[a] = reached;
    }
}

// Bonus for progress made while all other agents are close, by their largest y.
template <class W>
DS_INLINE void share_bonus(const ds_level_rewards& weights, typename W::AgentCount agents,
                           const typename W::Progress& progress, Each<Reward> rewards) {
    if (agents.num_agents() == 1) return;
    for (int a = 0; a < agents.num_agents(); a++) {
        bool close = true;
        for (int b = 0; b < agents.num_agents(); b++)
            close &= absolute(progress.max_y[a] - progress.max_y[b]) <= weights.bonus_distance;
        if (close && rewards[a].value > 0.f) rewards[a].value *= weights.bonus_factor;
    }
}

// For every room that an agent enters, and for leaving the last one, each for the first time: by its largest y before
// and after.
template <class W>
DS_INLINE void reward_rooms(const ds_level_rewards& weights, const typename W::Terms& terms,
                            typename W::AgentCount agents, const float (&before)[W::kMostAgents],
                            const typename W::Progress& progress, Each<Reward> rewards) {
    for (int a = 0; a < agents.num_agents(); a++) {
        const int entered = terms.room_of(progress.max_y[a]) - terms.room_of(before[a]);
        rewards[a].value += weights.room * static_cast<float>(entered);
        if (terms.is_beyond_rooms(progress.max_y[a]) && !terms.is_beyond_rooms(before[a]))
            rewards[a].value += weights.exit;
    }
}

template <class W>
DS_INLINE void reward_all(float value, typename W::AgentCount agents, Each<Reward> rewards) {
    for (int a = 0; a < agents.num_agents(); a++) rewards[a].value += value;
}

template <class W>
DS_INLINE bool reaches_goal(const typename W::Terms& terms, typename W::AgentCount agents,
                            const typename W::Bodies& bodies) {
    int inside = 0;
    for (int a = 0; a < agents.num_agents(); a++)
        inside += terms.is_in_goal(bodies.x[W::kButtonLanes + a], bodies.y[W::kButtonLanes + a]);
    return terms.goal_agents() == DS_GOAL_ALL ? inside == agents.num_agents()
                                              : terms.goal_agents() == DS_GOAL_ANY && inside > 0;
}

// Returns whether the episode ends.
template <class W>
DS_INLINE bool use_step(const typename W::Terms& terms, typename W::AgentCount agents, const Rules& rules,
                        Each<const Reward> rewards, bool at_goal, typename W::Progress& progress, Episode& episode) {
    const int32_t length = terms.episode_length(rules.episode_length);
    DS_ASSERT(episode.steps_remaining >= 0 && episode.steps_remaining <= length);
    if (terms.is_over(episode)) return false;
    for (int a = 0; a < agents.num_agents(); a++) progress.episode_return[a] += rewards[a].value;
    episode.steps_remaining--;
    if (episode.steps_remaining == length - 1) episode.done = 0;
    if (episode.steps_remaining > 0 && !at_goal) return false;
    episode.done = 1;
    return true;
}

// How an episode ended in this step: in its goal, or by its length; or not at all.
enum class Ending { kNone, kTerminated, kTruncated };

template <class W>
DS_INLINE void write_score(typename W::AgentCount agents, Each<const Reward> rewards, const Episode& episode,
                           Ending ending, const ScoreRows& rows) {
    for (int a = 0; a < agents.num_agents(); a++) {
        rows.rewards[a] = rewards[a].value;
        rows.dones[a] = episode.done;
        rows.terminations[a] = ending == Ending::kTerminated;
        rows.truncations[a] = ending == Ending::kTruncated;
    }
}

// ---- Stages

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::score_progress(const GivenRewards& given, const Terms& terms, AgentCount agents,
                                             const Bodies& bodies, const Buttons& buttons, const Doors& doors,
                                             const CubesAway& away, const Episode& episode, Progress& progress,
                                             Each<Reward> rewards, GoalReached& reached) {
    const ds_level_rewards weights = terms.rewards_of(given);
    float before[World::kMostAgents];
    for (int a = 0; a < agents.num_agents(); a++) before[a] = progress.max_y[a];
    reward_progress<World>(weights, agents, bodies, progress, rewards);
    share_bonus<World>(weights, agents, progress, rewards);
    if (weights.room != 0.f || weights.exit != 0.f)
        reward_rooms<World>(weights, terms, agents, before, progress, rewards);
    if (away.counts) {
        const float metres = away.metres - metres_to_buttons<World>(terms, agents, bodies, buttons, doors);
        reward_all<World>(weights.cube_approach * metres, agents, rewards);
    }
    reached.yes = terms.goal_agents() != DS_GOAL_NONE && !terms.is_over(episode) &&
                  reaches_goal<World>(terms, agents, bodies);
    if (reached.yes) reward_all<World>(weights.goal, agents, rewards);
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::count_step(const Rules& rules, const Terms& terms, AgentCount agents,
                                         Each<const ClampedCount> clamped, Each<const Reward> rewards,
                                         const GoalReached& reached, ResetRow reset, Progress& progress,
                                         Episode& episode, Identity& identity, WorldHealth& health, EpisodeEnd& end,
                                         ScoreRows scores) {
    for (int a = 0; a < agents.num_agents(); a++) health.clamped_actions += clamped[a].components;
    identity.age++;
    const bool ended = use_step<World>(terms, agents, rules, rewards, reached.yes, progress, episode);
    const bool requested = *reset.first != 0;
    end.ends = ended || requested;
    end.regenerates = requested || (episode.done && rules.auto_reset);
    *reset.first = 0;
    const Ending ending = reached.yes ? Ending::kTerminated : ended ? Ending::kTruncated : Ending::kNone;
    write_score<World>(agents, rewards, episode, ending, scores);
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::record_episodes(const Rules& rules, const Terms& terms, AgentCount agents,
                                              const Progress& progress, const Episode& episode, EpisodeRows rows) {
    for (int a = 0; a < agents.num_agents(); a++) rows.returns[a] = progress.episode_return[a];
    *rows.length = terms.episode_length(rules.episode_length) - episode.steps_remaining;
}

}  // namespace doorstep
