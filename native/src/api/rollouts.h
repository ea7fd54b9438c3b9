// Handles of rollouts.
#pragma once

#include "api/call.h"
#include "rollouts/engine.h"

namespace doorstep {

inline constinit HandleRegistry<SharedLevel> shared_levels;
inline constinit HandleRegistry<Engine> engines;

}  // namespace doorstep
