// The instances of the simulation, one per number of agents; world_model.cpp defines them.
#pragma once

#include "sim/world_model.h"

namespace doorstep {

template <int Agents>
const WorldModel& world_model();

// Fills the instance's tables. Called once, before the instance is first used.
template <int Agents>
void prepare_world_model();

#define DS_DECLARE_WORLD_MODEL(agents)        \
    template <>                               \
    const WorldModel& world_model<agents>();  \
    template <>                               \
    void prepare_world_model<agents>();
DS_DECLARE_WORLD_MODEL(1)
DS_DECLARE_WORLD_MODEL(2)
DS_DECLARE_WORLD_MODEL(3)
DS_DECLARE_WORLD_MODEL(4)
DS_DECLARE_WORLD_MODEL(5)
DS_DECLARE_WORLD_MODEL(6)
DS_DECLARE_WORLD_MODEL(7)
DS_DECLARE_WORLD_MODEL(8)
#undef DS_DECLARE_WORLD_MODEL

}  // namespace doorstep
