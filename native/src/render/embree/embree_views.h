// The views of one world.
#pragma once

#include "render/cameras/batch_renderer.h"
#include "render/embree/object_scene.h"

namespace doorstep {

// Draws the views of all agents of a world, with a scene that only this thread uses.
RTCError draw_world(const Views& views, int64_t world, ObjectScene& scene);

}  // namespace doorstep
