// The pose of a camera and the rays of its pixels. Rays go through pixel centres; row 0 is the top, column 0 the left.
#pragma once

#include <stdint.h>

#include "math/vector.h"

namespace doorstep {

// A pinhole. Directions are not normalised: their component along `forward` is 1, so that a ray's parameter is the
// depth, the distance along the forward axis.
struct Camera {
    Vec3 origin;
    Vec3 right, forward, up;  // unit vectors
    float tangent_x, tangent_y;  // half the view's width and height at depth 1
};

// The camera that every agent carries.
struct CameraRig {
    int32_t width, height;  // pixels
    float tangent_x, tangent_y;
    Vec3 position;  // in the agent's frame
    Quat rotation;  // relative to the agent
};

// Nearer surfaces are not visible, metres.
constexpr float kNearPlane = 0.001f;
// The floor ends at this distance: at the horizon, rounding must not decide what is visible.
constexpr float kFarPlane = 1e5f;

DS_INLINE Camera camera_of_agent(const CameraRig& rig, Vec3 agent_position, Quat agent_rotation) {
    const Quat rotation = agent_rotation * rig.rotation;
    return {agent_position + rotate(agent_rotation, rig.position),
            rotate(rotation, {1.f, 0.f, 0.f}),
            rotate(rotation, {0.f, 1.f, 0.f}),
            rotate(rotation, {0.f, 0.f, 1.f}),
            rig.tangent_x,
            rig.tangent_y};
}

// Position of a pixel's centre on the plane at depth 1: right and up.
DS_INLINE float pixel_right(float tangent_x, int32_t width, int32_t column) {
    return tangent_x * ((2.f * static_cast<float>(column) + 1.f) / static_cast<float>(width) - 1.f);
}
DS_INLINE float pixel_up(float tangent_y, int32_t height, int32_t row) {
    return tangent_y * (1.f - (2.f * static_cast<float>(row) + 1.f) / static_cast<float>(height));
}

}  // namespace doorstep
