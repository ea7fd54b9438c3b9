// Traces packets of eight rays, 4 x 2 pixels, from the camera and writes the pixels. Compiled for AVX2.
#include "render/embree/object_scene.h"

#include <immintrin.h>
#include <string.h>

#include "math/lanes.h"
#include "render/scene/look.h"

namespace doorstep {
namespace {

using Lanes = WideFloat;
using Mask = WideMask;

constexpr int kPacketWidth = 4, kPacketHeight = 2;

// Colours and segmentation of objects, by their numbers.
struct Surfaces {
    float red[2][kMaxObjects], green[2][kMaxObjects], blue[2][kMaxObjects];  // by material
    int32_t segmentation[kMaxObjects];                                      // kind + 256 * slot
};

struct View {
    Camera camera;
    int32_t width, height;
    float pixel_side;  // at depth 1
    uint8_t* rgb;
    float* depth;
    uint16_t* segmentation;
    float* normals;
};

struct Pixels {
    Lanes depth, normal_x, normal_y, normal_z;
    __m256i colour, segmentation;
};

void add_object(const Object& object, int index, Surfaces& surfaces) {
    const Colour body = colour_of_kind(object.kind);
    surfaces.red[kBodyMaterial][index] = body.red;
    surfaces.green[kBodyMaterial][index] = body.green;
    surfaces.blue[kBodyMaterial][index] = body.blue;
    surfaces.red[kEyeMaterial][index] = kEyeColour.red;
    surfaces.green[kEyeMaterial][index] = kEyeColour.green;
    surfaces.blue[kEyeMaterial][index] = kEyeColour.blue;
    surfaces.segmentation[index] = static_cast<int32_t>(segmentation_of(object.kind, object.slot));
}

// bodies: indices of the agents' bodies among the objects; -1: not drawn.
int collect_objects(const WorldFields& fields, int64_t world, Object* objects, Surfaces& surfaces,
                    int (&bodies)[DS_MAX_AGENTS]) {
    int count = 0;
    for (int i = 0; i < object_count(fields); ++i) {
        const Object object = object_of(fields, world, i);
        const bool seen = can_be_seen(object);
        if (i < fields.num_agents) bodies[i] = seen ? count : -1;
        if (!seen) continue;
        add_object(object, count, surfaces);
        objects[count++] = object;
    }
    return count;
}

// ---- One packet

struct PacketRays {
    Lanes x, y, z;  // directions
    Lanes floor;    // depth of the floor; kFarPlane where it is not visible
};

PacketRays rays_of(const Camera& camera, Lanes right, Lanes up) {
    const auto along = [&](float r, float u, float f) { return right * Lanes(r) + (up * Lanes(u) + Lanes(f)); };
    const Lanes x = along(camera.right.x, camera.up.x, camera.forward.x);
    const Lanes y = along(camera.right.y, camera.up.y, camera.forward.y);
    const Lanes z = along(camera.right.z, camera.up.z, camera.forward.z);
    const Lanes depth = Lanes(-camera.origin.z) / z;
    const Mask seen = (z < Lanes(0.f)) & (Lanes(kNearPlane) < depth) & (depth < Lanes(kFarPlane));
    return {x, y, z, select(seen, depth, Lanes(kFarPlane))};
}

// 0 .. 255, rounded.
__m256i grey_level(Lanes colour) {
    return _mm256_cvtps_epi32((minimum(maximum(colour, Lanes(0.f)), Lanes(1.f)) * Lanes(255.f)).v);
}

// The floor's grid at the hit points of all lanes.
Lanes lines_on_floor(const View& view, const PacketRays& rays) {
    const Camera& camera = view.camera;
    const Lanes x = Lanes(camera.origin.x) + rays.floor * rays.x, y = Lanes(camera.origin.y) + rays.floor * rays.y;
    const Lanes extent_x = floor_footprint(rays.floor, rays.x, rays.z, camera.right.x, camera.right.z, camera.up.x,
                                           camera.up.z, view.pixel_side);
    const Lanes extent_y = floor_footprint(rays.floor, rays.y, rays.z, camera.right.y, camera.right.z, camera.up.y,
                                           camera.up.z, view.pixel_side);
    return floor_lines(x, y, extent_x, extent_y);
}

// What the rays of a packet hit.
struct Hits {
    Mask on_object, on_floor;
    __m256i object, material;  // for hits of objects
    Lanes normal_x, normal_y, normal_z;
};

__m256i load_lanes(const unsigned* from) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(from)); }
__m256i lanes_of(int value) { return _mm256_set1_epi32(value); }

Hits hits_of(const PacketRays& rays, const RTCHit8& hit) {
    const Mask on_object{_mm256_castsi256_ps(_mm256_cmpeq_epi32(load_lanes(hit.geomID), lanes_of(0)))};
    const Mask on_floor = ~on_object & (rays.floor < Lanes(kFarPlane));
    return {on_object,
            on_floor,
            load_lanes(hit.primID),
            _mm256_cvttps_epi32(Lanes::load(hit.u).v),
            zero_unless(on_object, Lanes::load(hit.Ng_x)),
            zero_unless(on_object, Lanes::load(hit.Ng_y)),
            select(on_object, Lanes::load(hit.Ng_z), zero_unless(on_floor, Lanes(1.f)))};
}

