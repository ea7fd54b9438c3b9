// Actors of a replica on CUDA. All worlds step together there, also if some of their rows act on the host.
#pragma once

#include "rollouts/actors.h"

namespace doorstep {

// Null if memory ran out.
Actors* make_device_actors(const ActorParts& parts);

}  // namespace doorstep
