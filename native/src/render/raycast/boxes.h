// The boxes of a world as lanes, and their sides that face a camera.
#pragma once

#include "render/raycast/image_plane.h"
#include "render/scene/scene.h"

namespace doorstep {

// ---- The sizes of tables

// Worlds that play the reference's levels only have tables of their own, because the fewer bytes of shared memory a
// view needs, the more views a GPU draws at a time.

constexpr int kMaxMeshes = DS_MAX_AGENTS - 1;

// Surfaces are numbered: meshes, then these, then sides of boxes by their row in Faces.
enum Surface : uint32_t { kSkySurface = kMaxMeshes, kFloorSurface, kFirstFaceSurface };

template <int Objects>
struct SceneLimits {
    static constexpr int kObjects = Objects;
    static constexpr int kBoxes = (kObjects + 7) / 8 * 8;            // whole lanes
    static constexpr int kFaces = (3 * kObjects + 1 + 7) / 8 * 8;    // three sides of every box, and the floor
    static constexpr int kSurfaces = kFirstFaceSurface + kFaces;
    static_assert(kSurfaces <= 256, "the number of a surface fits into the highest byte of a pixel's word");
};

using ReferenceScene = SceneLimits<31>;
using LevelScene = SceneLimits<kMaxObjects>;

// Calls work(limits) with the smallest that worlds of these capacities fit; returns its result.
template <class Work>
DS_INLINE auto with_limits(const WorldFields& fields, const Work& work) {
    DS_ASSERT(object_count(fields) <= LevelScene::kObjects);
    return object_count(fields) <= ReferenceScene::kObjects ? work(ReferenceScene()) : work(LevelScene());
}

// ---- Boxes

// Where an agent's box decides visibility, its mesh is not tested, so the box must not be too small. Metres.
constexpr float kMeshMargin = 1e-3f;

// Least distance of the camera in front of a visible side, metres.
constexpr float kFacing = 1e-6f;

// Objects of one world.
template <class Limits>
struct BoxTable {
    alignas(32) float centre[3][Limits::kBoxes];
    alignas(32) float axis[3][3][Limits::kBoxes];  // axis, component
    alignas(32) float half[3][Limits::kBoxes];
    alignas(32) int32_t kind[Limits::kBoxes];  // DS_ENTITY_NONE: invisible
    alignas(32) int32_t slot[Limits::kBoxes];

    DS_METHOD Vec3 axis_of(int k, int box) const { return {axis[k][0][box], axis[k][1][box], axis[k][2][box]}; }
    DS_METHOD Vec3 centre_of(int box) const { return {centre[0][box], centre[1][box], centre[2][box]}; }
};

// Reads an object into a row; false, and the row is empty, if it is invisible. Agents have the rows of their numbers.
template <class Limits>
DS_INLINE bool read_box(const WorldFields& fields, int64_t world, int index, int row, BoxTable<Limits>& boxes) {
    DS_ASSERT(row >= 0 && row < Limits::kBoxes && (row == index || (row < index && row >= fields.num_agents)));
    boxes.kind[row] = DS_ENTITY_NONE;
    const Object object = object_of(fields, world, index);
    if (!can_be_seen(object)) return false;
    const auto store = [row](Vec3 from, float (&to)[3][Limits::kBoxes]) {
        to[0][row] = from.x;
        to[1][row] = from.y;
        to[2][row] = from.z;
    };
    store(object.centre, boxes.centre);
    store(object.axis_x, boxes.axis[0]);
    store(object.axis_y, boxes.axis[1]);
    store(object.axis_z, boxes.axis[2]);
    const float margin = object.is_mesh ? kMeshMargin : 0.f;
    store(object.half + Vec3{margin, margin, margin}, boxes.half);
    boxes.kind[row] = object.kind;
    boxes.slot[row] = object.slot;
    return true;
}

// A box relative to the camera, with its axes flipped so that the camera is on the positive side of each.
template <FloatLanes Float>
struct FacingBox {
    Linear<Float> along[3];  // component of the rays along the axis
    Float near[3], far[3];   // the planes of its sides along that axis, relative to the camera
    Float turn[3];           // -1 if the axis is flipped, else 1
    uint32_t present;        // bits of the lanes with a box
};

template <FloatLanes Float, class Limits>
DS_INLINE FacingBox<Float> load_facing(const Camera& camera, const BoxTable<Limits>& boxes, int first) {
    FacingBox<Float> box;
    const Float x = Float(camera.origin.x) - Float::load(boxes.centre[0] + first);
    const Float y = Float(camera.origin.y) - Float::load(boxes.centre[1] + first);
    const Float z = Float(camera.origin.z) - Float::load(boxes.centre[2] + first);
    for (int k = 0; k < 3; k++) {
        const Float ax = Float::load(boxes.axis[k][0] + first), ay = Float::load(boxes.axis[k][1] + first);
        const Float az = Float::load(boxes.axis[k][2] + first), half = Float::load(boxes.half[k] + first);
        const Float position = x * ax + y * ay + z * az, distance = absolute(position);
        box.turn[k] = select(position < Float(0.f), Float(-1.f), Float(1.f));
        box.along[k] = along(camera, ax, ay, az) * box.turn[k];
        box.near[k] = half - distance;
        box.far[k] = -half - distance;
    }
    box.present = lane_bits(is_nonzero(Float(), boxes.kind + first));
    return box;
}

constexpr int kSideEdges = 4;

// The side of a box at the positive end of an axis: visible where all edges are positive, at this inverse depth.
template <FloatLanes Float>
struct Side {
    Linear<Float> inverse_depth, edges[kSideEdges];
};

// Neighbouring sides have exactly negated edge functions, so that no ray passes between them.
template <FloatLanes Float>
DS_INLINE Side<Float> side_of(const FacingBox<Float>& box, int axis) {
    Side<Float> side;
    side.inverse_depth = box.along[axis] * (Float(1.f) / box.near[axis]);
    const Linear<Float> forward = box.along[axis];
    const Float plane = box.near[axis];
    for (int k = 0; k < 2; k++) {
        const int other = (axis + 1 + k) % 3;
        const Linear<Float> across = box.along[other] * plane;
        side.edges[2 * k] = across - forward * box.near[other];
        side.edges[2 * k + 1] = forward * box.far[other] - across;
    }
    return side;
}

// Bits of the lanes in which the camera is in front of the side, and the side is not outside the area.
template <FloatLanes Float>
DS_INLINE uint32_t lanes_seen(const FacingBox<Float>& box, int axis, const Side<Float>& side, const PixelArea& area) {
    auto outside = bits_of(extremes_of(side.inverse_depth, area).most - Float(kLeastInverse));
    for (const Linear<Float>& edge : side.edges) outside = outside | bits_of(extremes_of(edge, area).most);
    const uint32_t facing = lane_bits(box.near[axis] < Float(-kFacing));
    return box.present & facing & ~sign_bits(outside);
}

// Bits of the lanes in which the camera is inside the box, so that no side faces it.
template <FloatLanes Float>
DS_INLINE uint32_t lanes_around(const FacingBox<Float>& box) {
    const Float limit(-kFacing);
    return box.present & lane_bits((limit <= box.near[0]) & (limit <= box.near[1]) & (limit <= box.near[2]));
}

}  // namespace doorstep
