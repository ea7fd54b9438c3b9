// The meshes of the scene, generated in code: the same bits on every machine. Triangles are counter-clockwise seen from
// outside; the arrays are valid until the process ends.
#pragma once

#include <stdint.h>

#include "math/vector.h"

namespace doorstep {

enum Material : uint32_t {
    kBodyMaterial = 0,  // the colour of the object's kind
    kEyeMaterial = 1,
    kPupilMaterial = 2,
};

struct MeshVertex {
    Vec3 position;
    Vec3 normal;  // unit, of the smooth surface
    uint32_t material;
};

struct Mesh {
    const MeshVertex* vertices;
    const uint32_t* indices;  // three vertices a triangle, all of one material
    int32_t vertex_count, triangle_count;
};

// Own frame: a 2 x 2 x 2 box centred at the origin, +y forward, +z up. A rounded body with two eyes set into it; each
// is closed and lies within the box.
const Mesh& agent_mesh();

// The same body for pictures, in finer triangles, with larger eyes that have pupils.
const Mesh& figure_mesh();

}  // namespace doorstep
