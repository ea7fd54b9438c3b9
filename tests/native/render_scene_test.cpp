// The meshes and the cameras, which all renderers use.
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
        for (int k = 1; k < 3; ++k)
            CHECK_EQUAL(mesh.vertices[corners[0]].material, mesh.vertices[corners[k]].material);
        const Vec3 a = mesh.vertices[corners[0]].position, b = mesh.vertices[corners[1]].position,
                   c = mesh.vertices[corners[2]].position;
        const Vec3 flat = cross(b - a, c - a);
        CHECK(length(flat) > 1e-4f);
        for (int k = 0; k < 3; ++k) CHECK(dot(flat, mesh.vertices[corners[k]].normal) > 0.6f * length(flat));
    }
}

LAW(the_agents_mesh_is_closed_and_faces_outwards) {
    const Mesh& mesh = agent_mesh();
    check_closed(mesh);
    check_normals(mesh);
    CHECK(mesh.triangle_count >= 300 && mesh.triangle_count <= 700);
    const double body = volume(mesh, kBodyMaterial), eyes = volume(mesh, kEyeMaterial);
    CHECK(body > 5 && body < 8);          // of the box's 8
    CHECK(eyes > 0.02 && eyes < 0.1);     // both
}

LAW(the_agents_mesh_fills_its_box) {
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
LAW(eyes_tell_the_heading) {
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
    CHECK(eye_share({0, -1, 0}) > 0.03 && eye_share({1, -1, 0}) > 0.01 && eye_share({-1, -1, 0}) > 0.01);
    CHECK(eye_share({0, 0, -1}) > 0.01 && eye_share({0, 1, 0}) == 0);
}

// An agent at (3, 4), turned left by 90 degrees: forward is -x. The camera stands 0.5 ahead of it and 1.5 high.
LAW(cameras_turn_with_their_agents) {
    const float half = sqrtf(0.5f);
    const CameraRig rig{64, 64, 1.f, 1.f, {0.f, 0.5f, 1.5f}, {1.f, 0.f, 0.f, 0.f}};
    const Camera camera = camera_of_agent(rig, {3.f, 4.f, 0.f}, {half, 0.f, 0.f, half});
    const auto check = [](Vec3 is, Vec3 wanted) { CHECK(length(is - wanted) < 1e-6f); };
    check(camera.origin, {2.5f, 4.f, 1.5f});
    check(camera.forward, {-1.f, 0.f, 0.f});
    check(camera.right, {0.f, 1.f, 0.f});
    check(camera.up, {0.f, 0.f, 1.f});
}

}  // namespace
