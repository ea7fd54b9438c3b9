// Draws the views of a world one tile after the other, on a CPU thread.
#pragma once

#include "render/raycast/tile.h"

namespace doorstep {

// A thread's scratch memory besides its stack.
template <class Limits>
struct DrawingMemory {
    BoxTable<Limits> boxes;
    int box_count;
    View<Limits> view;
    MeshPoints points;
    TriangleTable triangles[kMaxMeshes];
};

// Reads the agents and all other objects that are visible. Rows up to the next multiple of the lanes are empty.
template <FloatLanes Float, class Limits>
DS_INLINE void read_boxes(const WorldFields& fields, int64_t world, DrawingMemory<Limits>& memory) {
    int count = 0;
    for (int i = 0; i < object_count(fields); i++) {
        const bool visible = read_box(fields, world, i, count, memory.boxes);
        if (visible || i < fields.num_agents) count++;
    }
    memory.box_count = count;
    for (; count % Float::kLanes; count++) memory.boxes.kind[count] = DS_ENTITY_NONE;
}

template <FloatLanes Float, class Limits>
DS_INLINE void find_faces(const ViewsCall& call, DrawingMemory<Limits>& memory) {
    View<Limits>& view = memory.view;
    const WorldFields& fields = call.views.fields;
    int face = 0;
    for (int first = 0; first < memory.box_count; first += Float::kLanes) {
        SeenSides<Float> found;
        find_sides(view, memory.boxes, first, call.grid.all(), found);
        for (int lane = 0; lane < Float::kLanes; lane++) {
            const int box = first + lane;
            const uint32_t axes = found.axes_of(lane), around = found.around >> lane & 1u;
            if (!(axes | around)) continue;
            take_box(fields, memory.boxes, box, found, lane, view, face);
            face += count_bits(axes);
            DS_ASSERT(face < Limits::kFaces);  // the floor follows
            if (!is_mesh(fields, memory.boxes, box)) continue;
            const int mesh = mesh_of_agent(box, view.self);
            view.meshes |= 1u << mesh;
            view.meshes_around |= around << mesh;
        }
    }
    face += take_floor(view, face);
    view.faces.count = face;
    fill_lanes<Float>(view.faces);
}

template <FloatLanes Float, class Limits>
DS_INLINE void make_triangles(const MeshTable& mesh, DrawingMemory<Limits>& memory) {
    for (uint32_t meshes = memory.view.meshes; meshes;) {
        const int m = take_lowest_bit(meshes), box = agent_of_mesh(m, memory.view.self);
        for (int i = 0; i < kMeshPoints; i += Float::kLanes)
            place_points<Float>(memory.view.camera, memory.boxes, box, mesh, i, memory.points);
        for (int i = 0; i < kMeshTriangles; i += Float::kLanes)
            memory.triangles[m].make(Float(), mesh, memory.points, i);
    }
}

template <FloatLanes Float, class Limits>
DS_INLINE void draw_tile(const ViewsCall& call, const DrawingMemory<Limits>& memory, int column, int row,
                         int64_t first_pixel) {
    const PixelGrid& grid = call.grid;
    const int columns = grid.columns_of_tile(column), rows = grid.rows_of_tile(row);
    const PixelArea area = grid.tile(column, row);
    TileFaces<Limits> found;
    find_faces<Float>(memory.view, area, found);
    alignas(4) uint8_t marks[kMaxMeshes][kMeshMarks];
    for (uint32_t meshes = found.meshes; meshes;) {
        const int m = take_lowest_bit(meshes);
        for (int i = 0; i < kMeshMarks; i++)
            marks[m][i] = mark_triangles<Float>(memory.triangles[m], i * kMarkedTriangles, area);
    }
    for (int c = 0; c < columns; c += Float::kLanes) {
        Patch<Float, kTileSide> patch;
        patch.begin(Float::load(grid.right + column + c), grid.up + row);
        draw_faces(memory.view.faces, found, patch);
        const int count = smaller(Float::kLanes, columns - c);
        int64_t pixel = first_pixel + int64_t{row} * grid.width + column + c;
        if (!found.meshes) {
            for (int r = 0; r < rows; r++, pixel += grid.width)
                write_row<false>(memory.view, patch, r, found.floor, call.views.tensors, pixel, count);
            continue;
        }
        draw_meshes(*call.mesh, memory.view, found.meshes,
                    [&](int mesh) -> const TriangleTable& { return memory.triangles[mesh]; },
                    [&](int mesh) { return marks[mesh]; }, patch);
        for (int r = 0; r < rows; r++, pixel += grid.width)
            write_row<true>(memory.view, patch, r, found.floor, call.views.tensors, pixel, count);
    }
}

// The view of one agent.
template <FloatLanes Float, class Limits>
DS_INLINE void draw_view(const ViewsCall& call, int64_t world, int agent, DrawingMemory<Limits>& memory) {
    aim(call.views, world, agent, memory.view);
    if (can_look(memory.view.camera)) find_faces<Float>(call, memory);
    make_triangles<Float>(*call.mesh, memory);
    const PixelGrid& grid = call.grid;
    const int64_t first_pixel = (world * call.views.fields.num_agents + agent) * grid.height * grid.width;
    for (int row = 0; row < grid.height; row += kTileSide)
        for (int column = 0; column < grid.width; column += kTileSide)
            draw_tile<Float>(call, memory, column, row, first_pixel);
}

template <FloatLanes Float, class Limits>
DS_INLINE void draw_world(const ViewsCall& call, int64_t world, DrawingMemory<Limits>& memory) {
    read_boxes<Float>(call.views.fields, world, memory);
    for (int agent = 0; agent < call.views.fields.num_agents; agent++) draw_view<Float>(call, world, agent, memory);
}

// Draws all views of some worlds, eight pixels at a time, in the default float environment, which the simulator's
// threads have. In cpu_views.cpp, compiled for AVX2.
template <class Limits>
void draw_views_on_cpu(const ViewsCall& call, int64_t first_world, int64_t count, DrawingMemory<Limits>& memory);

}  // namespace doorstep
