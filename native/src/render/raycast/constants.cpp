#include "render/raycast/constants.h"

#include <assert.h>

#include <algorithm>

namespace doorstep {
namespace {

void write_mesh(const Mesh& mesh, MeshTable& table) {
    assert(mesh.vertex_count <= kMeshPoints && mesh.triangle_count <= kMeshTriangles);
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
        for (int k = 0; k < 3; ++k) table.corners[k][i] = mesh.indices[3 * i + k];
        table.materials[i] = mesh.vertices[mesh.indices[3 * i]].material;
    }
}

}  // namespace

void RaycastConstants::write(void* memory) const {
    write_mesh(agent_mesh(), *static_cast<MeshTable*>(memory));
    float* right = reinterpret_cast<float*>(static_cast<MeshTable*>(memory) + 1);
    float* up = right + columns();
    for (int32_t column = 0; column < columns(); ++column)
        right[column] = pixel_right(rig_.tangent_x, rig_.width, std::min(column, rig_.width - 1));
    for (int32_t row = 0; row < rows(); ++row)
        up[row] = pixel_up(rig_.tangent_y, rig_.height, std::min(row, rig_.height - 1));
}

ViewsCall RaycastConstants::call(const Views& views, const void* memory) const {
    const MeshTable* mesh = static_cast<const MeshTable*>(memory);
    const float* right = reinterpret_cast<const float*>(mesh + 1);
    return {views, {right, right + columns(), rig_.width, rig_.height}, mesh};
}

}  // namespace doorstep
