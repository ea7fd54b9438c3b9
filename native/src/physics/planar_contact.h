// The contact of two upright boxes in the plane, over lanes: sliding agents use it for their walls (slide.h), the
// general solver for boxes that (nearly) only yaw, with one lane (box_box.h).
//
// Separating axes, two for each box; then the overlap of two edges: that of the reference box whose normal is the axis
// of least depth, and the incident edge, which faces it most.
//
// What follows from a contact is not shared: pair_contact.h has any bodies in space and twice the points, and removes
// old overlap first; slide.h has an agent and a wall in the plane, at a fraction of the cost, and rounds differently.
// A native test compares them: a_wall_acts_on_a_sliding_agent_as_in_the_general_solver.
#pragma once

#include "math/lanes.h"
#include "physics/box.h"

namespace doorstep {

// An axis replaces the best one so far only if it is better by this, so that rounding does not alternate between equal
// axes, metres.
constexpr float kFaceMargin = 1e-5f;

template <FloatLanes Float>
struct PlanarBox {
    Float x, y, cosine, sine, half_x, half_y;
};

DS_INLINE PlanarBox<NarrowFloat> planar_box(const Box& box) {
    return {box.center.x, box.center.y, box.axis[0].x, box.axis[0].y, box.half.x, box.half.y};
}

// Gaps between two boxes along the axes of one of them; the depth if negative.
template <FloatLanes Float>
struct PlanarGaps {
    Float x, y;
    DS_METHOD typename Float::Mask closed() const { return (x < Float(0.f)) & (y < Float(0.f)); }
};

// (dx, dy): between the centres; cosine, sine: absolute values of those of the angle between the boxes.
template <FloatLanes Float>
DS_INLINE PlanarGaps<Float> gaps_along_axes_of(const PlanarBox<Float>& box, const PlanarBox<Float>& other, Float dx,
                                               Float dy, Float cosine, Float sine) {
    return {absolute(dx * box.cosine + dy * box.sine) - (box.half_x + other.half_x * cosine + other.half_y * sine),
            absolute(dy * box.cosine - dx * box.sine) - (box.half_y + other.half_x * sine + other.half_y * cosine)};
}

// The axis of least depth of boxes a and b.
template <FloatLanes Float>
struct PlanarAxis {
    typename Float::Mask of_a, along_y;
    Float gap;
};

template <FloatLanes Float>
DS_INLINE PlanarAxis<Float> least_deep_axis(const PlanarGaps<Float>& gaps_a, const PlanarGaps<Float>& gaps_b) {
    const Float margin(kFaceMargin);
    Float best = gaps_b.x;
    const auto is_b_y = best + margin < gaps_b.y;
    best = select(is_b_y, gaps_b.y, best);
    const auto is_a_x = best + margin < gaps_a.x;
    best = select(is_a_x, gaps_a.x, best);
    const auto is_a_y = best + margin < gaps_a.y;
    best = select(is_a_y, gaps_a.y, best);
    const auto of_a = is_a_x | is_a_y;
    return {of_a, is_a_y | (is_b_y & ~of_a), best};
}

template <FloatLanes Float>
struct PlanarContact {
    typename Float::Mask touching;
    Float normal_x, normal_y;                // from b to a
    Float point_x[2], point_y[2], depth[2];  // midway between the surfaces; a depth of 0 is no point
};

// The overlap of the edges along an axis. (dx, dy): from a's centre to b's. touching: on input, the boxes that no axis
// separates; on output, those with a point.
template <FloatLanes Float>
DS_INLINE void overlap_edges(const PlanarBox<Float>& a, const PlanarBox<Float>& b, Float dx, Float dy,
                             const PlanarAxis<Float>& axis, PlanarContact<Float>& contact) {
    const Float zero(0.f), one(1.f), half(0.5f);
    const auto of_a = axis.of_a, along_y = axis.along_y;
    const Float ref_x = select(of_a, a.x, b.x), ref_y = select(of_a, a.y, b.y);
    const Float ref_c = select(of_a, a.cosine, b.cosine), ref_s = select(of_a, a.sine, b.sine);
    const Float ref_hx = select(of_a, a.half_x, b.half_x), ref_hy = select(of_a, a.half_y, b.half_y);
    const Float inc_x = select(of_a, b.x, a.x), inc_y = select(of_a, b.y, a.y);
    const Float inc_c = select(of_a, b.cosine, a.cosine), inc_s = select(of_a, b.sine, a.sine);
    const Float inc_hx = select(of_a, b.half_x, a.half_x), inc_hy = select(of_a, b.half_y, a.half_y);
    const Float towards_x = select(of_a, dx, -dx), towards_y = select(of_a, dy, -dy);

    // Outward normal n and tangent t of the reference edge
    Float nx = select(along_y, -ref_s, ref_c), ny = select(along_y, ref_c, ref_s);
    const Float half_n = select(along_y, ref_hy, ref_hx), half_t = select(along_y, ref_hx, ref_hy);
    const auto flip = nx * towards_x + ny * towards_y < zero;
    nx = select(flip, -nx, nx);
    ny = select(flip, -ny, ny);
    const Float tx = -ny, ty = nx;

    // The incident edge: f its middle, e half its length
    const Float q0 = nx * inc_c + ny * inc_s, q1 = ny * inc_c - nx * inc_s;
    const auto across_x = absolute(q1) <= absolute(q0);
    const Float offset_x = select(zero < q0, -inc_hx, inc_hx), offset_y = select(zero < q1, -inc_hy, inc_hy);
    const Float fx = select(across_x, inc_c * offset_x, -inc_s * offset_y);
    const Float fy = select(across_x, inc_s * offset_x, inc_c * offset_y);
    const Float ex = select(across_x, -inc_s * inc_hy, inc_c * inc_hx);
    const Float ey = select(across_x, inc_c * inc_hy, inc_s * inc_hx);

    // Its ends as (u: position along t, d: depth below the reference edge), clipped to the length of the reference edge
    const Float px = inc_x + fx - ref_x, py = inc_y + fy - ref_y;
    const Float u0 = (px + ex) * tx + (py + ey) * ty, u1 = (px - ex) * tx + (py - ey) * ty;
    const Float d0 = half_n - ((px + ex) * nx + (py + ey) * ny), d1 = half_n - ((px - ex) * nx + (py - ey) * ny);
    const Float du = u1 - u0, dd = d1 - d0;
    const auto cut = Float(1e-6f) < absolute(du);  // otherwise the edge is a point of the tangent
    const Float inverse = one / select(cut, du, one);
    const Float cut0 = (-half_t - u0) * inverse, cut1 = (half_t - u0) * inverse;
    const Float low = maximum(zero, minimum(cut0, cut1)), high = minimum(one, maximum(cut0, cut1));
    const Float along[2] = {select(cut, u0 + du * low, u0), select(cut, u0 + du * high, u0)};
    const Float below[2] = {select(cut, d0 + dd * low, d0), select(cut, d0 + dd * high, d1)};

    for (int i = 0; i < 2; i++) {
        const Float middle = half_n - half * below[i];
        contact.point_x[i] = ref_x + tx * along[i] + nx * middle;
        contact.point_y[i] = ref_y + ty * along[i] + ny * middle;
        contact.depth[i] = zero_unless(zero < below[i], below[i]);
    }
    contact.normal_x = select(of_a, -nx, nx);
    contact.normal_y = select(of_a, -ny, ny);
    DS_ASSERT(!any(contact.depth[0] < zero) && !any(contact.depth[1] < zero));
    contact.touching = contact.touching & ((low <= high) | ~cut) & ((zero < below[0]) | (zero < below[1]));
}

}  // namespace doorstep
