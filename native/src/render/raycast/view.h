// One view before its pixels: the camera, the visible sides, and the properties of their surfaces.
#pragma once

#include "render/cameras/renderers.h"
#include "render/raycast/boxes.h"
#include "render/scene/look.h"

namespace doorstep {

// A pixel's word: its surface in the highest byte; below, red, green and blue from the lowest byte on, or the material
// of a mesh.
DS_INLINE uint32_t word_of(uint32_t surface, uint32_t below) {
    DS_ASSERT(surface >> 8 == 0 && below >> 24 == 0);
    return surface << 24 | below;
}
constexpr uint32_t kSkyWord = kSkySurface << 24, kFloorWord = kFloorSurface << 24;

// Bits of round(255 * value) for 0 <= value <= 1, above other bits: adding 2^23 leaves no fraction.
template <FloatLanes Float>
DS_INLINE typename Float::Bits byte_of(Float value255) {
    return bits_of(value255 + Float(8388608.f)) & all_lanes(Float(), 255u);
}
DS_INLINE float clamped255(float value) { return 255.f * minimum(maximum(value, 0.f), 1.f); }
DS_INLINE uint32_t pack(Colour colour) {
    return byte_of(NarrowFloat(clamped255(colour.red))).v | byte_of(NarrowFloat(clamped255(colour.green))).v << 8 |
           byte_of(NarrowFloat(clamped255(colour.blue))).v << 16;
}
DS_INLINE Colour operator*(Colour colour, float by) { return {colour.red * by, colour.green * by, colour.blue * by}; }

// Flat surfaces in front of the camera, as lanes.
template <class Limits>
struct Faces {
    LinearTable<Limits::kFaces> inverse_depth;
    LinearTable<Limits::kFaces> edges[kSideEdges];
    alignas(32) int32_t solid[Limits::kFaces];  // 0 for the box around a mesh
    uint32_t words[Limits::kFaces];
    int32_t count;
};

// The outputs of a surface except its colour.
template <class Limits>
struct Surfaces {
    uint32_t segmentation[Limits::kSurfaces];  // kind, slot << 8
    float normals[3][Limits::kSurfaces];

    DS_METHOD void set(uint32_t surface, int32_t kind, int32_t slot, Vec3 normal) {
        DS_ASSERT(surface < Limits::kSurfaces);
        segmentation[surface] = segmentation_of(kind, slot);
        normals[0][surface] = normal.x;
        normals[1][surface] = normal.y;
        normals[2][surface] = normal.z;
    }
};

// Shading constants of a view.
struct Shading {
    Colour floor, floor_lines;  // lit, times 255; the lines as difference
    float floor_slope;          // -1 / height of the camera
    float pixel;                // a pixel's side at depth 1
    uint32_t sky;               // colour
};

DS_INLINE Shading shading_of(const Camera& camera, const CameraRig& rig) {
    const float light = brightness(NarrowFloat(0.f), NarrowFloat(0.f), NarrowFloat(1.f), NarrowFloat(1.f)).v;
    const Colour line = kFloorLineColour, floor = kFloorColour;
    return {floor * (255.f * light),
            Colour{line.red - floor.red, line.green - floor.green, line.blue - floor.blue} * (255.f * light),
            -1.f / camera.origin.z,
            2.f * rig.tangent_y / static_cast<float>(rig.height),
            pack(kSkyColour)};
}

// A mesh in the world, for its normals: axes divided by half extents, because the mesh is scaled to its box.
struct MeshFrame {
    Vec3 axes[3];
    uint32_t surface;
};

template <class Limits>
struct View {
    Camera camera;
    Shading shading;
    int32_t self;           // the agent that carries the camera
    uint32_t meshes;        // bits of the meshes that may be visible
    uint32_t meshes_around; // those whose box contains the camera
    Faces<Limits> faces;
    Surfaces<Limits> surfaces;
    MeshFrame frames[kMaxMeshes];
};

// Meshes are numbered by their agents, without the camera's own.
DS_INLINE int mesh_of_agent(int agent, int self) { return agent - (agent > self ? 1 : 0); }
DS_INLINE int agent_of_mesh(int mesh, int self) { return mesh + (mesh >= self ? 1 : 0); }

constexpr int kTileSide = 8;  // pixels

DS_INLINE int smaller(int a, int b) { return a < b ? a : b; }

// Positions of pixels, the same for every view: right[column] and up[row].
struct PixelGrid {
    const float* right;
    const float* up;
    int32_t width, height;

