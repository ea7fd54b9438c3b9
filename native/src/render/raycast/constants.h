// The ray caster's constant tables: pixel positions and the agents' mesh. One block of memory, filled on the host and
// copied to the device that draws.
#pragma once

#include <stdint.h>

#include <algorithm>

#include "render/raycast/world_views.h"

namespace doorstep {

inline void write_mesh(const Mesh& mesh, MeshTable& table) {
    DS_ASSERT(mesh.vertex_count > 0 && mesh.vertex_count <= kMeshPoints);
    DS_ASSERT(mesh.triangle_count > 0 && mesh.triangle_count <= kMeshTriangles);
    memset(&table, 0, sizeof table);
    for (int i = 0; i < mesh.vertex_count; ++i) {
        const MeshVertex& vertex = mesh.vertices[i];
        const float position[3] = {vertex.position.x, vertex.position.y, vertex.position.z};
        const float normal[3] = {vertex.normal.x, vertex.normal.y, vertex.normal.z};
        for (int k = 0; k < 3; ++k) {
            table.position[k][i] = position[k];
            table.normal[k][i] = normal[k];
        }
    }
    for (int i = 0; i < mesh.triangle_count; ++i) {
        for (int k = 0; k < 3; ++k) {
            DS_ASSERT(mesh.indices[3 * i + k] < static_cast<uint32_t>(mesh.vertex_count));
            table.corners[k][i] = mesh.indices[3 * i + k];
        }
        table.materials[i] = mesh.vertices[mesh.indices[3 * i]].material;
    }
}

class RaycastConstants {
public:
    explicit RaycastConstants(const CameraRig& rig) : rig_(rig) { DS_ASSERT(rig.width > 0 && rig.height > 0); }

    int64_t bytes() const { return static_cast<int64_t>(sizeof(MeshTable)) + 4 * (columns() + rows()); }
    // memory: of bytes(), aligned to 32.
    void write(void* memory) const;
    // The call that draws views with the constants at a device address.
    ViewsCall call(const Views& views, const void* memory) const;

private:
    // Whole tiles, so that lanes beyond the last pixel read valid memory.
    static int64_t padded(int32_t pixels) { return (pixels + kTileSide - 1) / kTileSide * kTileSide; }
    int64_t columns() const { return padded(rig_.width); }
    int64_t rows() const { return padded(rig_.height); }

    CameraRig rig_;
};

inline void RaycastConstants::write(void* memory) const {
    write_mesh(agent_mesh(), *static_cast<MeshTable*>(memory));
    DS_ASSERT(reinterpret_cast<uintptr_t>(memory) % 32 == 0);
    float* right = reinterpret_cast<float*>(static_cast<MeshTable*>(memory) + 1);
    float* up = right + columns();
    for (int32_t column = 0; column < columns(); ++column)
        right[column] = pixel_right(rig_.tangent_x, rig_.width, std::min(column, rig_.width - 1));
    for (int32_t row = 0; row < rows(); ++row)
        up[row] = pixel_up(rig_.tangent_y, rig_.height, std::min(row, rig_.height - 1));
}

inline ViewsCall RaycastConstants::call(const Views& views, const void* memory) const {
    const MeshTable* mesh = static_cast<const MeshTable*>(memory);
    const float* right = reinterpret_cast<const float*>(mesh + 1);
    return {views, {right, right + columns(), rig_.width, rig_.height}, mesh};
}

}  // namespace doorstep
