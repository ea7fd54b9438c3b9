// The meshes, the camera's rays and the floor's grid, which all renderers use.
#include <math.h>

#include <map>
#include <utility>

#include "check.h"
#include "render_reference.h"

using namespace doorstep;

namespace {

bool same_place(Vec3 a, Vec3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

// Vertices at the same position count as one: the box has several per corner.
uint32_t place_of(const Mesh& mesh, uint32_t vertex) {
    uint32_t first = 0;
    while (!same_place(mesh.vertices[first].position, mesh.vertices[vertex].position)) ++first;
    return first;
}

// Every edge occurs once in each direction.
void check_closed(const Mesh& mesh) {
    std::map<std::pair<uint32_t, uint32_t>, int> walks;
    for (int t = 0; t < mesh.triangle_count; ++t) {
        for (int k = 0; k < 3; ++k) {
            const uint32_t from = place_of(mesh, mesh.indices[3 * t + k]);
            const uint32_t to = place_of(mesh, mesh.indices[3 * t + (k + 1) % 3]);
            ++walks[{from, to}];
        }
    }
    for (const auto& [edge, times] : walks) {
        CHECK_EQUAL(times, 1);
        CHECK(walks.count({edge.second, edge.first}) == 1);
    }
}

// Volume within the triangles of one material, by the divergence theorem; positive if they face outwards.
double volume(const Mesh& mesh, uint32_t material) {
    double sum = 0;
    for (int t = 0; t < mesh.triangle_count; ++t) {
        const uint32_t* corners = mesh.indices + 3 * t;
        if (mesh.vertices[corners[0]].material != material) continue;
        const auto corner = [&](int k) { return reference::from(mesh.vertices[corners[k]].position); };
        sum += reference::dot(corner(0), reference::cross(corner(1), corner(2))) / 6;
    }
    return sum;
}

void check_normals(const Mesh& mesh) {
    for (int i = 0; i < mesh.vertex_count; ++i) CHECK_NEAR(length(mesh.vertices[i].normal), 1.f, 1e-6);
    for (int t = 0; t < mesh.triangle_count; ++t) {
        const uint32_t* corners = mesh.indices + 3 * t;
        const Vec3 a = mesh.vertices[corners[0]].position, b = mesh.vertices[corners[1]].position,
                   c = mesh.vertices[corners[2]].position;
        const Vec3 flat = cross(b - a, c - a);
        CHECK(length(flat) > 1e-4f);
        for (int k = 0; k < 3; ++k) CHECK(dot(flat, mesh.vertices[corners[k]].normal) > 0.6f * length(flat));
    }
}

void the_agents_mesh_is_closed_and_faces_outwards() {
    const Mesh& mesh = agent_mesh();
    check_closed(mesh);
    check_normals(mesh);
    CHECK(mesh.triangle_count >= 300 && mesh.triangle_count <= 700);
    const double body = volume(mesh, kBodyMaterial), eyes = volume(mesh, kEyeMaterial);
    CHECK(body > 5 && body < 8);          // of the box's 8
    CHECK(eyes > 0.02 && eyes < 0.1);     // both
}

void triangles_are_of_one_material() {
    const Mesh& mesh = agent_mesh();
    for (int t = 0; t < mesh.triangle_count; ++t) {
        for (int k = 1; k < 3; ++k) {
            CHECK_EQUAL(mesh.vertices[mesh.indices[3 * t]].material, mesh.vertices[mesh.indices[3 * t + k]].material);
        }
    }
}

void the_agents_mesh_fills_its_box() {
    const Mesh& mesh = agent_mesh();
    Vec3 low{9.f, 9.f, 9.f}, high{-9.f, -9.f, -9.f};
    for (int i = 0; i < mesh.vertex_count; ++i) {
        const Vec3 p = mesh.vertices[i].position;
        low = {minimum(low.x, p.x), minimum(low.y, p.y), minimum(low.z, p.z)};
        high = {maximum(high.x, p.x), maximum(high.y, p.y), maximum(high.z, p.z)};
    }
    CHECK(same_place(low, {-1.f, -1.f, -1.f}) && same_place(high, {1.f, 1.f, 1.f}));
}

// The eyes show an agent's heading: they are visible from ahead, from the sides in front and from above, not from
// behind.
void eyes_tell_the_heading() {
    const Object agent{{}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}, DS_ENTITY_AGENT, 0, true};
    std::vector<reference::Triangle> triangles;
    reference::add_triangles(agent, 0, triangles);
    const auto eye_share = [&](reference::Vector direction) {
        const reference::Vector forward = reference::unit(direction);
        const reference::Vector right = reference::unit(reference::cross(forward, {0.01, 0.02, 1}));
        const reference::Vector up = reference::cross(right, forward);
        int eyes = 0, all = 0;
        for (double x = -1.5; x < 1.5; x += 0.05) {
            for (double y = -1.5; y < 1.5; y += 0.05) {
                const reference::Ray ray{right * x + up * y - forward * 9, forward};
                const reference::Hit hit = reference::trace(ray, triangles, -1, false);
                all += hit.object == 0;
                eyes += hit.object == 0 && hit.material == kEyeMaterial;
            }
        }
        return double(eyes) / all;
    };
    CHECK(eye_share({0, -1, 0}) > 0.03);
    CHECK(eye_share({1, -1, 0}) > 0.01);
    CHECK(eye_share({-1, -1, 0}) > 0.01);
    CHECK(eye_share({0, 0, -1}) > 0.01);
    CHECK(eye_share({0, 1, 0}) == 0);
}

void the_box_has_flat_sides() {
    const Mesh& mesh = box_mesh();
    check_closed(mesh);
    check_normals(mesh);
    CHECK_EQUAL(mesh.triangle_count, 12);
    CHECK_NEAR(volume(mesh, kBodyMaterial), 8, 1e-12);
    for (int t = 0; t < 12; ++t) {
        const Vec3 normal = mesh.vertices[mesh.indices[3 * t]].normal;
        for (int k = 0; k < 3; ++k) {
            const MeshVertex& vertex = mesh.vertices[mesh.indices[3 * t + k]];
            CHECK(same_place(vertex.normal, normal));
            CHECK(dot(vertex.position, normal) == 1.f);
        }
    }
}

void pixels_are_numbered_from_the_top_left() {
    // 90 degrees: half the view is 1 at depth 1. Four pixels: centres at -3/4, -1/4, 1/4, 3/4.
    CHECK_NEAR(pixel_right(1.f, 4, 0), -0.75, 0);
    CHECK_NEAR(pixel_right(1.f, 4, 3), 0.75, 0);
    CHECK_NEAR(pixel_up(1.f, 4, 0), 0.75, 0);
    CHECK_NEAR(pixel_up(1.f, 4, 3), -0.75, 0);
    CHECK_NEAR(pixel_up(2.f, 1, 0), 0, 0);
}

// An agent at (3, 4), turned left by 90 degrees: forward is -x. The camera stands 0.5 ahead of it and 1.5 high.
void cameras_turn_with_their_agents() {
    const float half = sqrtf(0.5f);
    const CameraRig rig{64, 64, 1.f, 1.f, {0.f, 0.5f, 1.5f}, {1.f, 0.f, 0.f, 0.f}};
    const Camera camera = camera_of_agent(rig, {3.f, 4.f, 0.f}, {half, 0.f, 0.f, half});
    const auto check = [](Vec3 is, Vec3 wanted) { CHECK(length(is - wanted) < 1e-6f); };
    check(camera.origin, {2.5f, 4.f, 1.5f});
    check(camera.forward, {-1.f, 0.f, 0.f});
    check(camera.right, {0.f, 1.f, 0.f});
    check(camera.up, {0.f, 0.f, 1.f});
}

// The fraction of an interval that lies on lines, by counting.
double counted_coverage(double coordinate, double width) {
    int on_line = 0;
    const int count = 20000;
    for (int i = 0; i < count; ++i) {
        const double at = coordinate + width * ((i + 0.5) / count - 0.5);
        on_line += fabs(at - kGridCell * round(at / kGridCell)) < 0.5 * kGridLineWidth;
    }
    return double(on_line) / count;
}

void the_grid_is_averaged_over_the_pixel() {
    for (const double width : {0.001, 0.03, 0.1, 0.5, 1.3, 1.99, 2.0}) {
        for (double at = -5; at < 5; at += 0.0437) {
            const float shown = line_coverage<NarrowFloat>(static_cast<float>(at), static_cast<float>(width)).v;
            const double edge = width < 0.01 ? 0.02 : 0;  // rounding of `at` moves an edge by 1e-6
            CHECK_NEAR(shown, counted_coverage(at, width), 2e-3 + edge);
        }
    }
    // Far away all pixels have the same colour.
    CHECK_NEAR(line_coverage<NarrowFloat>(12345.6f, 1000.f).v, kGridLineWidth / kGridCell, 1e-6);
}

}  // namespace

int main() {
    RUN(the_agents_mesh_is_closed_and_faces_outwards);
    RUN(triangles_are_of_one_material);
    RUN(the_agents_mesh_fills_its_box);
    RUN(eyes_tell_the_heading);
    RUN(the_box_has_flat_sides);
    RUN(pixels_are_numbered_from_the_top_left);
    RUN(cameras_turn_with_their_agents);
    RUN(the_grid_is_averaged_over_the_pixel);
    return 0;
}
