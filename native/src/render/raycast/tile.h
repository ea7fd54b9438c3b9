// A tile of pixels: the surfaces that may be visible in it, the nearest one at every pixel, and the outputs.
#pragma once

#include "render/raycast/mesh.h"

namespace doorstep {

// The bit after the edges of a face is for the near plane.
constexpr int kNearEdge = kSideEdges;

// Faces that may be visible in a tile, in their order, without those behind a face that fills the tile.
template <class Limits>
struct TileFaces {
    uint8_t count;
    uint8_t meshes;            // bits of the meshes that may be visible
    bool floor;                // whether it may be visible
    uint8_t faces[Limits::kFaces];
    uint8_t edges[Limits::kFaces];  // bits of the edges that cross the tile; the others need no test
};

// Some faces and a tile.
template <FloatLanes Float>
struct FaceTest {
    uint32_t seen;                     // bits of lanes
    uint32_t crossing[kNearEdge + 1];  // bits of lanes, per edge
    float least[Float::kLanes], most[Float::kLanes];  // inverse depth

    DS_METHOD uint32_t edges_of(int lane) const {
        uint32_t edges = 0;
        for (int k = 0; k <= kNearEdge; k++) edges |= (crossing[k] >> lane & 1u) << k;
        return edges;
    }
};

template <FloatLanes Float, class Limits>
DS_INLINE FaceTest<Float> test_faces(const Faces<Limits>& faces, int first, const PixelArea& area) {
    FaceTest<Float> test;
    const Extremes<Float> inverse_depth = extremes_of(faces.inverse_depth.load(Float(), first), area);
    auto outside = bits_of(inverse_depth.most - Float(kLeastInverse));
    for (int k = 0; k < kSideEdges; k++) {
        const Extremes<Float> edge = extremes_of(faces.edges[k].load(Float(), first), area);
        outside = outside | bits_of(edge.most);
        test.crossing[k] = sign_bits(bits_of(edge.least));
    }
    test.crossing[kNearEdge] = lane_bits(Float(kMostInverse) < inverse_depth.most);
    test.seen = ~sign_bits(outside) & ((1u << Float::kLanes) - 1u);
    inverse_depth.least.store(test.least);
    inverse_depth.most.store(test.most);
    return test;
}

template <FloatLanes Float, class Limits>
DS_INLINE void find_faces(const View<Limits>& view, const PixelArea& area, TileFaces<Limits>& found) {
    const Faces<Limits>& faces = view.faces;
    float nearest[Limits::kFaces];  // inverse depth, per face found
    float cover = 0.f;              // least inverse depth of the nearest face that fills the tile
    int met = 0;
    DS_ROLLED
    for (int first = 0; first < faces.count; first += Float::kLanes) {
        const FaceTest<Float> test = test_faces<Float>(faces, first, area);
        for (uint32_t lanes = test.seen; lanes;) {
            const int lane = take_lowest_bit(lanes);
            const uint32_t edges = test.edges_of(lane);
            if (edges == 0 && faces.solid[first + lane]) cover = maximum(cover, test.least[lane]);
            DS_ASSERT(met < Limits::kFaces && first + lane < faces.count);
            found.faces[met] = static_cast<uint8_t>(first + lane);
            found.edges[met] = static_cast<uint8_t>(edges);
            nearest[met++] = test.most[lane];
        }
    }
    int kept = 0;
    uint32_t meshes = view.meshes_around;
    DS_ROLLED
    for (int i = 0; i < met; i++) {
        if (nearest[i] < cover) continue;
        const int face = found.faces[i];
        if (!faces.solid[face]) {
            const uint32_t mesh = faces.words[face] >> 24;
            DS_ASSERT(mesh < kMaxMeshes);
            meshes |= 1u << mesh;
            continue;
        }
        found.faces[kept] = found.faces[i];
        found.edges[kept++] = found.edges[i];
    }
    DS_ASSERT((meshes & ~view.meshes) == 0);
    found.count = static_cast<uint8_t>(kept);
    found.meshes = static_cast<uint8_t>(meshes);
    found.floor = kept > 0 && faces.words[found.faces[kept - 1]] == kFloorWord;  // the last of all faces
}

// ---- Pixels

// Float::kLanes columns of one or more rows. Normals are those of meshes, of any length.
template <FloatLanes Float, int Rows>
struct Patch {
    Float u, v[Rows];
    Float inverse_depth[Rows];
    typename Float::Bits words[Rows];
    Float normals[3][Rows];

