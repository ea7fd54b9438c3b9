// The stages of a step. Timers, their names and the documentation are derived from these rows.
#pragma once

#include "sim/world_model.h"

namespace doorstep {

// X(name, what lanes run over, reads, writes, sentence), in order of execution.
#define DS_STAGE_TABLE(X)                                                                                          \
    X(absorb_edits, "worlds", "state", "indices, bounds, sleep", "Validates edits and applies them.")        \
    X(load_actions, "agents", "actions, agent poses", "flights, paths", "Looks up each agent's free motion.")       \
    X(move_doors, "doors", "door flags", "static z", "Moves panels by the last step's flag.")                      \
    X(toggle_grabs, "agents", "poses, statics", "grabs, joints", "Grabs or releases a cube in front.")             \
    X(classify_agents, "agents", "paths, bounds", "motion of each agent",                                          \
      "Chooses which agents fly freely, slide along statics or need the general solver.")                         \
    X(couple_agents, "worlds", "paths, bounds", "motion of each agent", "Couples agents in each other's way.")      \
    X(fly_agents, "agents", "flights", "agent poses", "Moves agents that touch nothing.")                          \
    X(slide_agents, "agents", "statics", "agent poses", "Moves agents that touch statics only.")                   \
    X(solve_bodies, "coupled worlds", "bodies, statics, joints", "bodies", "Moves everything else.")               \
    X(press_buttons, "buttons", "bounds", "pressed", "Finds the buttons that bodies press.")                           \
    X(open_doors, "doors", "pressed", "door flags", "Opens doors whose buttons are all pressed.")                  \
    X(score_progress, "agents", "agent y", "rewards, largest y", "Rewards progress, with the bonus.")            \
    X(count_step, "worlds", "steps remaining, resets", "done, returns", "Counts the step, finds ending episodes.")   \
    X(prepare_sights, "agents", "agent poses, statics", "yaws, sights", "Computes shared observation data.")        \
    X(record_final, "ending worlds", "everything", "final tensors", "Observes worlds before their reset.")             \
    X(flatten_final, "ending worlds", "final tensors", "final observations", "Concatenates them.")          \
    X(reset_levels, "ending worlds", "seed, episode index", "everything", "Generates the next level.")             \
    X(observe, "sights", "poses, slots", "observations", "Writes all but lidar.")                               \
    X(cast_lidar, "rays", "poses, statics", "lidar", "Casts the lidar rays.")                                    \
    X(flatten, "agents", "observations", "flat observations", "Concatenates the observations.")

enum Stage {
#define DS_STAGE_ENUM(name, lanes, reads, writes, sentence) kStage_##name,
    DS_STAGE_TABLE(DS_STAGE_ENUM)
#undef DS_STAGE_ENUM
    kStageCount
};
static_assert(kStageCount == kNumStages, "kNumStages of world_model.h counts the rows");

}  // namespace doorstep
