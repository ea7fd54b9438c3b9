// A box as triangles, which no renderer needs: for what draws everything by them.
#pragma once

#include "render/scene/meshes.h"

namespace doorstep {

struct BoxMesh {
    MeshVertex vertices[24];
    uint32_t indices[36];
    Mesh mesh{vertices, indices, 24, 12};

    BoxMesh() {
        for (int face = 0; face < 6; ++face) {
            const int axis = face / 2, u_axis = (axis + 1) % 3, v_axis = (axis + 2) % 3;
            const float side = face % 2 ? 1.f : -1.f;
            for (int corner = 0; corner < 4; ++corner) {
                float position[3], normal[3] = {};
                normal[axis] = position[axis] = side;
                position[u_axis] = corner == 1 || corner == 2 ? side : -side;  // reversed on the far side
                position[v_axis] = corner >= 2 ? 1.f : -1.f;
                vertices[4 * face + corner] = {{position[0], position[1], position[2]},
                                               {normal[0], normal[1], normal[2]},
                                               kBodyMaterial};
            }
            const int corners[6] = {0, 1, 2, 0, 2, 3};
            for (int i = 0; i < 6; ++i) indices[6 * face + i] = static_cast<uint32_t>(4 * face + corners[i]);
        }
    }
};

// The box whose half extents are 1; every side has vertices of its own, with its normal.
inline const Mesh& box_mesh() {
    static const BoxMesh box;
    return box.mesh;
}

}  // namespace doorstep