    DS_METHOD PixelArea area(int column, int row, int columns, int rows) const {
        DS_ASSERT(column >= 0 && columns > 0 && column + columns <= width);
        DS_ASSERT(row >= 0 && rows > 0 && row + rows <= height);
        return {right[column], right[column + columns - 1], up[row + rows - 1], up[row]};
    }
    DS_METHOD PixelArea all() const { return area(0, 0, width, height); }
    // The tile with this first pixel, or the part of it inside the picture.
    DS_METHOD int columns_of_tile(int column) const { return smaller(kTileSide, width - column); }
    DS_METHOD int rows_of_tile(int row) const { return smaller(kTileSide, height - row); }
    DS_METHOD PixelArea tile(int column, int row) const {
        return area(column, row, columns_of_tile(column), rows_of_tile(row));
    }
};

// ---- Setup

template <class Limits>
DS_INLINE void aim(const Views& views, int64_t world, int agent, View<Limits>& view) {
    DS_ASSERT(world >= 0 && world < views.num_worlds && agent >= 0 && agent < views.fields.num_agents);
    view.camera = camera_of_agent(views.rig, views.fields.body_positions.vector(world, agent),
                                  views.fields.body_rotations.quaternion(world, agent));
    view.shading = shading_of(view.camera, views.rig);
    view.self = agent;
    view.meshes = view.meshes_around = 0;
    view.faces.count = 0;
    view.surfaces.set(kSkySurface, DS_ENTITY_NONE, 0, {0.f, 0.f, 0.f});
    view.surfaces.set(kFloorSurface, kFloorKind, 0, {0.f, 0.f, 1.f});
}

// The parameters of a side, lane by lane.
template <FloatLanes Float>
struct SideLanes {
    static constexpr int kNumbers = 3 * (1 + kSideEdges);
    float numbers[kNumbers][Float::kLanes];
    float turn[Float::kLanes];

    DS_METHOD void set(const Side<Float>& side, Float turned) {
        store(side.inverse_depth, 0);
        for (int k = 0; k < kSideEdges; k++) store(side.edges[k], 3 + 3 * k);
        turned.store(turn);
    }
    template <class Limits>
    DS_METHOD void put(int lane, Faces<Limits>& faces, int face) const {
        DS_ASSERT(lane >= 0 && lane < Float::kLanes && face >= 0 && face < Limits::kFaces);
        put(lane, 0, faces.inverse_depth, face);
        for (int k = 0; k < kSideEdges; k++) put(lane, 3 + 3 * k, faces.edges[k], face);
    }

private:
    DS_METHOD void store(const Linear<Float>& function, int row) {
        function.u.store(numbers[row]);
        function.v.store(numbers[row + 1]);
        function.one.store(numbers[row + 2]);
    }
    template <int Count>
    DS_METHOD void put(int lane, int row, LinearTable<Count>& table, int face) const {
        table.u[face] = numbers[row][lane];
        table.v[face] = numbers[row + 1][lane];
        table.one[face] = numbers[row + 2][lane];
    }
};

// Visible sides of some boxes.
template <FloatLanes Float>
struct SeenSides {
    SideLanes<Float> sides[3];
    uint32_t seen[3];  // bits of lanes
    uint32_t around;   // lanes whose box contains the camera

