// The baseline of the renderers' benchmarks, as a straightforward program: for every view it builds a scene of all
// triangles in world space, commits it, traces one ray per pixel, and releases it. It draws the same scene with the
// same colours. Its device builds on the calling thread alone, which takes fewer CPU seconds than Embree's default.
#include <stdint.h>

#include <vector>

#include "box_mesh.h"
#include "render/embree/embree.h"
#include "render/scene/scene.h"
#include "render/scene/look.h"
#include "render/scene/meshes.h"

using namespace doorstep;

// Worlds as contiguous arrays, [worlds, items, components] each.
struct PlainWorlds {
    int32_t num_agents, num_bodies, num_statics, num_buttons;
    const float *body_positions, *body_rotations, *body_sizes;
    const int32_t* body_kinds;
    const float *static_positions, *static_sizes;
    const int32_t* static_kinds;
    const float* button_positions;
    const int32_t* button_pressed;
};

namespace {

template <class Value>
FieldView field(const Value* data, int items, int components) {
    return {reinterpret_cast<const char*>(data), 4 * items * components, 4 * components, 4};
}

WorldFields fields_of(const PlainWorlds& w) {
    return {w.num_agents,
            w.num_bodies,
            w.num_statics,
            w.num_buttons,
            field(w.body_positions, w.num_bodies, 3),
            field(w.body_rotations, w.num_bodies, 4),
            field(w.body_sizes, w.num_bodies, 3),
            field(w.body_kinds, w.num_bodies, 1),
            field(w.static_positions, w.num_statics, 3),
            field(w.static_sizes, w.num_statics, 3),
            field(w.static_kinds, w.num_statics, 1),
            field(w.button_positions, w.num_buttons, 3),
            field(w.button_pressed, w.num_buttons, 1)};
}

struct Vertex {
    Vec3 position, normal;
};

struct ViewScene {
    RTCScene scene;
    std::vector<Vertex> vertices;
    std::vector<uint32_t> indices;
    std::vector<Colour> colours;  // of the triangles
};

void add_object(const Object& object, ViewScene& view) {
    const Mesh& mesh = object.kind == DS_ENTITY_AGENT ? agent_mesh() : box_mesh();
    const auto first = static_cast<uint32_t>(view.vertices.size());
    for (int i = 0; i < mesh.vertex_count; ++i) {
        const Vec3 p = mesh.vertices[i].position, n = mesh.vertices[i].normal;
        view.vertices.push_back({object.centre + object.axis_x * (p.x * object.half.x) +
                                     object.axis_y * (p.y * object.half.y) + object.axis_z * (p.z * object.half.z),
                                 object.axis_x * n.x + object.axis_y * n.y + object.axis_z * n.z});
    }
    for (int i = 0; i < 3 * mesh.triangle_count; ++i) view.indices.push_back(first + mesh.indices[i]);
    for (int i = 0; i < mesh.triangle_count; ++i) {
        const bool eye = mesh.vertices[mesh.indices[3 * i]].material == kEyeMaterial;
        view.colours.push_back(eye ? kEyeColour : colour_of_kind(object.kind));
    }
}

ViewScene build_scene(RTCDevice device, const WorldFields& fields, int64_t world, int agent) {
    ViewScene view;
    for (int i = 0; i < object_count(fields); ++i) {
        const Object object = object_of(fields, world, i);
        if (object.kind != DS_ENTITY_NONE && i != agent) add_object(object, view);
    }
    const RTCGeometry geometry = rtcNewGeometry(device, RTC_GEOMETRY_TYPE_TRIANGLE);
    rtcSetSharedGeometryBuffer(geometry, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3, view.vertices.data(), 0,
                               sizeof(Vertex), view.vertices.size());
    rtcSetSharedGeometryBuffer(geometry, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, view.indices.data(), 0, 12,
                               view.indices.size() / 3);
    rtcCommitGeometry(geometry);
    view.scene = rtcNewScene(device);
    rtcAttachGeometry(view.scene, geometry);
    rtcReleaseGeometry(geometry);
    rtcCommitScene(view.scene);
    return view;
}

Vec3 normal_at(const ViewScene& view, const RTCHit& hit) {
    const uint32_t* corners = &view.indices[3 * hit.primID];
    const Vec3 normal = view.vertices[corners[0]].normal * (1.f - hit.u - hit.v) +
                        view.vertices[corners[1]].normal * hit.u + view.vertices[corners[2]].normal * hit.v;
    return normal * (1.f / length(normal));
}

Colour floor_colour(const Camera& camera, Vec3 direction, float distance, float pixel_side) {
    const Vec3 point = camera.origin + direction * distance;
    const NarrowFloat extent_x =
        floor_footprint<NarrowFloat>(distance, direction.x, direction.z, camera.right.x, camera.right.z, camera.up.x,
                                     camera.up.z, pixel_side);
    const NarrowFloat extent_y =
        floor_footprint<NarrowFloat>(distance, direction.y, direction.z, camera.right.y, camera.right.z, camera.up.y,
                                     camera.up.z, pixel_side);
    const float lines = floor_lines<NarrowFloat>(point.x, point.y, extent_x, extent_y).v;
    return {kFloorColour.red + (kFloorLineColour.red - kFloorColour.red) * lines,
            kFloorColour.green + (kFloorLineColour.green - kFloorColour.green) * lines,
            kFloorColour.blue + (kFloorLineColour.blue - kFloorColour.blue) * lines};
}

uint8_t grey_level(float colour) { return static_cast<uint8_t>(255.f * minimum(colour, 1.f) + 0.5f); }

void store(Colour colour, float light, uint8_t* rgb) {
    rgb[0] = grey_level(colour.red * light);
    rgb[1] = grey_level(colour.green * light);
    rgb[2] = grey_level(colour.blue * light);
    rgb[3] = 255;
}

void draw_pixel(const ViewScene& view, const Camera& camera, Vec3 direction, float pixel_side, uint8_t* rgb,
                float* depth) {
    const float to_floor = -camera.origin.z / direction.z;
    const bool floor = direction.z < 0.f && kNearPlane < to_floor && to_floor < kFarPlane;
    RTCRayHit ray;
    ray.ray = {camera.origin.x, camera.origin.y, camera.origin.z,              kNearPlane, direction.x, direction.y,
               direction.z,     0.f,             floor ? to_floor : kFarPlane, ~0u,        0,           0};
    ray.hit.geomID = RTC_INVALID_GEOMETRY_ID;
    ray.hit.instID[0] = RTC_INVALID_GEOMETRY_ID;
    rtcIntersect1(view.scene, &ray, nullptr);

    const bool object = ray.hit.geomID != RTC_INVALID_GEOMETRY_ID;
    *depth = object || floor ? ray.ray.tfar : 0.f;
    if (object) {
        const Vec3 normal = normal_at(view, ray.hit);
        store(view.colours[ray.hit.primID], brightness<NarrowFloat>(normal.x, normal.y, normal.z, 1.f).v, rgb);
    } else if (floor) {
        const float light = brightness<NarrowFloat>(0.f, 0.f, 1.f, 1.f).v;
        store(floor_colour(camera, direction, to_floor, pixel_side), light, rgb);
    } else {
        store(kSkyColour, 1.f, rgb);
    }
}

void draw_view(const ViewScene& view, const CameraRig& rig, const Camera& camera, uint8_t* rgb, float* depth) {
    const float pixel_side = 2.f * rig.tangent_y / static_cast<float>(rig.height);
    for (int row = 0; row < rig.height; ++row) {
        const Vec3 up = camera.up * pixel_up(rig.tangent_y, rig.height, row);
        for (int column = 0; column < rig.width; ++column) {
            const Vec3 direction = camera.forward + camera.right * pixel_right(rig.tangent_x, rig.width, column) + up;
            const int64_t pixel = static_cast<int64_t>(row) * rig.width + column;
            draw_pixel(view, camera, direction, pixel_side, rgb + 4 * pixel, depth + pixel);
        }
    }
}

}  // namespace

