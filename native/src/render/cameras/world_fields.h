// Where the fields lie that pictures are made of.
#pragma once

#include "doorstep.h"
#include "render/scene/objects.h"

namespace doorstep {

// Of a simulator, on its device, for as long as it lives. Its steps do not look for edits because of it.
ds_status find_world_fields(ds_simulator simulator, const ds_simulator_info& info, WorldFields* fields);

}  // namespace doorstep