    DS_METHOD uint32_t axes_of(int lane) const {
        return (seen[0] >> lane & 1u) | (seen[1] >> lane & 1u) << 1 | (seen[2] >> lane & 1u) << 2;
    }
};

template <FloatLanes Float, class Limits>
DS_INLINE void find_sides(const View<Limits>& view, const BoxTable<Limits>& boxes, int first, const PixelArea& area,
                          SeenSides<Float>& found) {
    const FacingBox<Float> box = load_facing<Float>(view.camera, boxes, first);
    const uint32_t self = static_cast<uint32_t>(view.self - first);
    const uint32_t others = self < Float::kLanes ? ~(1u << self) : ~0u;
    for (int axis = 0; axis < 3; axis++) {
        const Side<Float> side = side_of(box, axis);
        found.seen[axis] = lanes_seen(box, axis, side, area) & others;
        found.sides[axis].set(side, box.turn[axis]);
    }
    found.around = lanes_around(box) & others;
}

DS_INLINE Colour shaded(int32_t kind, Vec3 normal) {
    const NarrowFloat x(normal.x), y(normal.y), z(normal.z);
    const float light = brightness(x, y, z, NarrowFloat(1.f)).v;
    return colour_of_kind(kind) * light;
}

template <class Limits>
DS_INLINE bool is_mesh(const WorldFields& fields, const BoxTable<Limits>& boxes, int box) {
    return has_mesh(fields, box, boxes.kind[box]);
}

// Appends the visible sides of a box to the faces, from `face` on.
template <FloatLanes Float, class Limits>
DS_INLINE void take_sides(const WorldFields& fields, const BoxTable<Limits>& boxes, int box,
                          const SeenSides<Float>& found, int lane, View<Limits>& view, int face) {
    DS_ASSERT(box >= 0 && box < object_count(fields) && face >= 0);
    const bool mesh = is_mesh(fields, boxes, box);
    const uint32_t mesh_surface = static_cast<uint32_t>(mesh_of_agent(box, view.self));
    DS_ROLLED
    for (uint32_t axes = found.axes_of(lane); axes; face++) {
        const int axis = take_lowest_bit(axes);
        found.sides[axis].put(lane, view.faces, face);
        const Vec3 normal = boxes.axis_of(axis, box) * found.sides[axis].turn[lane];
        view.faces.solid[face] = !mesh;
        const uint32_t surface = kFirstFaceSurface + static_cast<uint32_t>(face);
        view.faces.words[face] =
            mesh ? word_of(mesh_surface, 0) : word_of(surface, pack(shaded(boxes.kind[box], normal)));
        view.surfaces.set(surface, boxes.kind[box], boxes.slot[box], normal);
    }
}

// The frame and the surface of a mesh that may be visible.
template <class Limits>
DS_INLINE void take_mesh(const BoxTable<Limits>& boxes, int box, int mesh, View<Limits>& view) {
    DS_ASSERT(mesh >= 0 && mesh < kMaxMeshes && box != view.self);
    const uint32_t surface = static_cast<uint32_t>(mesh);
    for (int k = 0; k < 3; k++)
        view.frames[mesh].axes[k] = boxes.axis_of(k, box) * (1.f / (boxes.half[k][box] - kMeshMargin));
    view.frames[mesh].surface = surface;
    view.surfaces.set(surface, boxes.kind[box], boxes.slot[box], {0.f, 0.f, 0.f});
}

// Takes what is visible of a box: its sides, from `face` on, and its mesh.
template <FloatLanes Float, class Limits>
DS_INLINE void take_box(const WorldFields& fields, const BoxTable<Limits>& boxes, int box,
                        const SeenSides<Float>& found, int lane, View<Limits>& view, int face) {
    take_sides(fields, boxes, box, found, lane, view, face);
    if (is_mesh(fields, boxes, box)) take_mesh(boxes, box, mesh_of_agent(box, view.self), view);
}

// Appends the floor to the faces; returns their new number.
template <class Limits>
DS_INLINE int take_floor(View<Limits>& view, int face) {
    const float height = view.camera.origin.z;
    if (!(height > kFacing)) return 0;
    DS_ASSERT(face >= 0 && face < Limits::kFaces);
    const NarrowFloat zero(0.f), one(1.f);
    const Linear<NarrowFloat> down = along(view.camera, zero, zero, one);
    view.faces.inverse_depth.store(down * NarrowFloat(-1.f / height), face);
    for (auto& edge : view.faces.edges) edge.store(Linear<NarrowFloat>{zero, zero, one}, face);
    view.faces.solid[face] = 1;
    view.faces.words[face] = kFloorWord;
    return 1;
}

// Faces up to the next multiple of the lanes are invisible.
template <FloatLanes Float, class Limits>
DS_INLINE void fill_lanes(Faces<Limits>& faces) {
    DS_ASSERT(faces.count >= 0 && faces.count <= Limits::kFaces);
    const NarrowFloat zero(0.f);
    for (int face = faces.count; face % Float::kLanes; face++) {
        faces.inverse_depth.store(Linear<NarrowFloat>{zero, zero, zero}, face);
        for (auto& edge : faces.edges) edge.store(Linear<NarrowFloat>{zero, zero, zero}, face);
        faces.solid[face] = 0;
    }
}

}  // namespace doorstep
