// Compiled for AVX2.
#include "render/embree/picture.h"

#include <math.h>
#include <pthread.h>

#include <atomic>
#include <new>

#include "render/api/core.h"
#include "render/embree/floor_paint.h"
#include "render/embree/memory_margin.h"
#include "render/embree/object_scene.h"
#include "render/embree/soft_light.h"
#include "render/scene/look.h"

namespace doorstep {
namespace {

// The floor becomes the background between these distances from the camera, metres.
constexpr float kHazeBegins = 60.f, kHazeEnds = 220.f;
// The light that the floor throws back reaches half of its strength this far above it, metres.
constexpr float kBounceHeight = 0.35f;
constexpr int kPacket = 8;
constexpr int kToneSteps = 4095;  // of the table from the square root of light to a displayed level

// ---- Colours: as displayed outside, linear within

float to_linear(float shown) {
    const double s = static_cast<double>(shown);
    return static_cast<float>(s <= 0.04045 ? s / 12.92 : pow((s + 0.055) / 1.055, 2.4));
}
double to_shown(double linear) { return linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055; }
Vec3 linear_of(const float* shown) { return {to_linear(shown[0]), to_linear(shown[1]), to_linear(shown[2])}; }

struct ToneTable {
    uint8_t levels[kToneSteps + 1];

