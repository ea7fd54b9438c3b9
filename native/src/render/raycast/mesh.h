// The agents' mesh: its points relative to the camera, and its triangles on the image plane.
#pragma once

#include "render/raycast/view.h"
#include "render/scene/meshes.h"

namespace doorstep {

constexpr int kMeshPoints = 336;     // at most, a multiple of 8
constexpr int kMeshTriangles = 672;  // at most, a multiple of 32
constexpr int kMarkedTriangles = 8;  // triangles per byte of marks
constexpr int kMeshMarks = kMeshTriangles / kMarkedTriangles;

// A mesh as the kernels read it; plain data. Unused entries are points and triangles that are never visible.
struct MeshTable {
    alignas(32) float position[3][kMeshPoints];
    alignas(32) float normal[3][kMeshPoints];
    alignas(32) uint32_t corners[3][kMeshTriangles];
    uint32_t materials[kMeshTriangles];
};

// The ray caster's inputs and outputs; plain data, a kernel's parameter.
struct ViewsCall {
    Views views;
    PixelGrid grid;
    const MeshTable* mesh;
};

// Its points relative to the camera: right, forward, up.
struct MeshPoints {
    alignas(32) float right[kMeshPoints];
    alignas(32) float forward[kMeshPoints];
    alignas(32) float up[kMeshPoints];
};

// A few points at once.
template <FloatLanes Float>
struct Points {
    Float x, y, z;
};
template <FloatLanes Float>
DS_INLINE Points<Float> operator-(Points<Float> a, Points<Float> b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <FloatLanes Float>
DS_INLINE Points<Float> cross(Points<Float> a, Points<Float> b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
// The component of pixels' rays along a direction in camera axes.
template <FloatLanes Float>
DS_INLINE Linear<Float> along(Points<Float> direction) {
    return {direction.x, direction.z, direction.y};
}

template <FloatLanes Float, class Limits>
DS_INLINE void place_points(const Camera& camera, const BoxTable<Limits>& boxes, int box, const MeshTable& mesh,
                            int first, MeshPoints& points) {
    const auto seen = [&](Vec3 a) { return Vec3{dot(a, camera.right), dot(a, camera.forward), dot(a, camera.up)}; };
    const Vec3 centre = seen(boxes.centre_of(box) - camera.origin);
    Vec3 axes[3];
    for (int k = 0; k < 3; k++) axes[k] = seen(boxes.axis_of(k, box) * (boxes.half[k][box] - kMeshMargin));
    const Float px = Float::load(mesh.position[0] + first), py = Float::load(mesh.position[1] + first);
    const Float pz = Float::load(mesh.position[2] + first);
    const auto sum = [&](float c, float x, float y, float z) {
        return Float(c) + (Float(x) * px + Float(y) * py + Float(z) * pz);
    };
    sum(centre.x, axes[0].x, axes[1].x, axes[2].x).store(points.right + first);
    sum(centre.y, axes[0].y, axes[1].y, axes[2].y).store(points.forward + first);
    sum(centre.z, axes[0].z, axes[1].z, axes[2].z).store(points.up + first);
}

// Triangles that face the camera are visible where all edges are positive; edges[i] is opposite to corner i and weights
// its normal.
template <FloatLanes Float>
struct Triangle {
    Linear<Float> inverse_depth, edges[3];
};

template <FloatLanes Float>
DS_INLINE Points<Float> corner(const MeshTable& mesh, const MeshPoints& points, int which, int first) {
    const auto index = load_bits(Float(), mesh.corners[which] + first);
    return {gather(Float(), points.right, index), gather(Float(), points.forward, index),
            gather(Float(), points.up, index)};
}

// Neighbours have exactly negated edge functions. A triangle that faces away is visible nowhere.
template <FloatLanes Float>
DS_INLINE Triangle<Float> triangle_of(const MeshTable& mesh, const MeshPoints& points, int first) {
    constexpr float kEdgeOn = 1e-9f;
    const Points<Float> a = corner<Float>(mesh, points, 0, first), b = corner<Float>(mesh, points, 1, first),
                        c = corner<Float>(mesh, points, 2, first);
    const Points<Float> normal = cross(b - a, c - a);
    const Float distance = normal.x * a.x + normal.y * a.y + normal.z * a.z;
    Triangle<Float> triangle{along(normal) * (Float(1.f) / distance),
                             {along(cross(c, b)), along(cross(a, c)), along(cross(b, a))}};
    const auto faces = distance < Float(-kEdgeOn);
    Linear<Float>& plane = triangle.inverse_depth;
    plane = {zero_unless(faces, plane.u), zero_unless(faces, plane.v), zero_unless(faces, plane.one)};
    return triangle;
}

// Computes triangles from the points when they are needed.
struct PointTriangles {
    const MeshTable* mesh;
    const MeshPoints* points;

    template <FloatLanes Float>
    DS_METHOD Triangle<Float> load(Float, int first) const {
        return triangle_of<Float>(*mesh, *points, first);
    }
    DS_METHOD Triangle<NarrowFloat> one(int i) const { return triangle_of<NarrowFloat>(*mesh, *points, i); }
};

// Reads triangles computed before.
struct TriangleTable {
    LinearTable<kMeshTriangles> inverse_depth, edges[3];

    template <FloatLanes Float>
    DS_METHOD void make(Float, const MeshTable& mesh, const MeshPoints& points, int first) {
        const Triangle<Float> triangle = triangle_of<Float>(mesh, points, first);
        inverse_depth.store(triangle.inverse_depth, first);
        for (int k = 0; k < 3; k++) edges[k].store(triangle.edges[k], first);
    }
    template <FloatLanes Float>
    DS_METHOD Triangle<Float> load(Float, int first) const {
        return {inverse_depth.load(Float(), first),
                {edges[0].load(Float(), first), edges[1].load(Float(), first), edges[2].load(Float(), first)}};
    }
    DS_METHOD Triangle<NarrowFloat> one(int i) const { return load(NarrowFloat(), i); }
};

// Bits of the lanes whose triangle may be visible in a tile.
template <FloatLanes Float>
DS_INLINE uint32_t lanes_seen(const Triangle<Float>& triangle, const PixelArea& area) {
    auto outside = bits_of(extremes_of(triangle.inverse_depth, area).most - Float(kLeastInverse));
    for (const Linear<Float>& edge : triangle.edges) outside = outside | bits_of(extremes_of(edge, area).most);
    return ~sign_bits(outside) & ((1u << Float::kLanes) - 1u);
}

// A bit per triangle, of kMarkedTriangles from `first` on.
template <FloatLanes Float, class Triangles>
DS_INLINE uint8_t mark_triangles(const Triangles& triangles, int first, const PixelArea& area) {
    uint32_t marks = 0;
    DS_ROLLED
    for (int i = 0; i < kMarkedTriangles; i += Float::kLanes)
        marks |= lanes_seen(triangles.load(Float(), first + i), area) << i;
    return static_cast<uint8_t>(marks);
}

}  // namespace doorstep
