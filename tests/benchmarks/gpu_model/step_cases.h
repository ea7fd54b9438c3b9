// Steps of worlds in the model.
#pragma once

#include "measured.h"
#include "sim/world_model.h"

namespace gpu_model {

// Where the measured steps begin.
enum StepScene {
    kNormalStart,      // the reference's worlds, some steps after their creation
    kAmongCubes,       // likewise; each agent begins next to a cube
    kReferenceLevels,  // worlds that play levels, which are the reference's
    kDrawnPhysics,     // likewise, with friction and cubes' masses drawn
    kStepScenes
};
extern const char* const kSceneNames[kStepScenes];

// Executes steps of random actions by the PTX and by the CPU; ends the process unless all bytes are equal.
Measured measure_steps(StepScene scene, int num_agents, int num_worlds, int num_steps);

}  // namespace gpu_model
