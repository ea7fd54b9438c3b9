// The models of worlds, each prepared once for the whole process, where a fork may come at any time.
#pragma once

#include "sim/world_model.h"

namespace doorstep {

// find_world_model(), of which one thread at a time makes the tables.
const WorldModel& prepared_model(WorldKind kind);

// Around a fork: between the first call and one of the others, no thread prepares a model.
void lock_models();
void unlock_models();
void reset_models();  // in the child

}  // namespace doorstep