// Red, green, blue, 255 in each lane.
__m256i colours_of(const View& view, const Surfaces& surfaces, const PacketRays& rays, const Hits& hits) {
    const Lanes lines = any(hits.on_floor) ? lines_on_floor(view, rays) : Lanes(0.f);
    const Lanes light = brightness(hits.normal_x, hits.normal_y, hits.normal_z, Lanes(1.f));
    const Mask seen = hits.on_object | hits.on_floor;
    const __m256i row = _mm256_add_epi32(hits.object, _mm256_mullo_epi32(hits.material, lanes_of(kMaxObjects)));
    const auto channel = [&](const float (&colour)[2][kMaxObjects], float floor, float line, float sky) {
        const Lanes object = _mm256_mask_i32gather_ps(_mm256_setzero_ps(), &colour[0][0], row, hits.on_object.v, 4);
        const Lanes base = select(hits.on_object, object, Lanes(floor) + Lanes(line - floor) * lines);
        return grey_level(select(seen, light * base, Lanes(sky)));
    };
    const __m256i red = channel(surfaces.red, kFloorColour.red, kFloorLineColour.red, kSkyColour.red);
    const __m256i green = channel(surfaces.green, kFloorColour.green, kFloorLineColour.green, kSkyColour.green);
    const __m256i blue = channel(surfaces.blue, kFloorColour.blue, kFloorLineColour.blue, kSkyColour.blue);
    const __m256i red_green = _mm256_or_si256(red, _mm256_slli_epi32(green, 8));
    const __m256i blue_opaque = _mm256_or_si256(_mm256_slli_epi32(blue, 16), lanes_of(static_cast<int>(0xFF000000u)));
    return _mm256_or_si256(red_green, blue_opaque);
}

Pixels shade(const View& view, const Surfaces& surfaces, const PacketRays& rays, const RTCRayHit8& packet) {
    const Hits hits = hits_of(rays, packet.hit);
    const __m256i floor_kind = _mm256_and_si256(_mm256_castps_si256(hits.on_floor.v), lanes_of(kFloorKind));
    return {zero_unless(hits.on_object | hits.on_floor, Lanes::load(packet.ray.tfar)),
            hits.normal_x,
            hits.normal_y,
            hits.normal_z,
            colours_of(view, surfaces, rays, hits),
            _mm256_mask_i32gather_epi32(floor_kind, surfaces.segmentation, hits.object,
                                        _mm256_castps_si256(hits.on_object.v), 4)};
}

// ---- Storing pixels

void store_row(__m128i values, void* to) { _mm_storeu_si128(static_cast<__m128i*>(to), values); }

// A packet inside the picture: two rows of four pixels.
void store_rows(const View& view, const Pixels& pixels, int64_t first) {
    const int64_t second = first + view.width;
    if (view.rgb) {
        store_row(_mm256_castsi256_si128(pixels.colour), view.rgb + 4 * first);
        store_row(_mm256_extracti128_si256(pixels.colour, 1), view.rgb + 4 * second);
    }
    if (view.depth) {
        _mm_storeu_ps(view.depth + first, _mm256_castps256_ps128(pixels.depth.v));
        _mm_storeu_ps(view.depth + second, _mm256_extractf128_ps(pixels.depth.v, 1));
    }
    if (view.segmentation) {
        const __m256i halves = _mm256_packus_epi32(pixels.segmentation, pixels.segmentation);
        _mm_storel_epi64(reinterpret_cast<__m128i*>(view.segmentation + first), _mm256_castsi256_si128(halves));
        _mm_storel_epi64(reinterpret_cast<__m128i*>(view.segmentation + second), _mm256_extracti128_si256(halves, 1));
    }
}

// Lane by lane; `lanes`: bits of those to store.
template <class Store>
void for_lanes(const View& view, int64_t first, uint32_t lanes, Store store) {
    while (lanes) {
        const int lane = take_lowest_bit(lanes);
        store(lane, first + lane % kPacketWidth + lane / kPacketWidth * view.width);
    }
}

void store_normals(const View& view, const Pixels& pixels, int64_t first, uint32_t lanes) {
    float x[8], y[8], z[8];
    pixels.normal_x.store(x);
    pixels.normal_y.store(y);
    pixels.normal_z.store(z);
    for_lanes(view, first, lanes, [&](int lane, int64_t pixel) {
        view.normals[3 * pixel] = x[lane];
        view.normals[3 * pixel + 1] = y[lane];
        view.normals[3 * pixel + 2] = z[lane];
    });
}

// A packet at the right or lower edge.
void store_lanes(const View& view, const Pixels& pixels, int64_t first, uint32_t lanes) {
    float depth[8];
    uint32_t colour[8], segmentation[8];
    pixels.depth.store(depth);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(colour), pixels.colour);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(segmentation), pixels.segmentation);
    for_lanes(view, first, lanes, [&](int lane, int64_t pixel) {
        if (view.rgb) memcpy(view.rgb + 4 * pixel, &colour[lane], 4);
        if (view.depth) view.depth[pixel] = depth[lane];
        if (view.segmentation) view.segmentation[pixel] = static_cast<uint16_t>(segmentation[lane]);
    });
}

