// The stages of a step, in order of execution. What executes them, their timers, the timers' names and the
// documentation are derived from these rows.
#pragma once

namespace doorstep {

// X(name, items, parameters, sentence)
//
// items: over what the stage runs, see namespace `over` in sim/items.h. The stage is called for every item, in any
// order and at the same time: none depends on what the stage writes for another.
// parameters: those of Stages::name, and all that the stage has access to. It reads what is const and writes the rest;
// `Each` refers to the records of all agents of a world. By value: an `Index` tells the item, `AgentCount` the agents of a
// world, `Row` and `Rows` are addresses in tensors, which the stage writes.
#define DS_STAGE_TABLE(X)                                                                                          \
    X(absorb_edits, Worlds, (const Rules& rules, World& world, TroubleBits& trouble),                              \
      "Validates edits and applies them.")                                                                         \
    X(measure_cubes, Worlds,                                                                                       \
      (const GivenRewards& given, const Terms& terms, AgentCount agents, const Bodies& bodies,                     \
       const Buttons& buttons, const Doors& doors, CubesAway& away),                                               \
      "Measures how far cubes are from the buttons of doors that close again.")                                    \
    X(load_actions, Agents,                                                                                        \
      (AgentIndex agent, const ActionRow& row, const Rules& rules, const Terms& terms,                             \
       const FlightTable& flights, const Bodies& bodies, Action& action, ClampedCount& clamped, Motion& motion,    \
       FlownPose& flown, Path& path),                                                                              \
      "Looks up each agent's free motion.")                                                                        \
    X(move_doors, Worlds, (const Terms& terms, const Doors& doors, Statics& statics),                              \
      "Moves panels by the last step's flag.")                                                                     \
    X(toggle_grabs, Agents, (AgentIndex agent, const Action& action, const World& world, Grabs& grabs),            \
      "Grabs or releases a cube in front.")                                                                        \
    X(classify_agents, AgentsAtWalls,                                                                              \
      (AgentIndex agent, const Action& action, const World& world, const Path& path, Motion& motion,               \
       WallsInReach& walls),                                                                                       \
      "Chooses which agents fly freely, slide along statics or need the general solver.")                          \
    X(couple_agents, Worlds,                                                                                       \
      (const World& world, Each<const FlownPose> flown, Each<const Path> paths, Each<Motion> motions,              \
       Coupled& coupled),                                                                                          \
      "Couples agents in each other's way.")                                                                       \
    X(fly_agents, Agents, (AgentIndex agent, const Motion& motion, const FlownPose& flown, Bodies& bodies),        \
      "Moves agents that touch nothing.")                                                                          \
    X(slide_agents, SlidingBatches, (const SlidingAgents& agents, SlideBatch& batch, SlidingBodies& bodies),       \
      "Moves agents that touch statics only.")                                                                     \
    X(solve_bodies, CoupledGroups, (CoupledWorlds& worlds, Crew crew, Solver& solver),                             \
      "Moves everything else.")                                                                                    \
    X(press_buttons, ButtonVectors, (ButtonIndex first, const Bodies& bodies, Buttons& buttons),                   \
      "Finds the buttons that bodies press.")                                                                      \
    X(open_doors, Worlds, (const Terms& terms, const Buttons& buttons, Doors& doors),                              \
      "Opens doors whose buttons are all pressed.")                                                                \
    X(score_progress, Worlds,                                                                                      \
      (const GivenRewards& given, const Terms& terms, AgentCount agents, const Bodies& bodies,                     \
       const Buttons& buttons, const Doors& doors, const CubesAway& away, const Episode& episode,                  \
       Progress& progress, Each<Reward> rewards, GoalReached& reached),                                            \
      "Rewards progress, with the bonus, rooms, the exit, cubes and the goal.")                                    \
    X(count_step, Worlds,                                                                                          \
      (const Rules& rules, const Terms& terms, AgentCount agents, Each<const ClampedCount> clamped,                \
       Each<const Reward> rewards, const GoalReached& reached, ResetRow reset, Progress& progress,                 \
       Episode& episode, Identity& identity, WorldHealth& health, EpisodeEnd& end, ScoreRows scores),              \
      "Counts the step, finds ending episodes.")                                                                   \
    X(prepare_sights, AgentVectors, (const AgentVector& agents, Each<Yaw> yaws, Each<StaticsInSight> sights),      \
      "Computes what the rays and observations of an agent share.")                                                \
    X(record_episodes, EndingWorlds,                                                                               \
      (const Rules& rules, const Terms& terms, AgentCount agents, const Progress& progress,                        \
       const Episode& episode, EpisodeRows rows),                                                                  \
      "Writes return and length of ended episodes.")                                                               \
    X(observe_final, EndingAgents,                                                                                 \
      (AgentIndex agent, const World& world, AgentCount agents, const Yaw& yaw, FinalObservationRow row),          \
      "Observes worlds before their reset.")                                                                       \
    X(cast_final_lidar, EndingLines,                                                                               \
      (LineIndex line, const World& world, const StaticsInSight& sight, FinalObservationRow row),                  \
      "Casts the lidar rays of worlds before their reset.")                                                        \
    X(flatten_final, EndingFlatAgents,                                                                             \
      (AgentIndex agent, const FlatLayout& layout, const Rules& rules, const Terms& terms, AgentCount agents,      \
       const Episode& episode, FinalObservationRow row),                                                           \
      "Puts the parts of the final observations side by side.")                                                    \
    X(reset_levels, RegeneratingWorlds,                                                                            \
      (const Rules& rules, LevelSource source, World& world, AgentCount agents, ActionRows actions,                \
       Each<Yaw> yaws, Each<StaticsInSight> sights, TroubleBits& trouble),                                         \
      "Generates the next level.")                                                                                 \
    X(observe, Agents,                                                                                             \
      (AgentIndex agent, const World& world, AgentCount agents, const Yaw& yaw, ObservationRow row),               \
      "Writes all observations but lidar.")                                                                        \
    X(cast_lidar, Lines,                                                                                           \
      (LineIndex line, const World& world, const StaticsInSight& sight, ObservationRow row),                       \
      "Casts the lidar rays.")                                                                                     \
    X(flatten, FlatAgents,                                                                                         \
      (AgentIndex agent, const FlatLayout& layout, const Rules& rules, const Terms& terms, AgentCount agents,      \
       const Episode& episode, ObservationRow row),                                                                \
      "Puts the parts of the observations side by side.")

// Stages of creation, reset and refresh, which also run some of those above; see sim/step.h.
#define DS_EPISODE_STAGE_TABLE(X)                                                                                  \
    X(create_worlds, Worlds,                                                                                       \
      (WorldIndex index, const WorldRequest& request, World& world, AgentCount agents, Chosen& chosen,             \
       TroubleBits& trouble),                                                                                      \
      "Gives new worlds their identity.")                                                                          \
    X(choose_worlds, Worlds, (WorldIndex index, const WorldRequest& request, Chosen& chosen, TroubleBits& trouble),\
      "Reads the mask.")                                                                                           \
    X(begin_levels, ChosenWorlds,                                                                                  \
      (WorldIndex index, const WorldRequest& request, const Rules& rules, LevelSource source, World& world,        \
       AgentCount agents, ResetRow reset, ActionRows actions, ScoreRows scores, TroubleBits& trouble),             \
      "Generates the next level, or the given one, before any step.")                                              \
    X(absorb_chosen, Worlds,                                                                                       \
      (const Chosen& chosen, LevelSource source, World& world, TroubleBits& trouble),                              \
      "Validates edits of the chosen worlds and applies them.")

enum Stage {
#define DS_STAGE_ENUM(name, items, parameters, sentence) kStage_##name,
    DS_STAGE_TABLE(DS_STAGE_ENUM)
#undef DS_STAGE_ENUM
    kNumStages
};

}  // namespace doorstep
