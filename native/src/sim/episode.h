// Starting an episode: in a step, and outside of it at creation and reset.
#pragma once

#include "sim/level_source.h"
#include "sim/observe.h"
#include "sim/score.h"

namespace doorstep {

// A new world, before its first level. Its block is zero.
template <class W>
DS_INLINE void give_identity(W& world, typename W::AgentCount agents, uint32_t seed, uint64_t global_index) {
    world.set_agents(agents.num_agents());
    world.identity.seed = seed;
    world.identity.global_index = static_cast<uint32_t>(global_index);
    world.health.culprit_body = world.health.culprit_step = -1;
}

// Returns Trouble bits.
template <class W>
DS_INLINE uint32_t next_level(const Rules& rules, LevelSource source, W& world, typename W::AgentCount agents,
                             ActionRows actions) {
    world.identity.episode_index++;
    const uint32_t trouble = begin_episode(world, rules, source);
    for (int i = 0; i < agents.num_agents() * kActionComponents; i++)
        actions.first[i] = kNeutralAction[i % kActionComponents];
    return trouble;
}

template <class W>
DS_INLINE void limit_steps(W& world, int32_t most) {
    DS_ASSERT(most > 0);
    world.terms().limit_length(most);
    if (world.episode.steps_remaining > most) world.episode.steps_remaining = most;
}

// As if the world had just been created. The level is then the only one that it may draw. Returns Trouble bits.
template <class W>
DS_INLINE uint32_t begin_anew(const Rules& rules, LevelSource source, const EpisodeStart& start, W& world,
                              typename W::AgentCount agents, ActionRows actions) {
    const float only = 1.f;
    memset(static_cast<void*>(&world), 0, sizeof world);
    give_identity(world, agents, start.seed, 0);
    const LevelSource given{start.level, &only, source.drawn, 1};
    const uint32_t trouble = next_level(rules, start.level ? given : source, world, agents, actions);
    if (start.max_steps) limit_steps(world, start.max_steps);
    return trouble;
}

// Goes on with the episode of a saved world, whose edits have been absorbed.
template <class W>
DS_INLINE void resume(LevelSource source, const void* saved, W& world) {
    memcpy(static_cast<void*>(&world), saved, sizeof world);
    world.terms().tell_level(source.drawn);
}

// ---- Stages

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::reset_levels(const Rules& rules, LevelSource source, World& world, AgentCount agents,
                                           ActionRows actions, Each<Yaw> yaws, Each<StaticsInSight> sights,
                                           TroubleBits& trouble) {
    trouble.bits |= next_level(rules, source, world, agents, actions);
    for (int a = 0; a < agents.num_agents(); a++) {
        yaws[a] = measure_yaw(world, a);
        if constexpr (Float::kLanes == 1) sights[a] = statics_in_sight(world, a);
    }
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::create_worlds(WorldIndex index, const WorldRequest& request, World& world,
                                            AgentCount agents, Chosen& chosen, TroubleBits& trouble) {
    chosen.yes = true;
    trouble.bits = kTroubleNone;
    memset(static_cast<void*>(&world), 0, sizeof world);
    give_identity(world, agents, request.seed, request.world_offset + static_cast<uint64_t>(index.slot));
    // Episode 0 is never observed: like the reference, creation replaces it by episode 1, see begin_levels
}

template <WorldTile TileT>
DS_METHOD void Stages<TileT>::choose_worlds(WorldIndex index, const WorldRequest& request, Chosen& chosen,
                                            TroubleBits& trouble) {
    trouble.bits = kTroubleNone;
    chosen.yes = !request.mask || request.mask[index.in_tile];
}

// Reward 0, not done, neutral actions; a saved world keeps its own.
template <WorldTile TileT>
DS_METHOD void Stages<TileT>::begin_levels(WorldIndex index, const WorldRequest& request, const Rules& rules,
                                           LevelSource source, World& world, AgentCount agents, ResetRow reset,
                                           ActionRows actions, ScoreRows scores, TroubleBits& trouble) {
    const Reward no_rewards[World::kMostAgents] = {};
    const EpisodeStart* start = request.starts ? &request.starts[index.in_tile] : nullptr;
    if (start && start->saved) {
        trouble.bits = kTroubleNone;
        resume(source, start->saved, world);
    } else {
        trouble.bits = start ? begin_anew(rules, source, *start, world, agents, actions)
                             : next_level(rules, source, world, agents, actions);
        world.episode.done = 0;
    }
    *reset.first = 0;
    write_score<World>(agents, {no_rewards}, world.episode, Ending::kNone, scores);
}

}  // namespace doorstep
