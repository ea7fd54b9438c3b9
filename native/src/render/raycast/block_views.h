// A kernel's work on its views, as a template over a Block: CUDA's, or one that the tests emulate on the host.
//
// A Block has index(), count() (blocks of the grid) and each(stage), which calls stage(share) for the share of every
// thread and returns when all are done. A block draws one view at a time, several tiles at a time; their records are in
// shared memory.
#pragma once

#include "render/raycast/tile.h"

namespace doorstep {

constexpr int kViewThreads = 128;
// Blocks that fit a multiprocessor: its registers, or with levels its shared memory.
constexpr int kViewBlocks = 8, kLevelViewBlocks = 4;

// The items of a stage that a thread processes: first, first + stride, ...
struct ViewShare {
    int first, stride;
};

template <class Limits>
struct BlockTile {
    TileFaces<Limits> faces;
    int16_t column, row;  // its first pixel
};

// Start of the shared memory. The tiles, MeshPoints per mesh, and kMeshMarks bytes per tile and mesh follow.
template <class Limits>
struct BlockViewMemory {
    BoxTable<Limits> boxes;
    View<Limits> view;
    uint8_t axes[Limits::kBoxes];    // bits of the box's visible sides
    uint8_t around[Limits::kBoxes];  // 1: the camera is inside
};

constexpr int kMostBlockTiles = 32, kLeastBlockTiles = 8;  // that a block draws at a time
// Shared memory that a block can have on every supported GPU.
constexpr int kLeastSharedBytes = 64 * 1024;

template <class Limits>
DS_INLINE constexpr int view_block_bytes(int num_agents, int tiles) {
    static_assert(kLeastBlockTiles * sizeof(BlockTile<Limits>) % alignof(MeshPoints) == 0);
    const int meshes = num_agents - 1;
    return static_cast<int>(sizeof(BlockViewMemory<Limits>)) + tiles * static_cast<int>(sizeof(BlockTile<Limits>)) +
           meshes * (static_cast<int>(sizeof(MeshPoints)) + tiles * kMeshMarks);
}

// Tiles that a block draws at a time. The meshes of many agents leave room for fewer.
template <class Limits>
DS_INLINE constexpr int block_tiles(int num_agents) {
    if constexpr (view_block_bytes<Limits>(DS_MAX_AGENTS, kMostBlockTiles) <= kLeastSharedBytes) return kMostBlockTiles;
    static_assert(view_block_bytes<Limits>(DS_MAX_AGENTS, kLeastBlockTiles) <= kLeastSharedBytes);
    int tiles = kMostBlockTiles;
    while (view_block_bytes<Limits>(num_agents, tiles) > kLeastSharedBytes) tiles /= 2;
    return tiles;
}

// The view that a block is drawing.
template <class Limits>
struct BlockView {
    const ViewsCall& call;
    BlockViewMemory<Limits>& memory;
    int most_tiles;  // at a time
    int64_t world;
    int agent;