    DS_METHOD void begin(Float columns, const float* up) {
        u = columns;
        for (int r = 0; r < Rows; r++) {
            v[r] = Float(up[r]);
            inverse_depth[r] = Float(kLeastInverse);
            words[r] = all_lanes(Float(), kSkyWord);
        }
    }
    DS_METHOD void begin_meshes() {
        for (int r = 0; r < Rows; r++) normals[0][r] = normals[1][r] = normals[2][r] = Float(0.f);
    }
};

// ---- The nearest surface

template <FloatLanes Float, int Rows, class Limits>
DS_INLINE void draw_face(const Faces<Limits>& faces, int face, uint32_t crossing, Patch<Float, Rows>& patch) {
    DS_ASSERT(face >= 0 && face < faces.count && crossing >> (kNearEdge + 1) == 0);
    const Linear<Float> plane = faces.inverse_depth.spread(Float(), face);
    const auto word = all_lanes(Float(), faces.words[face]);
    typename Float::Bits outside[Rows];
    for (int r = 0; r < Rows; r++) outside[r] = all_lanes(Float(), 0u);
    DS_ROLLED
    for (uint32_t edges = crossing; edges;) {
        const int k = take_lowest_bit(edges);
        const Linear<Float> edge = k == kNearEdge ? Linear<Float>{-plane.u, -plane.v, Float(kMostInverse) - plane.one}
                                                  : faces.edges[k].spread(Float(), face);
        for (int r = 0; r < Rows; r++) outside[r] = outside[r] | bits_of(edge.at(patch.u, patch.v[r]));
    }
    for (int r = 0; r < Rows; r++) {
        const Float inverse_depth = plane.at(patch.u, patch.v[r]);
        const auto nearer = without(bits_of(patch.inverse_depth[r] - inverse_depth), outside[r]);
        patch.inverse_depth[r] = select_signed(nearer, inverse_depth, patch.inverse_depth[r]);
        patch.words[r] = select_signed(nearer, word, patch.words[r]);
    }
}

template <FloatLanes Float, int Rows, class Limits>
DS_INLINE void draw_faces(const Faces<Limits>& faces, const TileFaces<Limits>& found, Patch<Float, Rows>& patch) {
    DS_ROLLED
    for (int i = 0; i < found.count; i++) draw_face(faces, found.faces[i], found.edges[i], patch);
}

template <FloatLanes Float, int Rows, class Triangles>
DS_INLINE void draw_triangle(const MeshTable& mesh, const Triangles& triangles, int i, const MeshFrame& frame,
                             Patch<Float, Rows>& patch) {
    DS_ASSERT(i >= 0 && i < kMeshTriangles);
    const Triangle<NarrowFloat> one = triangles.one(i);
    const auto spread = [](const Linear<NarrowFloat>& f) {
        return Linear<Float>{Float(f.u.v), Float(f.v.v), Float(f.one.v)};
    };
    const Linear<Float> plane = spread(one.inverse_depth);
    const Linear<Float> edges[3] = {spread(one.edges[0]), spread(one.edges[1]), spread(one.edges[2])};
    const auto word = all_lanes(Float(), word_of(frame.surface, mesh.materials[i]));
    for (int r = 0; r < Rows; r++) {
        const Float inverse_depth = plane.at(patch.u, patch.v[r]);
        const Float a = edges[0].at(patch.u, patch.v[r]), b = edges[1].at(patch.u, patch.v[r]),
                    c = edges[2].at(patch.u, patch.v[r]);
        const auto outside = bits_of(a) | bits_of(b) | bits_of(c) | bits_of(Float(kMostInverse) - inverse_depth);
        const auto nearer = without(bits_of(patch.inverse_depth[r] - inverse_depth), outside);
        if (!sign_bits(nearer)) continue;
        patch.inverse_depth[r] = select_signed(nearer, inverse_depth, patch.inverse_depth[r]);
        patch.words[r] = select_signed(nearer, word, patch.words[r]);
        Float own[3];
        for (int k = 0; k < 3; k++) {
            const float* normals = mesh.normal[k];
            own[k] = a * Float(normals[mesh.corners[0][i]]) + b * Float(normals[mesh.corners[1][i]]) +
                     c * Float(normals[mesh.corners[2][i]]);
        }
        const auto turned = [&](float x, float y, float z) {
            return own[0] * Float(x) + own[1] * Float(y) + own[2] * Float(z);
        };
        const Vec3& x = frame.axes[0];
        const Vec3& y = frame.axes[1];
        const Vec3& z = frame.axes[2];
        const Float normal[3] = {turned(x.x, y.x, z.x), turned(x.y, y.y, z.y), turned(x.z, y.z, z.z)};
        for (int k = 0; k < 3; k++) patch.normals[k][r] = select_signed(nearer, normal[k], patch.normals[k][r]);
    }
}

// Draws the marked triangles of a mesh; marks: kMeshMarks bytes, aligned to 4.
template <FloatLanes Float, int Rows, class Triangles>
DS_INLINE void draw_mesh(const MeshTable& mesh, const Triangles& triangles, const uint8_t* marks,
                         const MeshFrame& frame, Patch<Float, Rows>& patch) {
    DS_ROLLED
    for (int first = 0; first < kMeshTriangles; first += 32) {
        uint32_t bits;
        memcpy(&bits, marks + first / kMarkedTriangles, sizeof bits);
        DS_ROLLED
        while (bits) draw_triangle(mesh, triangles, first + take_lowest_bit(bits), frame, patch);
    }
}

// Draws some meshes; triangles(mesh) and marks(mesh) are theirs.
template <FloatLanes Float, int Rows, class Limits, class Triangles, class Marks>
DS_INLINE void draw_meshes(const MeshTable& table, const View<Limits>& view, uint32_t meshes,
                           const Triangles& triangles, const Marks& marks, Patch<Float, Rows>& patch) {
    patch.begin_meshes();
    DS_ROLLED
    while (meshes) {
        const int mesh = take_lowest_bit(meshes);
        DS_ASSERT(mesh < kMaxMeshes);
        draw_mesh(table, triangles(mesh), marks(mesh), view.frames[mesh], patch);
    }
}

// ---- Outputs

template <FloatLanes Float>
struct FloorPoint {
    Float x, y, footprint_x, footprint_y;
};

template <FloatLanes Float, class Limits>
DS_INLINE FloorPoint<Float> floor_point(const View<Limits>& view, Float depth, Float u, Float v) {
    const Camera& camera = view.camera;
    // Horizontal distance to the hit point
    const Float x = depth * (Float(camera.right.x) * u + (Float(camera.up.x) * v + Float(camera.forward.x)));
    const Float y = depth * (Float(camera.right.y) * u + (Float(camera.up.y) * v + Float(camera.forward.y)));
    const Float slope(view.shading.floor_slope);
    const auto footprint = [&](Float along, float right, float up) {
        return floor_footprint(depth, along * slope, right, camera.right.z, up, camera.up.z, view.shading.pixel);
    };
    return {Float(camera.origin.x) + x, Float(camera.origin.y) + y, footprint(x, camera.right.x, camera.up.x),
            footprint(y, camera.right.y, camera.up.y)};
}

template <FloatLanes Float>
DS_INLINE typename Float::Bits pack(Float red255, Float green255, Float blue255) {
    return byte_of(red255) | shift_left<8>(byte_of(green255)) | shift_left<16>(byte_of(blue255));
}

template <FloatLanes Float, class Limits>
DS_INLINE typename Float::Bits floor_colour(const View<Limits>& view, Float depth, Float u, Float v) {
    const FloorPoint<Float> at = floor_point(view, depth, u, v);
    const Float lines = floor_lines(at.x, at.y, at.footprint_x, at.footprint_y);
    const Colour floor = view.shading.floor, difference = view.shading.floor_lines;
    return pack(Float(floor.red) + lines * Float(difference.red), Float(floor.green) + lines * Float(difference.green),
                Float(floor.blue) + lines * Float(difference.blue));
}

template <FloatLanes Float>
DS_INLINE typename Float::Bits mesh_colour(typename Float::Bits word, Points<Float> normal) {
    const auto eye = equal(word & all_lanes(Float(), 0xFFFFFFu), all_lanes(Float(), uint32_t{kEyeMaterial}));
    const Float light = brightness(normal.x, normal.y, normal.z, Float(1.f));
    const auto component = [&](float body, float of_eye) {
        const Float value = select(eye, Float(of_eye), Float(body)) * light;
        return Float(255.f) * minimum(maximum(value, Float(0.f)), Float(1.f));
    };
    return pack(component(kAgentColour.red, kEyeColour.red), component(kAgentColour.green, kEyeColour.green),
                component(kAgentColour.blue, kEyeColour.blue));
}

template <FloatLanes Float, int Rows>
DS_INLINE Points<Float> mesh_normals(const Patch<Float, Rows>& patch, int r) {
    const Float x = patch.normals[0][r], y = patch.normals[1][r], z = patch.normals[2][r];
    const Float scale = Float(1.f) / square_root(x * x + y * y + z * z);
    return {x * scale, y * scale, z * scale};
}

// Writes a row of a patch. pixel: index of its first column in the tensors; Meshes: whether meshes may be visible.
template <bool Meshes, FloatLanes Float, int Rows, class Limits>
DS_INLINE void write_row(const View<Limits>& view, const Patch<Float, Rows>& patch, int r, bool floor,
                         const ViewTensors& tensors, int64_t pixel, int count) {
    DS_ASSERT(r >= 0 && r < Rows && pixel >= 0 && count >= 1 && count <= Float::kLanes);
    const auto word = patch.words[r];
    const auto is_there = Float(kLeastInverse) < patch.inverse_depth[r];
    const Float depth = zero_unless(is_there, Float(1.f) / patch.inverse_depth[r]);
    if (tensors.depth) store_first(depth, tensors.depth + pixel, count);
    const auto surface = shift_right<24>(word);
    const auto is_mesh = surface < all_lanes(Float(), uint32_t{kMaxMeshes});
    const bool any_mesh = Meshes && any(is_mesh);
    Points<Float> mesh_normal;
    if (any_mesh) mesh_normal = mesh_normals(patch, r);
    if (tensors.rgb) {
        auto colour = select(is_there, word, all_lanes(Float(), view.shading.sky));
        if (floor) {
            const auto is_floor = equal(word, all_lanes(Float(), kFloorWord));
            if (any(is_floor)) colour = select(is_floor, floor_colour(view, depth, patch.u, patch.v[r]), colour);
        }
        if (any_mesh) colour = select(is_mesh, mesh_colour(word, mesh_normal), colour);
        colour = colour | all_lanes(Float(), 0xFF000000u);
        store_first(colour, reinterpret_cast<uint32_t*>(tensors.rgb) + pixel, count);
    }
    if (tensors.segmentation) {
        const auto segmentation = gather(Float(), view.surfaces.segmentation, surface);
        store_halves(segmentation, reinterpret_cast<uint16_t*>(tensors.segmentation) + pixel, count);
    }
    if (tensors.normals) {
        Float normal[3];
        for (int k = 0; k < 3; k++) normal[k] = gather(Float(), view.surfaces.normals[k], surface);
        if (any_mesh) {
            normal[0] = select(is_mesh, mesh_normal.x, normal[0]);
            normal[1] = select(is_mesh, mesh_normal.y, normal[1]);
            normal[2] = select(is_mesh, mesh_normal.z, normal[2]);
        }
        store_triples(normal[0], normal[1], normal[2], tensors.normals + 3 * pixel, count);
    }
}

}  // namespace doorstep
