// Handles of rollouts.
#pragma once

#include "api/call.h"
#include "rollouts/engine.h"
#include "rollouts/replica.h"

namespace doorstep {

inline constinit HandleRegistry<SharedLevel> shared_levels{HandleKind::SHARED_LEVEL};
inline constinit HandleRegistry<RequestQueue> request_queues{HandleKind::REQUEST_QUEUE};
inline constinit HandleRegistry<OutputQueue> output_queues{HandleKind::OUTPUT_QUEUE};
inline constinit HandleRegistry<Replica> replicas{HandleKind::REPLICA};
inline constinit HandleRegistry<Engine> engines{HandleKind::ENGINE};

}  // namespace doorstep
