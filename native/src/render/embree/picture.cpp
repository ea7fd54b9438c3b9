#include "render/embree/picture.h"

#include <math.h>
#include <pthread.h>

#include <atomic>
#include <new>

#include "render/api/core.h"
#include "render/embree/memory_margin.h"
#include "render/embree/object_scene.h"
#include "render/scene/look.h"

namespace doorstep {
namespace {

// The sky darkens upwards, and the floor blends into it at this distance from the camera, metres.
constexpr Colour kZenithColour = {0.32f, 0.52f, 0.78f};
constexpr float kHazeBegins = 60.f, kHazeEnds = 260.f;
// Shadow rays start this far above the surface.
constexpr float kShadowOffset = 1e-3f;
constexpr int kPacket = 8;

Colour operator*(Colour a, float s) { return {a.red * s, a.green * s, a.blue * s}; }
Colour operator+(Colour a, Colour b) { return {a.red + b.red, a.green + b.green, a.blue + b.blue}; }
Colour mix(Colour a, Colour b, float share) { return a * (1.f - share) + b * share; }

struct Ray {
    Vec3 origin, direction;
};

// A ray's hit; kind kFloorKind, DS_ENTITY_NONE (sky) or an object's.
struct Surface {
    int32_t kind = DS_ENTITY_NONE;
    float distance = 0.f;  // in units of the direction's length
    Vec3 point, normal;
    Colour colour;
};

class Picture {
public:
    Picture(const ds_picture_config& config, uint8_t* rgb)
        : config_(config),
          rgb_(rgb),
          end_row_(config.num_rows ? config.first_row + config.num_rows : config.height),
          next_row_(config.first_row) {}
    ~Picture() { delete[] bodies_; }

    ds_status prepare(const ds_picture_object* objects, uint64_t count);
    void draw();

private:
    static void* draw_rows(void* picture);
    void draw_row(int row, float* samples) const;
    void draw_packet(int row, int first, int count, float* samples) const;
    Ray ray_of(int row, int sample) const;
    Surface surface_of(const Ray& ray, const RTCRayHit8& packet, int lane) const;
    Colour floor_colour(const Ray& ray, float distance, Vec3 point) const;
    void find_shadows(const Surface* surfaces, int count, float* visibility) const;
    Colour colour_of(const Ray& ray, const Surface& surface, float visibility) const;

