// The instances of the simulation, one per row of DS_WORLD_KIND_TABLE; world_model.cpp defines them.
#pragma once

#include "sim/flight.h"

namespace doorstep {

// Filled before the first instance is used.
extern FlightTable flight_table;

template <int number>
const WorldModel& world_model(int num_agents, bool avx512);

#define DS_DECLARE_WORLD_MODEL(number, ...) \
    template <>                             \
    const WorldModel& world_model<number>(int num_agents, bool avx512);
DS_WORLD_KIND_TABLE(DS_DECLARE_WORLD_MODEL)
#undef DS_DECLARE_WORLD_MODEL

}  // namespace doorstep
