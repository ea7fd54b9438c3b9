// The simulators' library: the functions of doorstep.h through the table passed to ds_render_open(). fail() of
// runtime/status.h sets errors there; messages longer than an error can contain are truncated.
#pragma once

#include <math.h>

#include "doorstep_api.h"
#include "runtime/argument_checks.h"

namespace doorstep {

// The table. Call only after ds_render_open().
const ds_api& core();
bool has_core();
void set_core(const ds_api* api);

// LIBRARY, without a message, before ds_render_open().
inline ds_status check_open() { return has_core() ? DS_STATUS_OK : DS_STATUS_LIBRARY; }

// ---- Checks of the parameters that cameras and pictures share

constexpr float kUnitTolerance = 1e-3f;  // of a quaternion's squared length

inline bool all_finite(const float* values, int count) {
    for (int i = 0; i < count; ++i) {
        if (!isfinite(values[i])) return false;
    }
    return true;
}

// Whether four numbers are a unit quaternion, within rounding.
inline bool is_rotation(const float* q) {
    return fabsf(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] - 1.f) <= kUnitTolerance;
}

inline ds_status check_field_of_view(float degrees) {
    if (degrees > 0.f && degrees < 180.f) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "fov", "pass the vertical angle of the view in degrees",
                "fov is %g; it must be more than 0 and less than 180", static_cast<double>(degrees));
}

inline ds_status check_position(const float* p) {
    if (all_finite(p, 3)) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "position", "pass metres",
                "position is (%g, %g, %g); it must be finite", static_cast<double>(p[0]), static_cast<double>(p[1]),
                static_cast<double>(p[2]));
}

inline ds_status check_rotation(const float* q) {
    if (is_rotation(q)) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "rotation", "divide it by its length; (1, 0, 0, 0) is no rotation",
                "rotation is (%g, %g, %g, %g); it must be a unit quaternion (w, x, y, z)", static_cast<double>(q[0]),
                static_cast<double>(q[1]), static_cast<double>(q[2]), static_cast<double>(q[3]));
}

}  // namespace doorstep
