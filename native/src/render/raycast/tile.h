// A tile of pixels and the surfaces that may be visible in it.
#pragma once

#include "render/raycast/view.h"

namespace doorstep {

constexpr int kTileSide = 8;  // pixels

DS_INLINE int smaller(int a, int b) { return a < b ? a : b; }

// The bit after the edges of a face is for the near plane.
constexpr int kNearEdge = kSideEdges;

// Faces that may be visible in a tile, in their order, without those behind a face that fills the tile.
struct TileFaces {
    uint8_t count;
    uint8_t meshes;            // bits of the meshes that may be visible
    bool floor;                // whether it may be visible
    uint8_t faces[kMaxFaces];
    uint8_t edges[kMaxFaces];  // bits of the edges that cross the tile; the others need no test
};

// Some faces and a tile.
template <class Float>
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

template <class Float>
DS_INLINE FaceTest<Float> test_faces(const Faces& faces, int first, const PixelArea& area) {
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

template <class Float>
DS_INLINE void find_faces(const View& view, const PixelArea& area, TileFaces& found) {
    const Faces& faces = view.faces;
    float nearest[kMaxFaces];  // inverse depth, per face found
    float cover = 0.f;         // least inverse depth of the nearest face that fills the tile
    int met = 0;
    DS_ROLLED
    for (int first = 0; first < faces.count; first += Float::kLanes) {
        const FaceTest<Float> test = test_faces<Float>(faces, first, area);
        for (uint32_t lanes = test.seen; lanes;) {
            const int lane = take_lowest_bit(lanes);
            const uint32_t edges = test.edges_of(lane);
            if (edges == 0 && faces.solid[first + lane]) cover = maximum(cover, test.least[lane]);
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
            meshes |= 1u << ((faces.words[face] >> 24) - kFirstMeshSurface);
            continue;
        }
        found.faces[kept] = found.faces[i];
        found.edges[kept++] = found.edges[i];
    }
    found.count = static_cast<uint8_t>(kept);
    found.meshes = static_cast<uint8_t>(meshes);
    found.floor = kept > 0 && faces.words[found.faces[kept - 1]] == kFloorWord;  // the last of all faces
}

}  // namespace doorstep
