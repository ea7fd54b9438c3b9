// The instances of the simulation, one per number of agents and capacity; world_model.cpp defines them.
#pragma once

#include "sim/world_model.h"

namespace doorstep {

struct ReferenceCapacity;
struct LevelCapacity;

template <int Agents, class Capacity>
const WorldModel& world_model();

// Fills the instance's tables. Called once, before the instance is first used.
template <int Agents, class Capacity>
void prepare_world_model();

#define DS_DECLARE_WORLD_MODEL(agents, Capacity)        \
    template <>                                         \
    const WorldModel& world_model<agents, Capacity>();  \
    template <>                                         \
    void prepare_world_model<agents, Capacity>();
#define DS_DECLARE_WORLD_MODELS(agents)               \
    DS_DECLARE_WORLD_MODEL(agents, ReferenceCapacity) \
    DS_DECLARE_WORLD_MODEL(agents, LevelCapacity)
DS_DECLARE_WORLD_MODELS(1)
DS_DECLARE_WORLD_MODELS(2)
DS_DECLARE_WORLD_MODELS(3)
DS_DECLARE_WORLD_MODELS(4)
DS_DECLARE_WORLD_MODELS(5)
DS_DECLARE_WORLD_MODELS(6)
DS_DECLARE_WORLD_MODELS(7)
DS_DECLARE_WORLD_MODELS(8)
#undef DS_DECLARE_WORLD_MODELS
#undef DS_DECLARE_WORLD_MODEL

}  // namespace doorstep
