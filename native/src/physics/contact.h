// A contact between two boxes: its geometry, and the solver's variables.
#pragma once

#include "math/vector.h"

namespace doorstep {

// The geometry. The normal points from b to a; points lie midway between the surfaces, world axes.
struct Manifold {
    Vec3 normal;
    int count;  // 1 to 4 points
    Vec3 point[4];
    float depth[4];  // > 0
};

// For assertions. The normal is an axis of a box, which is not a unit if users give a sleeping cube a bad rotation.
DS_INLINE bool has_points(const Manifold& manifold) {
    if (manifold.count < 1 || manifold.count > 4) return false;
    for (int i = 0; i < manifold.count; i++)
        if (!(manifold.depth[i] > 0.f)) return false;
    return true;
}

// Selects the four most extreme of `count` points in the plane of u and v. Depth is a weak tie-breaker, so that of two
// points at the same position the deeper one is kept.
DS_INLINE void keep_four_points(Manifold& manifold, const Vec3* points, const float* depths, int count, Vec3 u,
                                Vec3 v) {
    DS_ASSERT(count >= 1 && count <= 32);  // the bits of `taken`
    if (count <= 4) {
        manifold.count = count;
        for (int i = 0; i < count; i++) {
            manifold.point[i] = points[i];
            manifold.depth[i] = depths[i];
        }
        return;
    }
    manifold.count = 0;
    uint32_t taken = 0;
    for (int corner = 0; corner < 4; corner++) {
        const Vec3 direction = (corner & 1 ? u : -u) + (corner & 2 ? v : -v);
        int best = 0;
        float best_score = -1e30f;
        for (int i = 0; i < count; i++) {
            const float score = dot(direction, points[i]) + 0.01f * depths[i];
            if (score > best_score) {
                best_score = score;
                best = i;
            }
        }
        if (taken >> best & 1) continue;
        taken |= 1u << best;
        DS_ASSERT(best < count && manifold.count < 4);
        manifold.point[manifold.count] = points[best];
        manifold.depth[manifold.count++] = depths[best];
    }
}

}  // namespace doorstep