// Draws square pixels of the views of agents from 1.5 m above the floor. rgb: [worlds, agents, height, width, 4]; depth
// without the 4. tangent: of half the vertical field of view. Returns an RTCError.
extern "C" __attribute__((visibility("default"))) int plain_embree_draw(const PlainWorlds* worlds, int64_t num_worlds,
                                                                        int32_t width, int32_t height, float tangent,
                                                                        uint8_t* rgb, float* depth) {
    static const RTCDevice device = rtcNewDevice("threads=1,ignore_config_files=1");
    if (!device) return rtcGetDeviceError(nullptr);
    const WorldFields fields = fields_of(*worlds);
    const float aspect = static_cast<float>(width) / static_cast<float>(height);
    const CameraRig rig{width, height, tangent * aspect, tangent, {0.f, 0.f, 1.5f}, {1.f, 0.f, 0.f, 0.f}};
    for (int64_t world = 0; world < num_worlds; ++world) {
        for (int agent = 0; agent < fields.num_agents; ++agent) {
            const ViewScene view = build_scene(device, fields, world, agent);
            const Camera camera = camera_of_agent(rig, fields.body_positions.vector(world, agent),
                                                  fields.body_rotations.quaternion(world, agent));
            const int64_t first = (world * fields.num_agents + agent) * width * height;
            draw_view(view, rig, camera, rgb + 4 * first, depth + first);
            rtcReleaseScene(view.scene);
        }
    }
    return rtcGetDeviceError(device);
}
