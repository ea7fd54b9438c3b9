// The views of one world.
#pragma once

#include "render/cameras/batch_renderer.h"
#include "render/embree/object_scene.h"

namespace doorstep {

// Draws what all agents of a world see, with a scene that this thread alone uses.
RTCError draw_world(const Views& views, int64_t world, ObjectScene& scene);

}  // namespace doorstep
