// The addresses of the fields that pictures are drawn from.
#pragma once

#include "doorstep.h"
#include "render/scene/objects.h"

namespace doorstep {

// The fields of a simulator, on its device, valid until it ends. Its steps do not check for edits because of them.
ds_status find_world_fields(ds_simulator simulator, const ds_simulator_info& info, WorldFields* fields);

}  // namespace doorstep