    DS_METHOD const WorldFields& fields() const { return call.views.fields; }
    DS_METHOD int num_meshes() const { return fields().num_agents - 1; }
    DS_METHOD BlockTile<Limits>* tiles() const { return reinterpret_cast<BlockTile<Limits>*>(&memory + 1); }
    DS_METHOD MeshPoints* points(int mesh) const {
        DS_ASSERT(mesh >= 0 && mesh <= num_meshes());
        return reinterpret_cast<MeshPoints*>(tiles() + most_tiles) + mesh;
    }
    DS_METHOD uint8_t* marks(int tile, int mesh) const {
        DS_ASSERT(tile >= 0 && tile < most_tiles && mesh >= 0 && mesh < num_meshes());
        return reinterpret_cast<uint8_t*>(points(num_meshes())) + (tile * num_meshes() + mesh) * kMeshMarks;
    }
    DS_METHOD PointTriangles triangles(int mesh) const { return {call.mesh, points(mesh)}; }
    DS_METHOD PixelArea area_of(const BlockTile<Limits>& tile) const { return call.grid.tile(tile.column, tile.row); }
};

// ---- Stages: the threads' work between two barriers

template <class Limits>
DS_INLINE void read_view(const BlockView<Limits>& at, ViewShare share) {
    for (int i = share.first; i < object_count(at.fields()); i += share.stride) {
        read_box(at.fields(), at.world, i, i, at.memory.boxes);
        at.memory.axes[i] = at.memory.around[i] = 0;
    }
    if (share.first == 0) aim(at.call.views, at.world, at.agent, at.memory.view);
}

template <class Limits>
DS_INLINE void find_seen_boxes(const BlockView<Limits>& at, ViewShare share) {
    if (!can_look(at.memory.view.camera)) return;
    for (int i = share.first; i < object_count(at.fields()); i += share.stride) {
        SeenSides<NarrowFloat> found;
        find_sides(at.memory.view, at.memory.boxes, i, at.call.grid.all(), found);
        at.memory.axes[i] = static_cast<uint8_t>(found.axes_of(0));
        at.memory.around[i] = static_cast<uint8_t>(found.around);
    }
}

template <class Limits>
DS_INLINE int faces_before(const BlockView<Limits>& at, int box) {
    int faces = 0;
    DS_ROLLED
    for (int i = 0; i < box; i++) faces += count_bits(at.memory.axes[i]);
    return faces;
}

template <class Limits>
DS_INLINE void take_seen_boxes(const BlockView<Limits>& at, ViewShare share) {
    View<Limits>& view = at.memory.view;
    const BoxTable<Limits>& boxes = at.memory.boxes;
    for (int i = share.first; i < object_count(at.fields()); i += share.stride) {
        if (!(at.memory.axes[i] | at.memory.around[i])) continue;
        SeenSides<NarrowFloat> found;
        find_sides(view, boxes, i, at.call.grid.all(), found);
        take_box(at.fields(), boxes, i, found, 0, view, faces_before(at, i));
    }
    if (share.first != 0) return;
    const int faces = faces_before(at, object_count(at.fields()));
    DS_ASSERT(faces < Limits::kFaces);
    view.faces.count = faces + (can_look(view.camera) ? take_floor(view, faces) : 0);
    uint32_t meshes = 0, around = 0;
    for (int agent = 0; agent < at.fields().num_agents; agent++) {
        if (agent == view.self || !is_mesh(at.fields(), boxes, agent)) continue;
        const int mesh = mesh_of_agent(agent, view.self);
        around |= static_cast<uint32_t>(at.memory.around[agent]) << mesh;
        meshes |= static_cast<uint32_t>((at.memory.axes[agent] | at.memory.around[agent]) != 0) << mesh;
    }
    view.meshes = meshes;
    view.meshes_around = around;
}

template <class Limits>
DS_INLINE void place_meshes(const BlockView<Limits>& at, ViewShare share) {
    const View<Limits>& view = at.memory.view;
    for (uint32_t meshes = view.meshes; meshes;) {
        const int mesh = take_lowest_bit(meshes), box = agent_of_mesh(mesh, view.self);
        for (int i = share.first; i < kMeshPoints; i += share.stride)
            place_points<NarrowFloat>(view.camera, at.memory.boxes, box, *at.call.mesh, i, *at.points(mesh));
    }
}

template <class Limits>
DS_INLINE void find_tiles(const BlockView<Limits>& at, ViewShare share, int first_tile, int tiles) {
    DS_ASSERT(tiles >= 1 && tiles <= at.most_tiles);
    const int tiles_across = (at.call.grid.width + kTileSide - 1) / kTileSide;
    for (int i = share.first; i < tiles; i += share.stride) {
        BlockTile<Limits>& tile = at.tiles()[i];
        const int down = (first_tile + i) / tiles_across, across = first_tile + i - down * tiles_across;
        tile.column = static_cast<int16_t>(across * kTileSide);
        tile.row = static_cast<int16_t>(down * kTileSide);
        find_faces<NarrowFloat>(at.memory.view, at.area_of(tile), tile.faces);
    }
}

template <class Limits>
DS_INLINE void mark_meshes(const BlockView<Limits>& at, ViewShare share, int tiles) {
    for (uint32_t meshes = at.memory.view.meshes; meshes;) {
        const int mesh = take_lowest_bit(meshes);
        DS_ROLLED
        for (int i = share.first; i < tiles * kMeshMarks; i += share.stride) {
            const int t = i / kMeshMarks, byte = i - t * kMeshMarks;
            const BlockTile<Limits>& tile = at.tiles()[t];
            if (!(tile.faces.meshes >> mesh & 1)) continue;
            at.marks(t, mesh)[byte] =
                mark_triangles<NarrowFloat>(at.triangles(mesh), byte * kMarkedTriangles, at.area_of(tile));
        }
    }
}

template <class Limits>
DS_INLINE void draw_pixels(const BlockView<Limits>& at, ViewShare share, int tiles) {
    const PixelGrid& grid = at.call.grid;
    const View<Limits>& view = at.memory.view;
    const int64_t first_pixel = (at.world * at.fields().num_agents + at.agent) * grid.height * grid.width;
    DS_ROLLED
    for (int i = share.first; i < tiles * kTileSide * kTileSide; i += share.stride) {
        const int t = i / (kTileSide * kTileSide);
        const BlockTile<Limits>& tile = at.tiles()[t];
        const int column = tile.column + i % kTileSide, row = tile.row + i / kTileSide % kTileSide;
        if (column >= grid.width || row >= grid.height) continue;
        Patch<NarrowFloat, 1> patch;
        patch.begin(NarrowFloat(grid.right[column]), grid.up + row);
        draw_faces(view.faces, tile.faces, patch);
        draw_meshes(*at.call.mesh, view, tile.faces.meshes, [&](int mesh) { return at.triangles(mesh); },
                    [&](int mesh) { return at.marks(t, mesh); }, patch);
        const int64_t pixel = first_pixel + int64_t{row} * grid.width + column;
        write_row<true>(view, patch, 0, tile.faces.floor, at.call.views.tensors, pixel, 1);
    }
}

// ---- The kernel

template <class Block, class Limits>
DS_INLINE void draw_view(Block& block, const BlockView<Limits>& at) {
    block.each([&](ViewShare share) { read_view(at, share); });
    block.each([&](ViewShare share) { find_seen_boxes(at, share); });
    block.each([&](ViewShare share) { take_seen_boxes(at, share); });
    const bool meshes = at.memory.view.meshes != 0;
    if (meshes) block.each([&](ViewShare share) { place_meshes(at, share); });
    const PixelGrid& grid = at.call.grid;
    const int tiles = ((grid.width + kTileSide - 1) / kTileSide) * ((grid.height + kTileSide - 1) / kTileSide);
    DS_ROLLED
    for (int first = 0; first < tiles; first += at.most_tiles) {
        const int count = smaller(at.most_tiles, tiles - first);
        block.each([&](ViewShare share) { find_tiles(at, share, first, count); });
        if (meshes) block.each([&](ViewShare share) { mark_meshes(at, share, count); });
        block.each([&](ViewShare share) { draw_pixels(at, share, count); });
    }
}

template <class Limits, class Block>
DS_INLINE void draw_views(Block& block, const ViewsCall& call, void* shared) {
    BlockViewMemory<Limits>& memory = *static_cast<BlockViewMemory<Limits>*>(shared);
    const int most_tiles = block_tiles<Limits>(call.views.fields.num_agents);
    const uint32_t num_agents = static_cast<uint32_t>(call.views.fields.num_agents);
    // 32 bits are enough: no device has memory for the worlds of 2^32 views
    const uint32_t views = static_cast<uint32_t>(call.views.num_worlds) * num_agents;
    DS_ROLLED
    for (uint32_t i = block.index(); i < views; i += block.count())
        draw_view(block, BlockView<Limits>{call, memory, most_tiles, i / num_agents, static_cast<int>(i % num_agents)});
}

// ---- The kernels, as the host launches them

struct ViewKernel {
    const char* name;
    uint32_t block_bytes;  // of shared memory
};

constexpr const char* kDrawViewsName = "doorstep_draw_views";
constexpr const char* kDrawLevelViewsName = "doorstep_draw_level_views";

// The kernel for worlds of these capacities.
inline ViewKernel find_view_kernel(const WorldFields& fields) {
    return with_limits(fields, [&](auto limits) {
        using Limits = decltype(limits);
        constexpr bool kFewObjects = Limits::kObjects == ReferenceScene::kObjects;
        const int bytes = view_block_bytes<Limits>(fields.num_agents, block_tiles<Limits>(fields.num_agents));
        return ViewKernel{kFewObjects ? kDrawViewsName : kDrawLevelViewsName, static_cast<uint32_t>(bytes)};
    });
}

}  // namespace doorstep
