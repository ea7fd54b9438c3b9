// The handles of cameras.
#pragma once

#include "render/cameras/cameras.h"
#include "runtime/handles.h"

namespace doorstep {

// Never destroyed: threads may still use it while the process exits.
inline constinit HandleRegistry<Cameras> cameras_registry;

}  // namespace doorstep
