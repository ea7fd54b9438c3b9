// Handles of rollouts.
#pragma once

#include "api/call.h"
#include "rollouts/engine.h"
#include "rollouts/replica.h"

namespace doorstep {

inline constinit HandleRegistry<SharedLevel> shared_levels;
inline constinit HandleRegistry<RequestQueue> request_queues;
inline constinit HandleRegistry<OutputQueue> output_queues;
inline constinit HandleRegistry<Replica> replicas;
inline constinit HandleRegistry<Engine> engines;

}  // namespace doorstep