// ---- One view

// A view from an impossible camera position: neither objects nor floor.
constexpr Camera kNowhere = {{0.f, 0.f, __builtin_nanf("")}, {}, {}, {}, 0.f, 0.f};

// Bits of the lanes inside the picture, for the packet whose first pixel is (column, row).
uint32_t lanes_inside(const View& view, int column, int row) {
    const int columns = clamp(view.width - column, 0, kPacketWidth);
    const uint32_t one_row = (1u << columns) - 1;
    return row + 1 < view.height ? one_row | one_row << kPacketWidth : one_row;
}

void set_origin(const Camera& camera, RTCRayHit8& packet) {
    Lanes(camera.origin.x).store(packet.ray.org_x);
    Lanes(camera.origin.y).store(packet.ray.org_y);
    Lanes(camera.origin.z).store(packet.ray.org_z);
    Lanes(kNearPlane).store(packet.ray.tnear);
    Lanes(0.f).store(packet.ray.time);
    for (int lane = 0; lane < 8; ++lane) packet.ray.mask[lane] = ~0u;
}

void draw_view(const View& view, const Surfaces& surfaces, const ObjectScene& scene, int hidden) {
    constexpr uint32_t kAllLanes = 0xFF;
    alignas(32) static constexpr int kSeeing[8] = {-1, -1, -1, -1, -1, -1, -1, -1}, kBlind[8] = {};
    const int* valid = can_look(view.camera) ? kSeeing : kBlind;
    const __m256i none = lanes_of(-1);
    ObjectQuery query;
    query.hidden = hidden;
    RTCRayHit8 packet;
    set_origin(view.camera, packet);
    const Lanes lane_columns(_mm256_setr_ps(0, 1, 2, 3, 0, 1, 2, 3)), lane_rows(_mm256_setr_ps(0, 0, 0, 0, 1, 1, 1, 1));
    const Lanes two(2.f), one(1.f), tangent_x(view.camera.tangent_x), tangent_y(view.camera.tangent_y);

    for (int row = 0; row < view.height; row += kPacketHeight) {
        const Lanes rows = Lanes(static_cast<float>(row)) + lane_rows;
        const Lanes up = tangent_y * (one - (two * rows + one) / Lanes(static_cast<float>(view.height)));
        for (int column = 0; column < view.width; column += kPacketWidth) {
            const Lanes columns = Lanes(static_cast<float>(column)) + lane_columns;
            const Lanes right = tangent_x * ((two * columns + one) / Lanes(static_cast<float>(view.width)) - one);
            const PacketRays rays = rays_of(view.camera, right, up);
            rays.x.store(packet.ray.dir_x);
            rays.y.store(packet.ray.dir_y);
            rays.z.store(packet.ray.dir_z);
            rays.floor.store(packet.ray.tfar);
            _mm256_store_si256(reinterpret_cast<__m256i*>(packet.hit.geomID), none);
            scene.intersect(valid, packet, query, true);

            const Pixels pixels = shade(view, surfaces, rays, packet);
            const uint32_t lanes = lanes_inside(view, column, row);
            const int64_t first = static_cast<int64_t>(row) * view.width + column;
            if (lanes == kAllLanes) {
                store_rows(view, pixels, first);
            } else {
                store_lanes(view, pixels, first, lanes);
            }
            if (view.normals) store_normals(view, pixels, first, lanes);
        }
    }
}

template <class Component>
Component* view_of(Component* tensor, int64_t first_pixel, int components) {
    return tensor ? tensor + first_pixel * components : nullptr;
}

}  // namespace

RTCError draw_world(const Views& views, int64_t world, ObjectScene& scene) {
    const WorldFields& fields = views.fields;
    const CameraRig& rig = views.rig;
    const ViewTensors& tensors = views.tensors;
    Surfaces surfaces;
    int bodies[DS_MAX_AGENTS];
    const RTCError error = scene.commit(collect_objects(fields, world, scene.objects(), surfaces, bodies));
    if (error != RTC_ERROR_NONE) return error;
    for (int agent = 0; agent < fields.num_agents; ++agent) {
        const Camera camera = camera_of_agent(rig, fields.body_positions.vector(world, agent),
                                              fields.body_rotations.quaternion(world, agent));
        const int64_t first = (world * fields.num_agents + agent) * rig.width * rig.height;
        const View view{can_look(camera) ? camera : kNowhere,
                        rig.width,
                        rig.height,
                        2.f * rig.tangent_y / static_cast<float>(rig.height),
                        view_of(tensors.rgb, first, 4),
                        view_of(tensors.depth, first, 1),
                        reinterpret_cast<uint16_t*>(view_of(tensors.segmentation, first, 2)),
                        view_of(tensors.normals, first, 3)};
        draw_view(view, surfaces, scene, bodies[agent]);
    }
    return RTC_ERROR_NONE;
}

}  // namespace doorstep
