// Single pictures for people: see ds_picture_draw().
#pragma once

#include <stdint.h>

#include "doorstep_render.h"

namespace doorstep {

// Arguments have been checked; num_threads is at least 1. rgb: [height, width, 3].
ds_status draw_picture(const ds_picture_object* objects, uint64_t count, const ds_picture_config& config, uint8_t* rgb);

}  // namespace doorstep
