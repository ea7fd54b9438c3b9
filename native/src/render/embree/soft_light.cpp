#include "render/embree/soft_light.h"

#include <new>

namespace doorstep {
namespace {

constexpr float kAgentCore = 0.62f;         // of an agent's half extents: the rest is round
constexpr float kLeastSlope = 1e-4f;        // rays along a side count as nearly along it
constexpr float kSharpestBorder = 0.015f;   // half width of a shadow's border where it begins, metres
constexpr float kBehind = 1e-3f;            // a box that ends nearer along the ray is behind the surface, metres
constexpr float kFarthestShadow = 40.f;     // metres
constexpr float kCornerDarkness = 1.25f;

Vec3 unit(Vec3 a) { return a * (1.f / length(a)); }
Vec3 magnitudes(Vec3 a) { return {absolute(a.x), absolute(a.y), absolute(a.z)}; }
float with_sign_of(float magnitude, float sign) { return sign < 0.f ? -magnitude : magnitude; }

float least_slope(float slope) { return with_sign_of(maximum(absolute(slope), kLeastSlope), slope); }

// Two edges that the ray meets at times t apart are this far apart across the ray, per t.
float gap_of(float a, float b) { return absolute(a * b) / square_root(a * a + b * b); }

float extent_along(const Object& object, Vec3 direction) {
    return dot(magnitudes({dot(object.axis_x, direction), dot(object.axis_y, direction),
                           dot(object.axis_z, direction)}), object.half);
}

Lanes smooth(Lanes a) { return a * a * (Lanes(3.f) - Lanes(2.f) * a); }

// The share of the sun's disc that a box hides; relative: of the points to its centre.
Lanes shadow_of(const Occluder& box, const LaneVector& relative, float sun_radius) {
    const LaneVector from = along(relative, box.axis_x, box.axis_y, box.axis_z);
    const auto time = [](float side, Lanes origin, float inverse) { return (Lanes(side) - origin) * Lanes(inverse); };
    const Lanes near_x = time(-box.side.x, from.x, box.inverse.x), far_x = time(box.side.x, from.x, box.inverse.x);
    const Lanes near_y = time(-box.side.y, from.y, box.inverse.y), far_y = time(box.side.y, from.y, box.inverse.y);
    const Lanes near_z = time(-box.side.z, from.z, box.inverse.z), far_z = time(box.side.z, from.z, box.inverse.z);
    const Lanes entry = maximum(near_x, maximum(near_y, near_z)), exit = minimum(far_x, minimum(far_y, far_z));
    // Signed distance of the ray to the box's outline: the farthest of the six edges that it may pass.
    const Lanes gap = maximum(maximum(maximum(near_x - far_y, near_y - far_x) * Lanes(box.gap.z),
                                      maximum(near_y - far_z, near_z - far_y) * Lanes(box.gap.x)),
                              maximum(near_z - far_x, near_x - far_z) * Lanes(box.gap.y)) - Lanes(box.radius);
    const Lanes border = maximum(entry, Lanes(0.f)) * Lanes(sun_radius) + Lanes(kSharpestBorder);
    const Lanes hidden = smooth(to_unit(Lanes(0.5f) - Lanes(0.5f) * gap / border));
    return zero_unless(Lanes(kBehind) < exit + Lanes(box.radius), hidden);
}

// The share of the light from the sky that a box takes: that of a wall which rises above the surface as far as the box
// does, at the box's distance, and is as broad.
Lanes loss_to(const Occluder& box, const LaneVector& relative, const LaneVector& normals, float reach) {
    const LaneVector from = along(relative, box.axis_x, box.axis_y, box.axis_z);
    const LaneVector up = along(normals, box.axis_x, box.axis_y, box.axis_z);
    const auto beyond = [](Lanes a, float half) { return a - clamped(a, Lanes(-half), Lanes(half)); };
    const LaneVector away{beyond(from.x, box.core.x), beyond(from.y, box.core.y), beyond(from.z, box.core.z)};
    const Lanes distance = maximum(square_root(dot(away, away)) - Lanes(box.radius), Lanes(0.f));
    const LaneVector steepness{absolute(up.x), absolute(up.y), absolute(up.z)};
    const Lanes rise = clamped(dot(steepness, box.core) + Lanes(box.radius) - dot(up, from), Lanes(0.f), Lanes(reach));
    const Lanes squared = distance * distance;
    const Lanes height = Lanes(0.5f) - Lanes(0.5f) * distance / square_root(squared + rise * rise + Lanes(1e-6f));
    const Lanes breadth = Lanes(box.breadth) / square_root(squared + Lanes(box.breadth * box.breadth));
    const Lanes nearness = maximum(Lanes(1.f) - distance * Lanes(1.f / reach), Lanes(0.f));
    return height * breadth * nearness * nearness;
}

}  // namespace

bool SoftLight::create(const ds_picture_config& config, int capacity) {
    occluders_ = new (std::nothrow) Occluder[static_cast<size_t>(capacity)];
    to_sun_ = {config.to_sun[0], config.to_sun[1], config.to_sun[2]};
    across_u_ = unit(cross(to_sun_, absolute(to_sun_.z) < 0.9f ? Vec3{0.f, 0.f, 1.f} : Vec3{1.f, 0.f, 0.f}));
    across_v_ = cross(to_sun_, across_u_);
    sun_radius_ = config.sun_radius;
    reach_ = config.corner_reach;
    return occluders_ != nullptr;
}

void SoftLight::add(const Object& object) {
    const float share = object.is_mesh ? kAgentCore : 1.f;
    const Vec3 half = object.half;
    const float radius = (1.f - share) * minimum(half.x, minimum(half.y, half.z));
    const Vec3 core = half - Vec3{radius, radius, radius};
    const Vec3 sun{least_slope(dot(to_sun_, object.axis_x)), least_slope(dot(to_sun_, object.axis_y)),
                   least_slope(dot(to_sun_, object.axis_z))};
    const float top = object.centre.z + extent_along(object, {0.f, 0.f, 1.f});
    const float longest = minimum(maximum(top, 0.f) / maximum(to_sun_.z, kLeastSlope), kFarthestShadow);
    const float border = sun_radius_ * longest + kSharpestBorder;
    occluders_[count_++] = {object.centre, object.axis_x, object.axis_y, object.axis_z, core, radius,
                            {with_sign_of(core.x, sun.x), with_sign_of(core.y, sun.y), with_sign_of(core.z, sun.z)},
                            {1.f / sun.x, 1.f / sun.y, 1.f / sun.z},
                            {gap_of(sun.y, sun.z), gap_of(sun.z, sun.x), gap_of(sun.x, sun.y)},
                            dot(object.centre, across_u_), dot(object.centre, across_v_),
                            extent_along(object, across_u_) + border, extent_along(object, across_v_) + border,
                            extent_along(object, {1.f, 0.f, 0.f}) + reach_,
                            extent_along(object, {0.f, 1.f, 0.f}) + reach_,
                            maximum(half.x, half.y)};
}

// Borders of boxes that touch add up to full shadow.
Lanes SoftLight::sun(const LaneVector& points, Lanes own) const {
    const Lanes u = dot(points, across_u_), v = dot(points, across_v_);
    Lanes hidden(0.f);
    for (int i = 0; i < count_; ++i) {
        const Occluder& box = occluders_[i];
        const WideMask near = (absolute(u - Lanes(box.u)) < Lanes(box.half_u)) &
                              (absolute(v - Lanes(box.v)) < Lanes(box.half_v)) & ~equal(own, Lanes(static_cast<float>(i)));
        if (any(near)) hidden = hidden + zero_unless(near, shadow_of(box, points - box.centre, sun_radius_));
    }
    return Lanes(1.f) - minimum(hidden, Lanes(1.f));
}

// The sum of fourth powers is nearly the largest loss, without a crease where two boxes take equally much.
Lanes SoftLight::sky(const LaneVector& points, const LaneVector& normals, Lanes own) const {
    Lanes powers(0.f);
    for (int i = 0; i < count_; ++i) {
        const Occluder& box = occluders_[i];
        const LaneVector relative = points - box.centre;
        const WideMask near = (absolute(relative.x) < Lanes(box.reach_x)) & (absolute(relative.y) < Lanes(box.reach_y)) &
                              ~equal(own, Lanes(static_cast<float>(i)));
        if (!any(near)) continue;
        const Lanes loss = zero_unless(near, loss_to(box, relative, normals, reach_));
        powers = powers + (loss * loss) * (loss * loss);
    }
    return maximum(Lanes(1.f) - Lanes(kCornerDarkness) * square_root(square_root(powers)), Lanes(0.f));
}

}  // namespace doorstep
