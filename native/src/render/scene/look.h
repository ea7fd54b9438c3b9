// The appearance of objects: colours, light, the floor's grid. The renderers share these functions, over one float or
// lanes; vulkan/shaders/look.hlsl has the same functions in HLSL.
//
// Colours are 0 .. 1 as displayed (no gamma). Colours are continuous in the position of the hit point, and the grid is
// filtered over the pixel's footprint, so that renderers whose results differ in the last bits differ by less than one
// grey level.
#pragma once

#include <stdint.h>

#include "doorstep/rooms.h"
#include "math/lanes.h"
#include "render/scene/scene.h"

namespace doorstep {

struct Colour {
    float red, green, blue;
};

// Colours of the reference environment: cubes orange-brown, doors red, buttons yellow, walls grey.
constexpr Colour kCubeColour = {191.f / 255.f, 108.f / 255.f, 10.f / 255.f};
constexpr Colour kWallColour = {0.4f, 0.4f, 0.4f};
constexpr Colour kDoorColour = {230.f / 255.f, 20.f / 255.f, 20.f / 255.f};
constexpr Colour kButtonColour = {230.f / 255.f, 230.f / 255.f, 20.f / 255.f};
constexpr Colour kAgentColour = {0.95f, 0.95f, 0.95f};
constexpr Colour kEyeColour = {0.08f, 0.10f, 0.14f};
constexpr Colour kSkyColour = {0.62f, 0.76f, 0.90f};
constexpr Colour kFloorColour = {0.30f, 0.34f, 0.26f};
constexpr Colour kFloorLineColour = {0.50f, 0.56f, 0.42f};

DS_INLINE Colour colour_of_kind(int32_t kind) {
    return kind == DS_ENTITY_CUBE     ? kCubeColour
           : kind == DS_ENTITY_DOOR   ? kDoorColour
           : kind == DS_ENTITY_BUTTON ? kButtonColour
           : kind == DS_ENTITY_AGENT  ? kAgentColour
                                      : kWallColour;
}

// One white light from direction (1, 1, -2), and ambient light, more of it from above.
constexpr Vec3 kToLight = {-0.40824829f, -0.40824829f, 0.81649658f};
constexpr float kAmbient = 0.45f, kAmbientFromAbove = 0.10f, kDiffuse = 0.45f;

// The factor of a surface's colour. visibility: 1 in the light, 0 in shadow.
template <FloatLanes Float>
DS_INLINE Float brightness(Float normal_x, Float normal_y, Float normal_z, Float visibility) {
    const Float cosine = normal_x * Float(kToLight.x) + normal_y * Float(kToLight.y) + normal_z * Float(kToLight.z);
    return Float(kAmbient) + Float(kAmbientFromAbove) * normal_z +
           Float(kDiffuse) * visibility * maximum(cosine, Float(0.f));
}

// The floor: lines along x and y, metres.
constexpr float kGridCell = 2.f;
constexpr float kGridLineWidth = 0.1f;

// The nearest integer, for |a| < 2^22: adding 1.5 * 2^23 leaves no fraction.
template <FloatLanes Float>
DS_INLINE Float round_to_integer(Float a) {
    const Float big(12582912.f);
    return (a + big) - big;
}

// The fraction of a box of this width around a coordinate that lines across it cover: 0 .. 1.
template <FloatLanes Float>
DS_INLINE Float line_coverage(Float coordinate, Float width) {
    const Float zero(0.f), half_line(0.5f * kGridLineWidth / kGridCell);
    const Float u = coordinate * Float(1.f / kGridCell);
    const Float w = minimum(maximum(width * Float(1.f / kGridCell), Float(1e-6f)), Float(1.f));
    const Float from_line = absolute(u - round_to_integer(u));
    const Float low = from_line - Float(0.5f) * w, high = from_line + Float(0.5f) * w;
    const Float this_line = maximum(minimum(high, half_line) - maximum(low, zero - half_line), zero);
    const Float next_line = maximum(high - (Float(1.f) - half_line), zero);
    return (this_line + next_line) / w;
}

// The fraction of a floor pixel that is line. (x, y): the hit point; footprint_x, footprint_y: the pixel's extents
// there.
template <FloatLanes Float>
DS_INLINE Float floor_lines(Float x, Float y, Float footprint_x, Float footprint_y) {
    const Float across_x = line_coverage(x, footprint_x), across_y = line_coverage(y, footprint_y);
    return across_x + across_y - across_x * across_y;
}

// Extent along one horizontal axis of a pixel's footprint on the floor, hit at depth t; slope: of the ray's direction
// along that axis over its z; right, up: those components of the camera's axes; pixel: a pixel's side at depth 1.
// With t = -origin.z / direction.z the hit point moves by t * (axis - slope * axis.z) per unit.
template <FloatLanes Float>
DS_INLINE Float floor_footprint(Float t, Float slope, float right, float right_z, float up, float up_z, float pixel) {
    return t * Float(pixel) *
           (absolute(Float(right) - slope * Float(right_z)) + absolute(Float(up) - slope * Float(up_z)));
}
template <FloatLanes Float>
DS_INLINE Float floor_footprint(Float t, Float direction, Float direction_z, float right, float right_z, float up,
                                float up_z, float pixel) {
    return floor_footprint(t, direction / direction_z, right, right_z, up, up_z, pixel);
}

}  // namespace doorstep
