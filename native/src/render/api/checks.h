// Checks of the parameters that cameras and pictures share.
#pragma once

#include "doorstep.h"

namespace doorstep {

bool all_finite(const float* values, int count);
// Whether four numbers are a unit quaternion, within rounding.
bool is_rotation(const float* quaternion);

ds_status check_field_of_view(float degrees);
ds_status check_position(const float* position);
ds_status check_rotation(const float* quaternion);

}  // namespace doorstep