    ToneTable() {
        for (int i = 0; i <= kToneSteps; ++i) {
            const double root = static_cast<double>(i) / kToneSteps;
            levels[i] = static_cast<uint8_t>(255.0 * to_shown(root * root) + 0.5);
        }
    }
    uint8_t level(float light) const { return levels[static_cast<int>(square_root(light) * kToneSteps + 0.5f)]; }
};

// ---- The scene

// What an object looks like.
struct Finish {
    Vec3 colour;  // linear
    float shine, bevel;
};

// Eight samples and what they hit.
struct Samples {
    LaneVector origins, directions;
    WideMask hit, on_floor;
    Lanes distance;
    Lanes object;  // its number, or -1
    LaneVector points, normals, colours;
    Lanes shine;
};

Object object_from(const ds_picture_object& given) {
    const Quat q{given.rotation[0], given.rotation[1], given.rotation[2], given.rotation[3]};
    return {{given.centre[0], given.centre[1], given.centre[2]},
            rotate(q, {1.f, 0.f, 0.f}),
            rotate(q, {0.f, 1.f, 0.f}),
            rotate(q, {0.f, 0.f, 1.f}),
            Vec3{given.size[0], given.size[1], given.size[2]} * 0.5f,
            given.shape,
            0,
            given.shape == DS_PICTURE_AGENT};
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

class Picture {
public:
    Picture(const ds_picture_config& config, uint8_t* rgb)
        : config_(config),
          rgb_(rgb),
          camera_(camera_from(config)),
          pixel_side_(2.f * camera_.tangent_y / static_cast<float>(config.height * config.samples)),
          ground_(linear_of(config.ground)),
          background_(linear_of(config.background)),
          eye_(linear_of(config.eye)),
          pupil_(linear_of(config.pupil)),
          to_sun_{config.to_sun[0], config.to_sun[1], config.to_sun[2]},
          end_row_(config.num_rows ? config.first_row + config.num_rows : config.height),
          next_row_(config.first_row) {}
    ~Picture() {
        delete[] finishes_;
        delete[] marks_;
    }

    ds_status prepare(const ds_picture_object* objects, uint64_t count);
    void draw();

private:
    static void* draw_rows(void* picture);
    void draw_row(int row, float* sums) const;
    void aim(int row, int first, Samples& samples) const;
    void trace(int count, RTCRayHit8& packet, Samples& samples) const;
    void find_surfaces(const RTCRayHit8& packet, Samples& samples) const;
    void finish_object(int number, WideMask there, const RTCRayHit8& packet, Samples& samples) const;
    void paint_floor(Samples& samples) const;
    LaneVector light(const Samples& samples) const;

    const ds_picture_config& config_;
    uint8_t* rgb_;
    ObjectScene scene_;
    SoftLight soft_light_;
    Finish* finishes_ = nullptr;  // of the objects
    Mark* marks_ = nullptr;
    int mark_count_ = 0;
    const Camera camera_;     // orthographic: the tangents are half the view's extents in metres
    const float pixel_side_;  // of a sample: at depth 1, or in metres
    const Vec3 ground_, background_, eye_, pupil_, to_sun_;
    const ToneTable tones_;
    const int end_row_;  // one after the last row that is drawn
    std::atomic<int> next_row_;
};

ds_status Picture::prepare(const ds_picture_object* objects, uint64_t count) {
    MemoryMargin margin;
    const int64_t needed = kSceneBytes + kCommitBytes + static_cast<int64_t>(count) * kCommitBytesPerObject;
    if (const ds_status status = margin.take("build a scene", needed)) return status;
    const int capacity = static_cast<int>(count);
    if (const ds_status status = scene_.create(capacity, &EmbreeDevice::figure)) return status;
    finishes_ = new (std::nothrow) Finish[count];
    marks_ = new (std::nothrow) Mark[count];
    if (!soft_light_.create(config_, capacity) || !finishes_ || !marks_) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "", "draw fewer objects", "no memory for their colours");
    }
    int seen = 0;
    for (uint64_t i = 0; i < count; ++i) {
        const ds_picture_object& given = objects[i];
        if (given.shape == DS_PICTURE_NONE) continue;
        if (is_on_floor(given.shape)) {
            marks_[mark_count_++] = mark_from(given, linear_of(given.colour));
            continue;
        }
        scene_.objects()[seen] = object_from(given);
        soft_light_.add(scene_.objects()[seen]);
        finishes_[seen++] = {linear_of(given.colour), given.shine, given.bevel};
    }
    return fail_embree(scene_.commit(seen), "build a scene");
}

// ---- Rays

// Samples of a row are numbered pixel by pixel. No two of a pixel share a column or a row of its subgrid.
void Picture::aim(int row, int first, Samples& samples) const {
    const int n = config_.samples;
    const auto within = [n](int major, int minor) {
        return (static_cast<float>(major * n + minor) + 0.5f) / static_cast<float>(n * n);
    };
    float columns[kPacket], rows[kPacket];
    for (int lane = 0; lane < kPacket; ++lane) {
        const int sample = first + lane, pixel = sample / (n * n), i = sample % n, j = sample / n % n;
        columns[lane] = static_cast<float>(pixel) + within(i, j);
        rows[lane] = static_cast<float>(row) + within(j, i);
    }
    const Lanes right = Lanes::load(columns) * Lanes(2.f * camera_.tangent_x / static_cast<float>(config_.width)) -
                        Lanes(camera_.tangent_x);
    const Lanes up = Lanes(camera_.tangent_y) -
                     Lanes::load(rows) * Lanes(2.f * camera_.tangent_y / static_cast<float>(config_.height));
    const LaneVector offset = broadcast(camera_.right) * right + broadcast(camera_.up) * up;
    samples.origins = broadcast(camera_.origin);
    samples.directions = broadcast(camera_.forward);
    (config_.orthographic ? samples.origins : samples.directions) =
        (config_.orthographic ? samples.origins : samples.directions) + offset;
}

// Distance of the floor, or kFarPlane.
Lanes floor_distance(const Samples& samples) {
    const Lanes distance = -samples.origins.z / samples.directions.z;
    const WideMask seen = (samples.directions.z < Lanes(0.f)) & (Lanes(kNearPlane) < distance) &
                          (distance < Lanes(kFarPlane));
    return select(seen, distance, Lanes(kFarPlane));
}

void Picture::trace(int count, RTCRayHit8& packet, Samples& samples) const {
    alignas(32) int valid[kPacket];
    for (int lane = 0; lane < kPacket; ++lane) {
        valid[lane] = lane < count ? -1 : 0;
        packet.hit.geomID[lane] = RTC_INVALID_GEOMETRY_ID;
        packet.ray.mask[lane] = ~0u;
    }
    samples.origins.x.store(packet.ray.org_x);
    samples.origins.y.store(packet.ray.org_y);
    samples.origins.z.store(packet.ray.org_z);
    samples.directions.x.store(packet.ray.dir_x);
    samples.directions.y.store(packet.ray.dir_y);
    samples.directions.z.store(packet.ray.dir_z);
    Lanes(kNearPlane).store(packet.ray.tnear);
    Lanes(0.f).store(packet.ray.time);
    const Lanes floor = floor_distance(samples);
    floor.store(packet.ray.tfar);
    ObjectQuery query;
    scene_.intersect(valid, packet, query, true);

    int hit[kPacket];
    for (int lane = 0; lane < kPacket; ++lane) hit[lane] = packet.hit.geomID[lane] != RTC_INVALID_GEOMETRY_ID;
    samples.hit = is_nonzero(Lanes(0.f), hit);
    samples.on_floor = ~samples.hit & (floor < Lanes(kFarPlane));
    samples.distance = Lanes::load(packet.ray.tfar);
    samples.points = samples.origins + samples.directions * samples.distance;
}

// ---- Surfaces

void Picture::find_surfaces(const RTCRayHit8& packet, Samples& samples) const {
    samples.object = Lanes(-1.f);
    samples.shine = Lanes(0.f);
    samples.normals = broadcast({0.f, 0.f, 1.f});
    samples.colours = broadcast(ground_);
    if (any(samples.on_floor)) paint_floor(samples);
    uint32_t waiting = lane_bits(samples.hit);
    while (waiting) {
        const uint32_t number = packet.hit.primID[lowest_bit(waiting)];
        int same[kPacket];
        for (int lane = 0; lane < kPacket; ++lane) {
            same[lane] = (waiting >> lane & 1) && packet.hit.primID[lane] == number;
        }
        const WideMask there = is_nonzero(Lanes(0.f), same);
        finish_object(static_cast<int>(number), there, packet, samples);
        waiting &= ~lane_bits(there);
    }
}

void Picture::paint_floor(Samples& samples) const {
    // Extents of parallel rays are constant.
    const Lanes t = config_.orthographic ? Lanes(1.f) : samples.distance;
    const LaneVector& d = samples.directions;
    const Lanes extent_x = floor_footprint<Lanes>(t, d.x, d.z, camera_.right.x, camera_.right.z, camera_.up.x,
                                                  camera_.up.z, pixel_side_);
    const Lanes extent_y = floor_footprint<Lanes>(t, d.y, d.z, camera_.right.y, camera_.right.z, camera_.up.y,
                                                  camera_.up.z, pixel_side_);
    const Lanes least(1e-5f);
    for (int i = 0; i < mark_count_; ++i) {
        paint(marks_[i], samples.points, maximum(extent_x, least), maximum(extent_y, least), samples.colours);
    }
}

// Normals near a box's edges turn to those of a rounded edge; the outline stays.
LaneVector bevelled(const Object& box, float bevel, const LaneVector& points, const LaneVector& flat) {
    const LaneVector at = along(points - box.centre, box.axis_x, box.axis_y, box.axis_z);
    const auto beyond = [bevel](Lanes a, float half) {
        const Lanes core(maximum(half - bevel, 0.f));
        return a - clamped(a, -core, core);
    };
    const LaneVector away{beyond(at.x, box.half.x), beyond(at.y, box.half.y), beyond(at.z, box.half.z)};
    const LaneVector turned = broadcast(box.axis_x) * away.x + broadcast(box.axis_y) * away.y +
                              broadcast(box.axis_z) * away.z;
    const Lanes size = square_root(dot(turned, turned));
    return select(Lanes(1e-6f) < size, turned * (Lanes(1.f) / maximum(size, Lanes(1e-6f))), flat);
}

void Picture::finish_object(int number, WideMask there, const RTCRayHit8& packet, Samples& samples) const {
    const Object& object = scene_.objects()[number];
    const Finish& finish = finishes_[number];
    LaneVector normals{Lanes::load(packet.hit.Ng_x), Lanes::load(packet.hit.Ng_y), Lanes::load(packet.hit.Ng_z)};
    LaneVector colours = broadcast(finish.colour);
    if (object.is_mesh) {
        const Lanes material = Lanes::load(packet.hit.u);
        colours = select(equal(material, Lanes(static_cast<float>(kEyeMaterial))), broadcast(eye_), colours);
        colours = select(equal(material, Lanes(static_cast<float>(kPupilMaterial))), broadcast(pupil_), colours);
    } else if (finish.bevel > 0.f) {
        normals = bevelled(object, finish.bevel, samples.points, normals);
    }
    samples.normals = select(there, normals, samples.normals);
    samples.colours = select(there, colours, samples.colours);
    samples.shine = select(there, Lanes(finish.shine), samples.shine);
    samples.object = select(there, Lanes(static_cast<float>(number)), samples.object);
}

// ---- Light

LaneVector Picture::light(const Samples& samples) const {
    const Lanes one(1.f), zero(0.f), half(0.5f);
    const LaneVector& normals = samples.normals;
    const Lanes facing = maximum(dot(normals, to_sun_), zero);
    Lanes sun = facing, sky = half + half * normals.z;
    if (config_.shadows) {
        if (any(zero < facing)) sun = sun * soft_light_.sun(samples.points, samples.object);
        sky = sky * soft_light_.sky(samples.points, normals, samples.object);
    }
    const Lanes height = maximum(samples.points.z, zero);
    const Lanes bounce = (half - half * normals.z) * height / (height + Lanes(kBounceHeight));
    const Lanes received = sun * Lanes(config_.sun) + sky * Lanes(config_.sky) + bounce * Lanes(config_.bounce);
    const LaneVector lit = samples.colours * (received * (one - samples.shine) + samples.shine);

    const Lanes metres = samples.distance * square_root(dot(samples.directions, samples.directions));
    const Lanes haze = to_unit((metres - Lanes(kHazeBegins)) * Lanes(1.f / (kHazeEnds - kHazeBegins)));
    const Lanes veil = config_.orthographic ? zero : zero_unless(samples.on_floor, haze * (Lanes(2.f) - haze));
    const LaneVector seen = mix(lit, broadcast(background_), veil);
    return select(samples.hit | samples.on_floor, seen, broadcast(background_));
}

// ---- The picture

// sums: width * 3 numbers of scratch memory.
void Picture::draw_row(int row, float* sums) const {
    const int per_pixel = config_.samples * config_.samples, count = config_.width * per_pixel;
    for (int i = 0; i < 3 * config_.width; ++i) sums[i] = 0.f;
    for (int first = 0; first < count; first += kPacket) {
        const int drawn = clamp(count - first, 0, kPacket);
        Samples samples;
        RTCRayHit8 packet;
        aim(row, first, samples);
        trace(drawn, packet, samples);
        find_surfaces(packet, samples);
        const LaneVector shown = light(samples);
        float red[kPacket], green[kPacket], blue[kPacket];
        minimum(shown.x, Lanes(1.f)).store(red);
        minimum(shown.y, Lanes(1.f)).store(green);
        minimum(shown.z, Lanes(1.f)).store(blue);
        for (int lane = 0; lane < drawn; ++lane) {
            float* pixel = sums + 3 * ((first + lane) / per_pixel);
            pixel[0] += red[lane];
            pixel[1] += green[lane];
            pixel[2] += blue[lane];
        }
    }
    uint8_t* pixels = rgb_ + static_cast<int64_t>(row) * config_.width * 3;
    const float scale = 1.f / static_cast<float>(per_pixel);
    for (int i = 0; i < 3 * config_.width; ++i) pixels[i] = tones_.level(minimum(sums[i] * scale, 1.f));
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
