// Checks of what cameras and pictures are both described by.
#pragma once

#include "doorstep.h"

namespace doorstep {

bool all_finite(const float* values, int count);
// Whether four numbers are a unit quaternion, as far as rounding lets them.
bool is_rotation(const float* quaternion);

ds_status check_field_of_view(float degrees);
ds_status check_position(const float* position);
ds_status check_rotation(const float* quaternion);

}  // namespace doorstep
