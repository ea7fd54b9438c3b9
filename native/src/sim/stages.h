// The stages of a step: the only list there is. Timers, their names and the docs come from these rows.
#pragma once

#include "sim/world_model.h"

namespace doorstep {

// X(name, what lanes run over, reads, writes, sentence), in order of execution.
#define DS_STAGE_TABLE(X)                                                                                          \
    X(absorb_edits, "worlds", "state", "indices, bounds, sleep", "Makes edits from outside safe and felt.")        \
    X(load_actions, "agents", "actions, agent poses", "flights, paths", "Looks up where each agent would fly.")       \
    X(move_doors, "doors", "door flags", "static z", "Moves panels by the last step's flag.")                      \
    X(toggle_grabs, "agents", "poses, statics", "grabs, joints", "Grabs or releases a cube in front.")             \
    X(classify_agents, "agents", "paths, bounds", "motion of each agent",                                          \
      "Decides who flies freely, who slides along statics, who needs the general solver.")                         \
    X(couple_agents, "worlds", "paths, bounds", "motion of each agent", "Couples those in each other's way.")      \
    X(fly_agents, "agents", "flights", "agent poses", "Moves agents that touch nothing.")                          \
    X(slide_agents, "agents", "statics", "agent poses", "Moves agents that touch statics only.")                   \
    X(solve_bodies, "coupled worlds", "bodies, statics, joints", "bodies", "Moves everything else.")               \
    X(press_buttons, "buttons", "bounds", "pressed", "Sees what stands on the buttons.")                           \
    X(open_doors, "doors", "pressed", "door flags", "Opens doors whose buttons are all pressed.")                  \
    X(score_progress, "agents", "agent y", "rewards, largest y", "Rewards new ground, with the bonus.")            \
    X(count_step, "worlds", "steps remaining, resets", "done, returns", "Counts the step, finds ending worlds.")   \
    X(prepare_sights, "agents", "agent poses, statics", "yaws, sights", "Works out what observing shares.")        \
    X(record_final, "ending worlds", "everything", "final tensors", "Observes worlds before they go.")             \
    X(flatten_final, "ending worlds", "final tensors", "final observations", "Writes them side by side.")          \
    X(reset_levels, "ending worlds", "seed, episode index", "everything", "Generates the next level.")             \
    X(observe, "sights", "poses, slots", "observations", "Writes what agents know.")                               \
    X(cast_lidar, "rays", "poses, statics", "lidar", "Writes what agents see.")                                    \
    X(flatten, "agents", "observations", "flat observations", "Writes observations side by side.")

enum Stage {
#define DS_STAGE_ENUM(name, lanes, reads, writes, sentence) kStage_##name,
    DS_STAGE_TABLE(DS_STAGE_ENUM)
#undef DS_STAGE_ENUM
    kStageCount
};
static_assert(kStageCount == kNumStages, "world_model.h says how many stages there are");

}  // namespace doorstep
