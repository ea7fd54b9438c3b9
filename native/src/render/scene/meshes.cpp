#include "render/scene/meshes.h"

namespace doorstep {
namespace {

// A cube's sides are grids of squares; sides of the same closed surface share the vertices of their edges.
constexpr int cube_vertices(int grid) { return 6 * grid * grid + 2; }
constexpr int cube_triangles(int grid) { return 12 * grid * grid; }

// An ellipsoid on the dome's front, where it is visible from ahead and from above.
struct Eye {
    Vec3 centre, half;  // of the right one
    Material material;
};
constexpr Eye kAgentEye = {{0.38f, 0.76f, 0.50f}, {0.19f, 0.17f, 0.25f}, kEyeMaterial};
constexpr Eye kFigureEye = {{0.37f, 0.71f, 0.50f}, {0.27f, 0.22f, 0.31f}, kEyeMaterial};
constexpr Eye kFigurePupil = {{0.35f, 0.85f, 0.53f}, {0.15f, 0.12f, 0.19f}, kPupilMaterial};

struct SurfacePoint {
    Vec3 position, normal;
};

Vec3 normalized(Vec3 a) { return a * (1.f / length(a)); }

// Where the ray from the origin leaves the body. Below z = 0 the body is x^4 + y^4 + z^4 = 1, a box with round edges
// that stands flat on the floor; above, sqrt(x^4 + y^4) + z^2 = 1, a dome with the same outline.
SurfacePoint on_body(Vec3 direction) {
    const float x2 = direction.x * direction.x, y2 = direction.y * direction.y, z2 = direction.z * direction.z;
    const float outline = square_root(x2 * x2 + y2 * y2);
    const Vec3 cubes{x2 * direction.x, y2 * direction.y, z2 * direction.z};
    if (direction.z < 0.f) {
        const float scale = 1.f / square_root(square_root(x2 * x2 + y2 * y2 + z2 * z2));
        return {direction * scale, normalized(cubes)};
    }
    if (outline == 0.f) return {{0.f, 0.f, 1.f}, {0.f, 0.f, 1.f}};
    const float scale = 1.f / square_root(outline + z2);
    return {direction * scale, normalized({cubes.x / outline, cubes.y / outline, direction.z})};
}

SurfacePoint on_eye(Vec3 direction, const Eye& eye, float side) {
    const Vec3 unit = normalized(direction);
    const Vec3 offset{unit.x * eye.half.x, unit.y * eye.half.y, unit.z * eye.half.z};
    const Vec3 gradient{unit.x / eye.half.x, unit.y / eye.half.y, unit.z / eye.half.z};
    return {Vec3{side * eye.centre.x, eye.centre.y, eye.centre.z} + offset, normalized(gradient)};
}

// Grids: squares along an edge. eyes: ellipsoids on each side.
template <int kBodyGrid, int kEyeGrid, int kEyes>
struct AgentMesh {
    static constexpr int kVertices = cube_vertices(kBodyGrid) + 2 * kEyes * cube_vertices(kEyeGrid);
    static constexpr int kTriangles = cube_triangles(kBodyGrid) + 2 * kEyes * cube_triangles(kEyeGrid);
    MeshVertex vertices[kVertices];
    uint32_t indices[3 * kTriangles];
    Mesh mesh{vertices, indices, 0, 0};

    explicit AgentMesh(const Eye (&eyes)[kEyes]) {
        add_surface(kBodyGrid, kBodyMaterial, on_body);
        for (const Eye& eye : eyes) {
            for (float side = -1.f; side <= 1.f; side += 2.f) {
                add_surface(kEyeGrid, eye.material, [&](Vec3 direction) { return on_eye(direction, eye, side); });
            }
        }
        DS_ASSERT(mesh.vertex_count == kVertices && mesh.triangle_count == kTriangles);
    }

private:
    // A surface around the origin; surface(direction) is its point there.
    template <class Surface>
    void add_surface(int grid, Material material, Surface surface) {
        const int first_vertex = mesh.vertex_count;
        // Both orders of the other two axes give one side each, so that all triangles face outwards.
        for (int axis = 0; axis < 3; ++axis) {
            for (int side = -1; side <= 1; side += 2) {
                const int u_axis = (axis + (side > 0 ? 1 : 2)) % 3, v_axis = 3 - axis - u_axis;
                const auto vertex = [&](int u, int v) {
                    float corner[3];
                    corner[axis] = static_cast<float>(side);
                    corner[u_axis] = static_cast<float>(2 * u - grid) / static_cast<float>(grid);
                    corner[v_axis] = static_cast<float>(2 * v - grid) / static_cast<float>(grid);
                    const SurfacePoint point = surface(Vec3{corner[0], corner[1], corner[2]});
                    return vertex_at({point.position, point.normal, material}, first_vertex);
                };
                for (int v = 0; v < grid; ++v) {
                    for (int u = 0; u < grid; ++u) {
                        const uint32_t a = vertex(u, v), b = vertex(u + 1, v), c = vertex(u + 1, v + 1),
                                       d = vertex(u, v + 1);
                        add_triangle(a, b, c);
                        add_triangle(a, c, d);
                    }
                }
            }
        }
    }

    uint32_t vertex_at(const MeshVertex& vertex, int first) {
        int i = first;
        while (i < mesh.vertex_count && !same(vertices[i].position, vertex.position)) ++i;
        if (i == mesh.vertex_count) vertices[mesh.vertex_count++] = vertex;
        return static_cast<uint32_t>(i);
    }

    void add_triangle(uint32_t a, uint32_t b, uint32_t c) {
        uint32_t* corners = indices + 3 * mesh.triangle_count++;
        corners[0] = a;
        corners[1] = b;
        corners[2] = c;
    }

    static bool same(Vec3 a, Vec3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }
};

}  // namespace

const Mesh& agent_mesh() {
    static const AgentMesh<6, 3, 1> agent({kAgentEye});
    return agent.mesh;
}

const Mesh& figure_mesh() {
    static const AgentMesh<14, 6, 2> figure({kFigureEye, kFigurePupil});
    return figure.mesh;
}

}  // namespace doorstep
