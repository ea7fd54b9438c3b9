// A ray tracer in double precision that shares only the meshes and the colours with the renderers: it tests every ray
// against every triangle of every object, including boxes.
#pragma once

#include <math.h>
#include <stdint.h>

#include <vector>

#include "box_mesh.h"
#include "render/scene/look.h"
#include "render/scene/meshes.h"
#include "render/scene/scene.h"

namespace reference {

struct Vector { double x, y, z; };

inline Vector from(doorstep::Vec3 a) { return {a.x, a.y, a.z}; }
inline Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
inline Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
inline Vector operator*(Vector a, double s) { return {a.x * s, a.y * s, a.z * s}; }
inline double dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline Vector cross(Vector a, Vector b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
inline Vector unit(Vector a) { return a * (1 / sqrt(dot(a, a))); }

struct Ray { Vector origin, direction; };

struct Triangle {
    Vector corners[3], normals[3];
    int object;  // index of its object
    uint32_t material;
};

struct Hit {
    int object = -1;  // -1: sky; -2: floor
    uint32_t material = 0;
    double distance = INFINITY;
    Vector normal{0, 0, 0};

    bool operator==(const Hit& other) const { return object == other.object && material == other.material; }
};

constexpr int kSky = -1, kFloor = -2;

inline Vector place(const doorstep::Object& object, doorstep::Vec3 local) {
    return from(object.centre) + from(object.axis_x) * (double(local.x) * object.half.x) +
           from(object.axis_y) * (double(local.y) * object.half.y) +
           from(object.axis_z) * (double(local.z) * object.half.z);
}

// A normal of the mesh scaled to the object's box.
inline Vector turn(const doorstep::Object& object, doorstep::Vec3 local) {
    return unit(from(object.axis_x) * (double(local.x) / object.half.x) +
                from(object.axis_y) * (double(local.y) / object.half.y) +
                from(object.axis_z) * (double(local.z) / object.half.z));
}

inline void add_triangles(const doorstep::Object& object, int number, std::vector<Triangle>& triangles) {
    const doorstep::Mesh& mesh = object.is_mesh ? doorstep::agent_mesh() : doorstep::box_mesh();
    for (int t = 0; t < mesh.triangle_count; ++t) {
        Triangle triangle{{}, {}, number, mesh.vertices[mesh.indices[3 * t]].material};
        for (int k = 0; k < 3; ++k) {
            const doorstep::MeshVertex& vertex = mesh.vertices[mesh.indices[3 * t + k]];
            triangle.corners[k] = place(object, vertex.position);
            triangle.normals[k] = turn(object, vertex.normal);
        }
        triangles.push_back(triangle);
    }
}

// Front faces only, between nearest and the nearest hit so far.
inline void meet(const Ray& ray, const Triangle& triangle, double nearest, Hit& hit) {
    const Vector a = triangle.corners[1] - triangle.corners[0], b = triangle.corners[2] - triangle.corners[0];
    const Vector normal = cross(a, b);
    const double slope = dot(ray.direction, normal);
    if (!(slope < 0)) return;
    const Vector to_corner = triangle.corners[0] - ray.origin;
    const double distance = dot(to_corner, normal) / slope;
    if (!(distance > nearest && distance < hit.distance)) return;
    const Vector p = ray.origin + ray.direction * distance - triangle.corners[0];
    const double area = dot(normal, normal);
    const double u = dot(cross(p, b), normal) / area, v = dot(cross(a, p), normal) / area;
    if (u < 0 || v < 0 || u + v > 1) return;
    hit.object = triangle.object;
    hit.material = triangle.material;
    hit.distance = distance;
    hit.normal = unit(triangle.normals[0] * (1 - u - v) + triangle.normals[1] * u + triangle.normals[2] * v);
}

// hidden: an object that is ignored, or -1.
inline Hit trace(const Ray& ray, const std::vector<Triangle>& triangles, int hidden, bool floor) {
    Hit hit;
    if (floor && ray.direction.z < 0 && ray.origin.z > 0) {
        const double distance = -ray.origin.z / ray.direction.z;
        if (distance > doorstep::kNearPlane && distance < doorstep::kFarPlane) hit = {kFloor, 0, distance, {0, 0, 1}};
    }
    for (const Triangle& triangle : triangles)
        if (triangle.object != hidden) meet(ray, triangle, doorstep::kNearPlane, hit);
    return hit;
}

}  // namespace reference
