// Box against box: separating axes, then clipping of the incident face against the reference face.
//
// Two functions with one result type. upright_contact() is for boxes that (nearly) only yaw: the manifold is their
// contact in the plane (planar_contact.h), at the top and the bottom of the common height. box_contact() is the general
// one: 15 axes (Gottschalk, Lin, Manocha: "OBBTree", SIGGRAPH 1996, section 5). An axis replaces the best one so far
// only if it is better by kFaceMargin; edge axes need a larger margin because they give only one point.
#pragma once

#include "physics/box.h"
#include "physics/contact.h"
#include "physics/planar_contact.h"

namespace doorstep {

constexpr float kEdgeMargin = 1e-3f;
constexpr float kParallelEdges = 1e-4f;  // squared sine below which an edge pair has no axis of its own
constexpr int kMaxClipPoints = 16;       // a quad clipped by four planes has at most 8; rounding may add some

// Boxes that overlap by more than this in height are next to each other, not stacked, whichever axis has the least
// overlap: boxes that start overlapping, or stand in a closing door, separate along the floor.
constexpr float kDeepestStanding = 0.5f;
constexpr float kNearlyVertical = 0.9f;
DS_INLINE bool may_part_along(Vec3 axis, float separation) {
    return absolute(axis.z) < kNearlyVertical || separation > -kDeepestStanding;
}

enum class Overlap { kNone, kContact, kVertical };

DS_NOINLINE Overlap upright_contact(const Box& a, const Box& b, Manifold& manifold) {
    const PlanarBox<NarrowFloat> planar_a = planar_box(a), planar_b = planar_box(b);
    const Heading ha{a.axis[0].x, a.axis[0].y}, hb{b.axis[0].x, b.axis[0].y};
    const float dx = b.center.x - a.center.x, dy = b.center.y - a.center.y;
    const float cosine = absolute(ha.cosine * hb.cosine + ha.sine * hb.sine);
    const float sine = absolute(ha.cosine * hb.sine - ha.sine * hb.cosine);
    const auto gaps_b = gaps_along_axes_of<NarrowFloat>(planar_b, planar_a, dx, dy, cosine, sine);
    if (!any(gaps_b.closed())) return Overlap::kNone;
    const auto gaps_a = gaps_along_axes_of<NarrowFloat>(planar_a, planar_b, dx, dy, cosine, sine);
    if (!any(gaps_a.closed())) return Overlap::kNone;
    const float gap_z = absolute(b.center.z - a.center.z) - (a.half.z + b.half.z);
    if (!(gap_z < 0.f)) return Overlap::kNone;
    const PlanarAxis<NarrowFloat> axis = least_deep_axis(gaps_a, gaps_b);
    if (gap_z > axis.gap.v && gap_z > -kDeepestStanding) return Overlap::kVertical;

    PlanarContact<NarrowFloat> contact;
    contact.touching = {true};
    overlap_edges<NarrowFloat>(planar_a, planar_b, dx, dy, axis, contact);
    if (!any(contact.touching)) return Overlap::kNone;
    const float bottom = maximum(a.center.z - a.half.z, b.center.z - b.half.z);
    const float top = minimum(a.center.z + a.half.z, b.center.z + b.half.z);
    manifold.normal = {contact.normal_x.v, contact.normal_y.v, 0.f};
    manifold.count = 0;
    for (int i = 0; i < 2; i++) {
        const float x = contact.point_x[i].v, y = contact.point_y[i].v, depth = contact.depth[i].v;
        if (!(depth > 0.f)) continue;
        manifold.point[manifold.count] = {x, y, bottom};
        manifold.depth[manifold.count++] = depth;
        manifold.point[manifold.count] = {x, y, top};
        manifold.depth[manifold.count++] = depth;
    }
    DS_ASSERT(has_points(manifold) && manifold.count % 2 == 0);
    return Overlap::kContact;
}

// ---- General boxes

struct BoxAxes {
    float r[3][3], ar[3][3];  // a's axes times b's axes, and absolute values
    float ta[3], tb[3];       // centre of b from centre of a, along the axes of a and of b
};

// The deepest point of one edge pair.
DS_INLINE void edge_contact(const Box& a, const Box& b, Vec3 t, int i, int j, float depth, const BoxAxes& axes,
                            Manifold& manifold) {
    DS_ASSERT(i >= 0 && i < 3 && j >= 0 && j < 3);
    const float ha[3] = {a.half.x, a.half.y, a.half.z}, hb[3] = {b.half.x, b.half.y, b.half.z};
    Vec3 n = cross(a.axis[i], b.axis[j]);
    n = n * (1.f / length(n));
    DS_ASSERT(may_be_unit(dot(n, n)));
    if (dot(n, t) > 0.f) n = -n;
    Vec3 pa = a.center, pb = b.center;
    for (int k = 0; k < 3; k++) {
        if (k != i) pa = pa + a.axis[k] * (dot(a.axis[k], n) > 0.f ? -ha[k] : ha[k]);
        if (k != j) pb = pb + b.axis[k] * (dot(b.axis[k], n) > 0.f ? hb[k] : -hb[k]);
    }
    // Closest points of the two lines
    const Vec3 d = pb - pa;
    const float c = axes.r[i][j], e = dot(a.axis[i], d), f = dot(b.axis[j], d), inverse = 1.f / (1.f - c * c);
    const Vec3 qa = pa + a.axis[i] * ((e - c * f) * inverse), qb = pb + b.axis[j] * ((c * e - f) * inverse);
    manifold.normal = n;
    manifold.count = 1;
    manifold.point[0] = (qa + qb) * 0.5f;
    manifold.depth[0] = depth;
}

// Clips a convex polygon to the half space dot(axis, p) <= limit.
DS_INLINE int clip_polygon(const Vec3* in, int count, Vec3 axis, float limit, Vec3* out) {
    DS_ASSERT(count >= 0 && count <= kMaxClipPoints && in != out);
    int kept = 0;
    if (count == 0) return 0;
    Vec3 a = in[count - 1];
    float da = dot(axis, a) - limit;
    for (int k = 0; k < count && kept + 2 <= kMaxClipPoints; k++) {
        const Vec3 b = in[k];
        const float db = dot(axis, b) - limit;
        if ((da <= 0.f) != (db <= 0.f)) out[kept++] = a + (b - a) * (da / (da - db));
        if (db <= 0.f) out[kept++] = b;
        a = b;
        da = db;
    }
    DS_ASSERT(kept <= kMaxClipPoints);
    return kept;
}

// Scratch memory of a test of two boxes. The solver owns one, because a CUDA thread's stack is small.
struct BoxScratch {
    BoxAxes axes;
    Vec3 polygon[2][kMaxClipPoints];
    Vec3 points[kMaxClipPoints];
    float depths[kMaxClipPoints];
};

// Clips the incident face by the sides of the reference face. Face index 0-2 is an axis of a, 3-5 of b.
DS_INLINE bool face_contact(const Box& a, const Box& b, Vec3 t, int face, BoxScratch& scratch, Manifold& manifold) {
    DS_ASSERT(face >= 0 && face < 6);
    const bool a_is_reference = face < 3;
    const Box& reference = a_is_reference ? a : b;
    const Box& incident = a_is_reference ? b : a;
    const float hr[3] = {reference.half.x, reference.half.y, reference.half.z};
    const float hi[3] = {incident.half.x, incident.half.y, incident.half.z};
    const int rn = face % 3, ru = (rn + 1) % 3, rv = (rn + 2) % 3;
    const Vec3 towards = a_is_reference ? t : -t;
    const Vec3 n = dot(towards, reference.axis[rn]) > 0.f ? reference.axis[rn] : -reference.axis[rn];

    int in = 0;
    float most = -1.f, side = 1.f;
    for (int k = 0; k < 3; k++) {
        const float q = dot(n, incident.axis[k]);
        if (absolute(q) > most) {
            most = absolute(q);
            in = k;
            side = q > 0.f ? -1.f : 1.f;
        }
    }
    const int iu = (in + 1) % 3, iv = (in + 2) % 3;
    const Vec3 middle = incident.center + incident.axis[in] * (side * hi[in]);
    const Vec3 eu = incident.axis[iu] * hi[iu], ev = incident.axis[iv] * hi[iv];
    auto& polygon = scratch.polygon;
    polygon[0][0] = middle + eu + ev;
    polygon[0][1] = middle - eu + ev;
    polygon[0][2] = middle - eu - ev;
    polygon[0][3] = middle + eu - ev;
    int count = 4;
    for (int plane = 0; plane < 4; plane++) {
        const int k = plane < 2 ? ru : rv;
        const Vec3 axis = plane & 1 ? -reference.axis[k] : reference.axis[k];
        count = clip_polygon(polygon[plane & 1], count, axis, hr[k] + dot(axis, reference.center), polygon[~plane & 1]);
    }

    int below = 0;
    const float surface = dot(n, reference.center) + hr[rn];
    for (int k = 0; k < count; k++) {
        const float depth = surface - dot(n, polygon[0][k]);
        if (!(depth > 0.f)) continue;
        DS_ASSERT(below < kMaxClipPoints);
        scratch.points[below] = polygon[0][k] + n * (0.5f * depth);
        scratch.depths[below++] = depth;
    }
    if (below == 0) return false;
    manifold.normal = a_is_reference ? -n : n;
    keep_four_points(manifold, scratch.points, scratch.depths, below, reference.axis[ru], reference.axis[rv]);
    DS_ASSERT(has_points(manifold));
    return true;
}

DS_NOINLINE bool box_contact(const Box& a, const Box& b, BoxScratch& scratch, Manifold& manifold) {
    const float ha[3] = {a.half.x, a.half.y, a.half.z}, hb[3] = {b.half.x, b.half.y, b.half.z};
    const Vec3 t = b.center - a.center;
    BoxAxes& axes = scratch.axes;
    for (int i = 0; i < 3; i++) {
        axes.ta[i] = dot(t, a.axis[i]);
        axes.tb[i] = dot(t, b.axis[i]);
        for (int j = 0; j < 3; j++) {
            axes.r[i][j] = dot(a.axis[i], b.axis[j]);
            axes.ar[i][j] = absolute(axes.r[i][j]);
        }
    }
    const auto& ar = axes.ar;

    // The axis of least overlap, and the best of the axes that the result may use
    float least = -1e30f, best = -1e30f;
    int least_face = 0, face = 0;
    for (int i = 0; i < 3; i++) {
        const float s = absolute(axes.ta[i]) - (ha[i] + hb[0] * ar[i][0] + hb[1] * ar[i][1] + hb[2] * ar[i][2]);
        if (!(s < 0.f)) return false;
        if (s > least) least = s, least_face = i;
        if (s > best + kFaceMargin && may_part_along(a.axis[i], s)) best = s, face = i;
    }
    for (int i = 0; i < 3; i++) {
        const float s = absolute(axes.tb[i]) - (hb[i] + ha[0] * ar[0][i] + ha[1] * ar[1][i] + ha[2] * ar[2][i]);
        if (!(s < 0.f)) return false;
        if (s > least) least = s, least_face = 3 + i;
        if (s > best + kFaceMargin && may_part_along(b.axis[i], s)) best = s, face = 3 + i;
    }

    float best_edge = best + kEdgeMargin;
    int edge = -1;
    for (int i = 0; i < 3; i++) {
        const int i1 = (i + 1) % 3, i2 = (i + 2) % 3;
        for (int j = 0; j < 3; j++) {
            const int j1 = (j + 1) % 3, j2 = (j + 2) % 3;
            const float sine2 = 1.f - axes.r[i][j] * axes.r[i][j];
            if (sine2 < kParallelEdges) continue;
            const float reach = ha[i1] * ar[i2][j] + ha[i2] * ar[i1][j] + hb[j1] * ar[i][j2] + hb[j2] * ar[i][j1];
            const float s = absolute(axes.ta[i2] * axes.r[i1][j] - axes.ta[i1] * axes.r[i2][j]) - reach;
            if (s >= 0.f) return false;
            const float inverse = 1.f / square_root(sine2), separation = s * inverse;
            if (separation > best_edge && may_part_along(cross(a.axis[i], b.axis[j]) * inverse, separation))
                best_edge = separation, edge = i * 3 + j;
        }
    }
    if (edge >= 0) {
        edge_contact(a, b, t, edge / 3, edge % 3, -best_edge, axes, manifold);
        DS_ASSERT(has_points(manifold) && manifold.count == 1);
        return true;
    }
    return face_contact(a, b, t, face, scratch, manifold) || face_contact(a, b, t, least_face, scratch, manifold);
}

}  // namespace doorstep
