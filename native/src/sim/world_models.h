// The instances of the simulation, one per number of agents and capacity; world_model.cpp and step_with_avx512.cpp define
// them.
#pragma once

#include "sim/flight.h"

namespace doorstep {

// Filled before the first instance is used.
extern FlightTable flight_table;

template <int Agents, class Capacity>
const WorldModel& world_model(bool avx512);
template <int Agents, class Capacity>
uint32_t step_with_avx512(const Simulation& simulation, int64_t first, int64_t count, uint64_t* ticks);

#define DS_DECLARE_WORLD_MODEL(agents, Capacity)                   \
    template <>                                                    \
    const WorldModel& world_model<agents, Capacity>(bool avx512);  \
    template <>                                                    \
    uint32_t step_with_avx512<agents, Capacity>(const Simulation&, int64_t, int64_t, uint64_t*);
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
