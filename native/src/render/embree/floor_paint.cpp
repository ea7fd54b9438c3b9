#include "render/embree/floor_paint.h"

#include "render/scene/look.h"

namespace doorstep {
namespace {

constexpr float kDiagonal = 0.70710678f;

// The share of a sample that is within, given the signed distance to the border.
Lanes inside(Lanes distance, Lanes extent) { return to_unit(Lanes(0.5f) - distance / extent); }

// The share of a sample that lines cover which are centred at whole multiples of the period.
Lanes lines(Lanes coordinate, Lanes extent, const Mark& mark) {
    const Lanes period(mark.line_period), half_line(0.5f * mark.line_width / mark.line_period);
    const Lanes u = coordinate / period, w = minimum(extent / period, Lanes(1.f));
    const Lanes from_line = absolute(u - round_to_integer(u));
    const Lanes low = from_line - Lanes(0.5f) * w, high = from_line + Lanes(0.5f) * w;
    const Lanes this_line = maximum(minimum(high, half_line) - maximum(low, -half_line), Lanes(0.f));
    const Lanes next_line = maximum(high - (Lanes(1.f) - half_line), Lanes(0.f));
    return (this_line + next_line) / w;
}

Lanes either(Lanes a, Lanes b) { return a + b - a * b; }

Lanes coverage(const Mark& mark, const LaneVector& points, Lanes x, Lanes y, Lanes extent_x, Lanes extent_y) {
    const Lanes extent = maximum(extent_x, extent_y);
    if (mark.shape == DS_PICTURE_DISC || mark.shape == DS_PICTURE_GLOW) {
        const Lanes across = x * Lanes(1.f / mark.half_x), up = y * Lanes(1.f / mark.half_y);
        const Lanes radius = square_root(across * across + up * up);
        if (mark.shape == DS_PICTURE_GLOW) {
            const Lanes nearness = maximum(Lanes(1.f) - radius, Lanes(0.f));
            return nearness * nearness;
        }
        const Lanes distance = (radius - Lanes(1.f)) * Lanes(minimum(mark.half_x, mark.half_y));
        const Lanes half_line(0.5f * mark.line_width);
        return inside(mark.line_width > 0.f ? absolute(distance + half_line) - half_line : distance, extent);
    }
    const Lanes distance = maximum(absolute(x) - Lanes(mark.half_x), absolute(y) - Lanes(mark.half_y));
    const Lanes within = inside(distance, extent);
    if (mark.shape == DS_PICTURE_GRID) {
        return within * either(lines(points.x, extent_x, mark), lines(points.y, extent_y, mark));
    }
    if (mark.shape == DS_PICTURE_STRIPES) {
        const Lanes stripes = lines((x + y) * Lanes(kDiagonal), extent, mark);
        return within * either(stripes, Lanes(1.f) - inside(distance + Lanes(0.5f * mark.line_width), extent));
    }
    return within;
}

}  // namespace

Mark mark_from(const ds_picture_object& object, Vec3 colour) {
    const Vec3 ahead = rotate(Quat{object.rotation[0], object.rotation[1], object.rotation[2], object.rotation[3]},
                              {1.f, 0.f, 0.f});
    const float level = maximum(square_root(ahead.x * ahead.x + ahead.y * ahead.y), 1e-6f);
    const float half_x = 0.5f * absolute(object.size[0]), half_y = 0.5f * absolute(object.size[1]);
    return {object.shape, object.centre[0], object.centre[1], ahead.x / level, ahead.y / level,
            maximum(half_x, 1e-6f), maximum(half_y, 1e-6f), half_x + half_y, colour, object.opacity,
            object.line_width, maximum(object.line_period, 1e-3f)};
}

void paint(const Mark& mark, const LaneVector& points, Lanes extent_x, Lanes extent_y, LaneVector& colours) {
    const Lanes x = points.x - Lanes(mark.x), y = points.y - Lanes(mark.y);
    const Lanes bound = Lanes(mark.bound) + maximum(extent_x, extent_y);
    if (!any((absolute(x) < bound) & (absolute(y) < bound))) return;
    const Lanes along = x * Lanes(mark.cosine) + y * Lanes(mark.sine);
    const Lanes across = y * Lanes(mark.cosine) - x * Lanes(mark.sine);
    const Lanes share = coverage(mark, points, along, across, extent_x, extent_y) * Lanes(mark.opacity);
    colours = mix(colours, broadcast(mark.colour), share);
}

}  // namespace doorstep