    const ds_picture_config& config_;
    uint8_t* rgb_;
    ObjectScene scene_;
    Colour* bodies_ = nullptr;  // colours of the objects, except eyes
    Camera camera_{};           // orthographic: the tangents are half the view's extents in metres
    float pixel_side_ = 0.f;    // of a sample: at depth 1, or in metres
    const int end_row_;         // one after the last row that is drawn
    std::atomic<int> next_row_;
};

// ---- The scene

Object object_from(const ds_picture_object& given) {
    const Quat q{given.rotation[0], given.rotation[1], given.rotation[2], given.rotation[3]};
    return {{given.centre[0], given.centre[1], given.centre[2]},
            rotate(q, {1.f, 0.f, 0.f}),
            rotate(q, {0.f, 1.f, 0.f}),
            rotate(q, {0.f, 0.f, 1.f}),
            Vec3{given.size[0], given.size[1], given.size[2]} * 0.5f,
            given.kind,
            0,
            given.kind == DS_ENTITY_AGENT};
}

Colour body_of(const ds_picture_object& given) {
    if (given.tint[0] < 0.f) return colour_of_kind(given.kind);
    return {given.tint[0], given.tint[1], given.tint[2]};
}

Camera camera_from(const ds_picture_config& config) {
    const float half_height = config.orthographic
                                  ? 0.5f * config.vertical_fov
                                  : static_cast<float>(tan(static_cast<double>(config.vertical_fov) * (M_PI / 360.0)));
    const float aspect = static_cast<float>(config.width) / static_cast<float>(config.height);
    const CameraRig rig{config.width, config.height, half_height * aspect, half_height, {}, {1.f, 0.f, 0.f, 0.f}};
    return camera_of_agent(rig, {config.position[0], config.position[1], config.position[2]},
                           {config.rotation[0], config.rotation[1], config.rotation[2], config.rotation[3]});
}

ds_status Picture::prepare(const ds_picture_object* objects, uint64_t count) {
    MemoryMargin margin;
    const int64_t needed = kSceneBytes + kCommitBytes + static_cast<int64_t>(count) * kCommitBytesPerObject;
    if (const ds_status status = margin.take("build a scene", needed)) return status;
    if (const ds_status status = scene_.create(static_cast<int>(count)); status != DS_STATUS_OK) return status;
    bodies_ = new (std::nothrow) Colour[count];
    if (!bodies_) return fail(DS_STATUS_OUT_OF_MEMORY, "", "draw fewer objects", "no memory for their colours");
    int seen = 0;
    for (uint64_t i = 0; i < count; ++i) {
        if (objects[i].hidden || objects[i].kind == DS_ENTITY_NONE) continue;
        scene_.objects()[seen] = object_from(objects[i]);
        bodies_[seen++] = body_of(objects[i]);
    }
    camera_ = camera_from(config_);
    pixel_side_ = 2.f * camera_.tangent_y / static_cast<float>(config_.height * config_.samples);
    return fail_embree(scene_.commit(seen), "build a scene");
}

// ---- Rays

// Samples of a row are numbered pixel by pixel. No two of a pixel share a column or a row of its subgrid.
Ray Picture::ray_of(int row, int sample) const {
    const int n = config_.samples;
    const int pixel = sample / (n * n), i = sample % n, j = sample / n % n;
    const auto within = [n](int major, int minor) {
        return (static_cast<float>(major * n + minor) + 0.5f) / static_cast<float>(n * n);
    };
    const float x = static_cast<float>(pixel) + within(i, j), y = static_cast<float>(row) + within(j, i);
    const float right = camera_.tangent_x * (2.f * x / static_cast<float>(config_.width) - 1.f);
    const float up = camera_.tangent_y * (1.f - 2.f * y / static_cast<float>(config_.height));
    const Vec3 offset = camera_.right * right + camera_.up * up;
    if (config_.orthographic) return {camera_.origin + offset, camera_.forward};
    return {camera_.origin, camera_.forward + offset};
}

void set_ray(RTCRay8& rays, int lane, const Ray& ray, float near, float far) {
    rays.org_x[lane] = ray.origin.x;
    rays.org_y[lane] = ray.origin.y;
    rays.org_z[lane] = ray.origin.z;
    rays.tnear[lane] = near;
    rays.dir_x[lane] = ray.direction.x;
    rays.dir_y[lane] = ray.direction.y;
    rays.dir_z[lane] = ray.direction.z;
    rays.time[lane] = 0.f;
    rays.tfar[lane] = far;
    rays.mask[lane] = ~0u;
}

// Distance of the floor, or kFarPlane.
float floor_distance(const Ray& ray) {
    const float distance = -ray.origin.z / ray.direction.z;
    return ray.direction.z < 0.f && kNearPlane < distance && distance < kFarPlane ? distance : kFarPlane;
}

Surface Picture::surface_of(const Ray& ray, const RTCRayHit8& packet, int lane) const {
    Surface surface;
    surface.distance = packet.ray.tfar[lane];
    surface.point = ray.origin + ray.direction * surface.distance;
    if (packet.hit.geomID[lane] != RTC_INVALID_GEOMETRY_ID) {
        const uint32_t object = packet.hit.primID[lane];
        surface.kind = scene_.objects()[object].kind;
        surface.normal = {packet.hit.Ng_x[lane], packet.hit.Ng_y[lane], packet.hit.Ng_z[lane]};
        surface.colour = packet.hit.u[lane] == static_cast<float>(kEyeMaterial) ? kEyeColour : bodies_[object];
    } else if (surface.distance < kFarPlane) {
        surface.kind = kFloorKind;
        surface.normal = {0.f, 0.f, 1.f};
        surface.colour = floor_colour(ray, surface.distance, surface.point);
    }
    return surface;
}

// ---- Light

Colour Picture::floor_colour(const Ray& ray, float distance, Vec3 point) const {
    // Footprints of parallel rays have a constant size.
    const NarrowFloat t = config_.orthographic ? 1.f : distance;
    const NarrowFloat extent_x = floor_footprint<NarrowFloat>(t, ray.direction.x, ray.direction.z, camera_.right.x,
                                                              camera_.right.z, camera_.up.x, camera_.up.z, pixel_side_);
    const NarrowFloat extent_y = floor_footprint<NarrowFloat>(t, ray.direction.y, ray.direction.z, camera_.right.y,
                                                              camera_.right.z, camera_.up.y, camera_.up.z, pixel_side_);
    const float lines = floor_lines<NarrowFloat>(point.x, point.y, extent_x, extent_y).v;
    return mix(kFloorColour, kFloorLineColour, lines);
}

// visibility: 0 for surfaces in shadow.
void Picture::find_shadows(const Surface* surfaces, int count, float* visibility) const {
    RTCRay8 rays;
    alignas(32) int valid[kPacket] = {};
    for (int lane = 0; lane < count; ++lane) {
        visibility[lane] = 1.f;
        if (surfaces[lane].kind == DS_ENTITY_NONE || !(dot(surfaces[lane].normal, kToLight) > 0.f)) continue;
        valid[lane] = -1;
        const Vec3 origin = surfaces[lane].point + surfaces[lane].normal * kShadowOffset;
        set_ray(rays, lane, {origin, kToLight}, 0.f, kFarPlane);
    }
    ObjectQuery query;
    scene_.occluded(valid, rays, query);
    for (int lane = 0; lane < count; ++lane) {
        if (valid[lane] && rays.tfar[lane] < 0.f) visibility[lane] = 0.f;
    }
}

Colour sky_colour(Vec3 direction) {
    const float rise = direction.z / length(direction);
    return mix(kSkyColour, kZenithColour, maximum(rise, 0.f));
}

Colour Picture::colour_of(const Ray& ray, const Surface& surface, float visibility) const {
    if (surface.kind == DS_ENTITY_NONE) return sky_colour(ray.direction);
    const NarrowFloat light =
        brightness<NarrowFloat>(surface.normal.x, surface.normal.y, surface.normal.z, visibility);
    const Colour lit = surface.colour * light.v;
    if (surface.kind != kFloorKind || config_.orthographic) return lit;
    const float metres = surface.distance * length(ray.direction);
    const float haze = minimum(maximum((metres - kHazeBegins) / (kHazeEnds - kHazeBegins), 0.f), 1.f);
    return mix(lit, kSkyColour, haze * (2.f - haze));
}

// ---- The picture

void Picture::draw_packet(int row, int first, int count, float* samples) const {
    Ray rays[kPacket];
    RTCRayHit8 packet;
    alignas(32) int valid[kPacket] = {};
    for (int lane = 0; lane < count; ++lane) {
        rays[lane] = ray_of(row, first + lane);
        set_ray(packet.ray, lane, rays[lane], kNearPlane, floor_distance(rays[lane]));
        packet.hit.geomID[lane] = RTC_INVALID_GEOMETRY_ID;
        valid[lane] = -1;
    }
    ObjectQuery query;
    scene_.intersect(valid, packet, query, true);

    Surface surfaces[kPacket];
    float visibility[kPacket] = {1.f, 1.f, 1.f, 1.f, 1.f, 1.f, 1.f, 1.f};
    for (int lane = 0; lane < count; ++lane) surfaces[lane] = surface_of(rays[lane], packet, lane);
    if (config_.shadows) find_shadows(surfaces, count, visibility);
    for (int lane = 0; lane < count; ++lane) {
        const Colour colour = colour_of(rays[lane], surfaces[lane], visibility[lane]);
        float* pixel = samples + 3 * ((first + lane) / (config_.samples * config_.samples));
        pixel[0] += minimum(colour.red, 1.f);
        pixel[1] += minimum(colour.green, 1.f);
        pixel[2] += minimum(colour.blue, 1.f);
    }
}

// sums: width * 3 numbers of scratch memory.
void Picture::draw_row(int row, float* sums) const {
    const int per_pixel = config_.samples * config_.samples, count = config_.width * per_pixel;
    for (int i = 0; i < 3 * config_.width; ++i) sums[i] = 0.f;
    for (int first = 0; first < count; first += kPacket) {
        draw_packet(row, first, clamp(count - first, 0, kPacket), sums);
    }
    uint8_t* pixels = rgb_ + static_cast<int64_t>(row) * config_.width * 3;
    const float scale = 255.f / static_cast<float>(per_pixel);
    for (int i = 0; i < 3 * config_.width; ++i) pixels[i] = static_cast<uint8_t>(sums[i] * scale + 0.5f);
}

void* Picture::draw_rows(void* picture) {
    auto& self = *static_cast<Picture*>(picture);
    float sums[3 * DS_MAX_RESOLUTION];
    for (int row = self.next_row_++; row < self.end_row_; row = self.next_row_++) self.draw_row(row, sums);
    return nullptr;
}

// If a thread cannot be started, the others draw its rows.
void Picture::draw() {
    pthread_t threads[DS_MAX_THREADS];
    int started = 0;
    const int helpers = clamp(config_.num_threads, 1, end_row_ - config_.first_row) - 1;
    while (started < helpers && pthread_create(&threads[started], nullptr, draw_rows, this) == 0) ++started;
    draw_rows(this);
    for (int i = 0; i < started; ++i) pthread_join(threads[i], nullptr);
}

}  // namespace

ds_status draw_picture(const ds_picture_object* objects, uint64_t count, const ds_picture_config& config,
                       uint8_t* rgb) {
    Picture picture(config, rgb);
    if (const ds_status status = picture.prepare(objects, count); status != DS_STATUS_OK) return status;
    picture.draw();
    return DS_STATUS_OK;
}

}  // namespace doorstep
