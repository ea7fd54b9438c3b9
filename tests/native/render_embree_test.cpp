// Rendering with Embree, against a ray tracer in double precision.
#include <dirent.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "check.h"
#include "drawn_views.h"
#include "level_worlds.h"
#include "render/api/core.h"
#include "render/cameras/renderers.h"
#include "render/embree/object_scene.h"
#include "render/embree/picture.h"
#include "render_worlds.h"

using namespace doorstep;
using reference::Hit;
using reference::Ray;
using reference::Vector;

namespace {

alignas(32) constexpr int kAll[8] = {-1, -1, -1, -1, -1, -1, -1, -1};

// ---- Embree itself

int count_threads() {
    DIR* directory = opendir("/proc/self/task");
    CHECK(directory);
    int count = 0;
    while (const dirent* entry = readdir(directory)) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

// Must run first: a device that reads configuration files would start four threads because of the file written here.
void embree_starts_no_threads_and_reads_no_files() {
    char folder[] = "/tmp/embree_home_XXXXXX";
    CHECK(mkdtemp(folder));
    setenv("HOME", folder, 1);
    const std::string file = std::string(folder) + "/.embree4";
    FILE* written = fopen(file.c_str(), "w");
    CHECK(written && fputs("threads=4\nstart_threads=1\n", written) > 0);
    fclose(written);

    const EmbreeDevice* device;
    CHECK_EQUAL(get_embree_device(&device), DS_STATUS_OK);
    CHECK_EQUAL(count_threads(), 1);
    CHECK(device->version >= 40300 && device->version < 50000);

    const RTCDevice configured = rtcNewDevice(nullptr);
    cpu_set_t processors;
    CHECK_EQUAL(sched_getaffinity(0, sizeof processors, &processors), 0);
    CHECK(count_threads() > 1 || CPU_COUNT(&processors) == 1);  // Embree starts at most one a processor
    rtcReleaseDevice(configured);
    unlink(file.c_str());
    rmdir(folder);
}

// A triangle in the plane z = 2 with corners (0, 0), (4, 0), (0, 4): every field of a hit is known.
void structs_are_laid_out_as_embrees() {
    const EmbreeDevice* shared;
    CHECK_EQUAL(get_embree_device(&shared), DS_STATUS_OK);
    alignas(16) const float vertices[12] = {0, 0, 2, 4, 0, 2, 0, 4, 2, 0, 0, 0};
    const uint32_t indices[6] = {0, 0, 0, 0, 1, 2};
    const RTCGeometry geometry = rtcNewGeometry(shared->device, RTC_GEOMETRY_TYPE_TRIANGLE);
    rtcSetSharedGeometryBuffer(geometry, RTC_BUFFER_TYPE_VERTEX, 0, RTC_FORMAT_FLOAT3, vertices, 0, 12, 3);
    rtcSetSharedGeometryBuffer(geometry, RTC_BUFFER_TYPE_INDEX, 0, RTC_FORMAT_UINT3, indices, 0, 12, 2);
    rtcSetGeometryMask(geometry, 4);
    rtcCommitGeometry(geometry);
    const RTCScene scene = rtcNewScene(shared->device);
    CHECK_EQUAL(rtcAttachGeometry(scene, geometry), 0);
    rtcReleaseGeometry(geometry);
    rtcCommitScene(scene);
    CHECK_EQUAL(rtcGetDeviceError(shared->device), RTC_ERROR_NONE);

    RTCRayHit8 packet;
    for (int i = 0; i < 8; ++i) {
        packet.ray.org_x[i] = 1;
        packet.ray.org_y[i] = i == 5 ? 9 : 2;  // lane 5 misses
        packet.ray.org_z[i] = -1;
        packet.ray.tnear[i] = i == 4 ? 1.6f : 0;  // lane 4 starts behind it
        packet.ray.dir_x[i] = packet.ray.dir_y[i] = packet.ray.time[i] = 0;
        packet.ray.dir_z[i] = 2;
        packet.ray.tfar[i] = i == 3 ? 1.4f : 100;  // lane 3 ends before it
        packet.ray.mask[i] = i == 2 ? 3 : 4;       // lane 2 is masked
        packet.ray.id[i] = packet.ray.flags[i] = 0;
        packet.hit.primID[i] = packet.hit.geomID[i] = packet.hit.instID[0][i] = packet.hit.instPrimID[0][i] =
            RTC_INVALID_GEOMETRY_ID;
    }
    const RTCRayHit8 before = packet;
    alignas(32) int valid[8] = {-1, -1, -1, -1, -1, -1, 0, -1};  // lane 6 is inactive
    rtcIntersect8(valid, scene, &packet, nullptr);
    for (int i = 0; i < 8; ++i) {
        const bool hit = i < 2 || i == 7;
        CHECK_EQUAL(packet.hit.geomID[i], hit ? 0u : RTC_INVALID_GEOMETRY_ID);
        CHECK_EQUAL(packet.hit.primID[i], hit ? 1u : RTC_INVALID_GEOMETRY_ID);
        CHECK_EQUAL(packet.hit.instID[0][i], RTC_INVALID_GEOMETRY_ID);
        CHECK_EQUAL(packet.hit.instPrimID[0][i], RTC_INVALID_GEOMETRY_ID);
        CHECK_NEAR(packet.ray.tfar[i], hit ? 1.5f : before.ray.tfar[i], 1e-6);
        if (!hit) continue;
        CHECK_NEAR(packet.hit.u[i], 0.25, 1e-6);
        CHECK_NEAR(packet.hit.v[i], 0.5, 1e-6);
        CHECK_NEAR(packet.hit.Ng_x[i], 0, 1e-6);
        CHECK_NEAR(packet.hit.Ng_y[i], 0, 1e-6);
        CHECK_NEAR(packet.hit.Ng_z[i], 16, 1e-5);
    }
    CHECK(memcmp(&packet.ray.mask, &before.ray.mask, 3 * 32) == 0);

    RTCRayHit single{};
    single.ray = {1, 2, -1, 0, 0, 0, 2, 0, 100, 4, 0, 0};
    single.hit.geomID = single.hit.instID[0] = single.hit.instPrimID[0] = RTC_INVALID_GEOMETRY_ID;
    rtcIntersect1(scene, &single, nullptr);
    CHECK_NEAR(single.ray.tfar, 1.5, 1e-6);
    CHECK_NEAR(single.hit.u, 0.25, 1e-6);
    CHECK_NEAR(single.hit.v, 0.5, 1e-6);
    CHECK_NEAR(single.hit.Ng_z, 16, 1e-5);
    CHECK_EQUAL(single.hit.primID, 1);
    CHECK_EQUAL(single.hit.geomID, 0);
    CHECK_EQUAL(single.hit.instID[0], RTC_INVALID_GEOMETRY_ID);

    RTCRay8 rays = before.ray;
    rtcOccluded8(valid, scene, &rays, nullptr);
    for (int i = 0; i < 8; ++i) CHECK((rays.tfar[i] < 0) == (i < 2 || i == 7));
    rtcReleaseScene(scene);
}

// ---- Objects

struct ManyObjects {
    ObjectScene scene;
    std::vector<reference::Triangle> triangles;

    // The objects of a world.
    ManyObjects() {
        static const RenderWorlds worlds(1);
        const WorldFields fields = worlds.fields();
        CHECK_EQUAL(scene.create(kMaxObjects), DS_STATUS_OK);
        int count = 0;
        for (int i = 0; i < object_count(fields); ++i) {
            const Object object = object_of(fields, 0, i);
            if (object.kind == DS_ENTITY_NONE) continue;
            reference::add_triangles(object, count, triangles);
            scene.objects()[count++] = object;
        }
        CHECK_EQUAL(scene.commit(count), RTC_ERROR_NONE);
    }
};

void set_ray(RTCRay8& rays, int lane, const Ray& ray) {
    rays.org_x[lane] = static_cast<float>(ray.origin.x);
    rays.org_y[lane] = static_cast<float>(ray.origin.y);
    rays.org_z[lane] = static_cast<float>(ray.origin.z);
    rays.dir_x[lane] = static_cast<float>(ray.direction.x);
    rays.dir_y[lane] = static_cast<float>(ray.direction.y);
    rays.dir_z[lane] = static_cast<float>(ray.direction.z);
    rays.tnear[lane] = kNearPlane;
    rays.tfar[lane] = kFarPlane;
    rays.time[lane] = 0.f;
    rays.mask[lane] = ~0u;
}

// Between two random positions, in float precision.
Ray random_ray(Draws& draws) {
    const auto place = [&] {
        return Vec3{draws.between(-6.f, 6.f), draws.between(-8.f, 8.f), draws.between(0.f, 4.f)};
    };
    const Vec3 from = place(), to = place();
    return {reference::from(from), reference::from(to - from)};
}

// Near edges rounding decides: a ray shifted slightly hits another object or is much longer.
bool is_clear(const Ray& ray, const Hit& hit, const std::vector<reference::Triangle>& triangles, int hidden) {
    for (int axis = 0; axis < 3; ++axis) {
        for (const double step : {-1e-4, 1e-4}) {
            Ray moved = ray;
            (axis == 0 ? moved.origin.x : axis == 1 ? moved.origin.y : moved.origin.z) += step;
            const Hit other = reference::trace(moved, triangles, hidden, false);
            if (!(other == hit)) return false;
            if (hit.object >= 0 && fabs(other.distance - hit.distance) > 0.01) return false;
            if (hit.object >= 0 && reference::dot(other.normal, hit.normal) < 0.999) return false;
        }
    }
    return true;
}

void packets_hit_what_the_reference_hits() {
    ManyObjects many;
    Draws draws{11};
    int clear = 0, hits = 0, agents = 0;
    const int count = 1500;
    for (int i = 0; i < count; ++i) {
        ObjectQuery query;
        query.hidden = i % 3 - 1;
        RTCRayHit8 packet;
        Ray rays[8];
        for (int lane = 0; lane < 8; ++lane) {
            rays[lane] = random_ray(draws);
            set_ray(packet.ray, lane, rays[lane]);
            packet.hit.geomID[lane] = RTC_INVALID_GEOMETRY_ID;
        }
        RTCRay8 blocked = packet.ray;
        many.scene.intersect(kAll, packet, query, false);
        many.scene.occluded(kAll, blocked, query);
        const int lane = i % 8;
        const Hit hit = reference::trace(rays[lane], many.triangles, query.hidden, false);
        if (!is_clear(rays[lane], hit, many.triangles, query.hidden)) continue;
        ++clear;
        if (hit.object == reference::kSky) {
            CHECK_EQUAL(packet.hit.geomID[lane], RTC_INVALID_GEOMETRY_ID);
            CHECK_EQUAL(packet.ray.tfar[lane], kFarPlane);
            continue;
        }
        ++hits;
        agents += hit.object < RenderWorlds::kAgents;
        CHECK_EQUAL(packet.hit.geomID[lane], 0);
        CHECK_EQUAL(packet.hit.primID[lane], hit.object);
        CHECK_NEAR(packet.ray.tfar[lane], hit.distance, 1e-5);
        CHECK_NEAR(packet.hit.Ng_x[lane], hit.normal.x, 1e-3);
        CHECK_NEAR(packet.hit.Ng_y[lane], hit.normal.y, 1e-3);
        CHECK_NEAR(packet.hit.Ng_z[lane], hit.normal.z, 1e-3);
        CHECK_EQUAL(packet.hit.u[lane], hit.material);
        CHECK(blocked.tfar[lane] < 0);
    }
    CHECK(clear > count * 8 / 10 && hits > count / 3 && agents > count / 30);
}

void rays_from_inside_see_through() {
    ObjectScene scene;
    CHECK_EQUAL(scene.create(2), DS_STATUS_OK);
    scene.objects()[0] = {{0, 0, 1}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}, DS_ENTITY_AGENT, 0, true};
    scene.objects()[1] = {{0, 9, 1}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}, DS_ENTITY_CUBE, 0, false};
    CHECK_EQUAL(scene.commit(2), RTC_ERROR_NONE);
    RTCRayHit8 packet;
    for (int lane = 0; lane < 8; ++lane) {
        const double y = lane < 4 ? 0 : 9;  // within the agent, within the cube
        set_ray(packet.ray, lane, {{0.1 * lane, y, 1}, {0, 1, 0.01}});
        packet.hit.geomID[lane] = RTC_INVALID_GEOMETRY_ID;
    }
    ObjectQuery query;
    scene.intersect(kAll, packet, query, true);
    for (int lane = 0; lane < 8; ++lane) {
        CHECK_EQUAL(packet.hit.geomID[lane], lane < 4 ? 0 : RTC_INVALID_GEOMETRY_ID);
        if (lane < 4) CHECK_EQUAL(packet.hit.primID[lane], 1);
        if (lane < 4) CHECK_NEAR(packet.ray.tfar[lane], 8, 1e-5);
    }
}

// ---- Views

struct EmbreeViews : DrawnViews {
    EmbreeViews(const RenderWorlds& worlds, int width, int height)
        : DrawnViews(create_embree_renderer, worlds.fields(), worlds.num_worlds, width, height) {}
};

ComparedPixels check_embree(int num_worlds, int width, int height) {
    const RenderWorlds worlds(num_worlds);
    return check_views(EmbreeViews(worlds, width, height));
}

void views_are_what_the_reference_sees() {
    const ComparedPixels compared = check_embree(5, 48, 36);
    CHECK(compared.silhouettes * 25 < compared.all);
    for (const int kind : {DS_ENTITY_BUTTON, DS_ENTITY_CUBE, DS_ENTITY_WALL, DS_ENTITY_AGENT, DS_ENTITY_DOOR}) {
        CHECK(compared.kinds[kind] > 5);
    }
}

void views_of_as_many_objects_as_there_are_are_what_the_reference_sees() {
    const LevelWorlds worlds(DS_MAX_AGENTS, 2, 17, kMostSlots);
    CHECK_EQUAL(object_count(worlds.fields()), kMaxObjects);
    const DrawnViews drawn(create_embree_renderer, worlds.fields(), worlds.num_worlds(), 20, 16);
    CHECK(check_views(drawn).kinds[DS_ENTITY_AGENT] > 50);
}

// Packets are 4 x 2 pixels.
void views_of_any_size_are_complete() {
    check_embree(1, 13, 7);
    check_embree(1, 1, 1);
    check_embree(1, 3, 2);
}

void only_what_is_wanted_is_written() {
    const RenderWorlds worlds(2);
    EmbreeViews drawn(worlds, 20, 10);
    const std::vector<uint8_t> rgb = drawn.rgb, segmentation = drawn.segmentation;
    const std::vector<float> depth = drawn.depth, normals = drawn.normals;
    for (int only = 0; only < 4; ++only) {
        memset(drawn.rgb.data(), 1, drawn.rgb.size());
        memset(drawn.segmentation.data(), 1, drawn.segmentation.size());
        for (float& value : drawn.depth) value = 1.f;
        for (float& value : drawn.normals) value = 1.f;
        drawn.views.tensors = {only == 0 ? drawn.rgb.data() : nullptr, only == 1 ? drawn.depth.data() : nullptr,
                               only == 2 ? drawn.segmentation.data() : nullptr,
                               only == 3 ? drawn.normals.data() : nullptr};
        drawn.draw();
        CHECK((drawn.rgb == rgb) == (only == 0));
        CHECK((drawn.depth == depth) == (only == 1));
        CHECK((drawn.segmentation == segmentation) == (only == 2));
        CHECK((drawn.normals == normals) == (only == 3));
    }
}

void what_has_no_place_is_not_drawn() {
    RenderWorlds worlds(2);
    const EmbreeViews whole(worlds, 32, 24);
    RenderWorlds without = worlds;
    worlds.body_positions[2 * 3 + 1] = NAN;
    worlds.body_positions[3 * 3] = -INFINITY;
    worlds.body_rotations[4 * 4] = INFINITY;
    worlds.static_sizes[0] = NAN;
    worlds.static_positions[1 * 3 + 2] = INFINITY;
    for (int i = 2; i < 5; ++i) without.body_kinds[static_cast<size_t>(i)] = DS_ENTITY_NONE;
    without.static_kinds[0] = without.static_kinds[1] = DS_ENTITY_NONE;
    const EmbreeViews broken(worlds, 32, 24), less(without, 32, 24);
    CHECK(broken.rgb == less.rgb && broken.segmentation == less.segmentation && broken.depth == less.depth);
    const size_t one_world = whole.rgb.size() / 2;
    CHECK(memcmp(whole.rgb.data() + one_world, broken.rgb.data() + one_world, one_world) == 0);
    CHECK(memcmp(whole.rgb.data(), broken.rgb.data(), one_world) != 0);
}

void an_agent_without_a_place_sees_the_sky() {
    for (const float nowhere : {NAN, INFINITY, 1e30f}) {
        RenderWorlds worlds(1);
        worlds.body_positions[0] = nowhere;
        const EmbreeViews drawn(worlds, 16, 16);
        for (size_t i = 0; i < 16 * 16; ++i) {
            CHECK(drawn.segmentation[2 * i] == 0 && drawn.depth[i] == 0.f && drawn.normals[3 * i + 2] == 0.f);
            CHECK_EQUAL(drawn.rgb[4 * i + 2], 230);  // of the sky, 0.9
        }
    }
}

void agents_do_not_see_themselves_when_others_are_gone() {
    RenderWorlds worlds(1), without(1);
    worlds.body_kinds[0] = DS_ENTITY_NONE;
    without.body_positions[0] = without.body_positions[1] = 9e5f;
    const EmbreeViews drawn(worlds, 32, 24), expected(without, 32, 24);
    const size_t view = 4 * 32 * 24;
    CHECK(memcmp(drawn.rgb.data() + view, expected.rgb.data() + view, view) == 0);
}

void whatever_else_is_of_the_agents_kind_is_a_box() {
    RenderWorlds walls(1), agents(1);
    agents.static_kinds[0] = DS_ENTITY_AGENT;
    const EmbreeViews drawn(agents, 32, 24), expected(walls, 32, 24);
    CHECK(drawn.depth == expected.depth && drawn.normals == expected.normals);
}

// mallinfo2() is too new for the systems that the library is built for; below 2 GiB mallinfo() reports the same.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
size_t allocated_bytes() {
    const struct mallinfo info = mallinfo();
    return static_cast<size_t>(info.uordblks) + static_cast<size_t>(info.hblkhd);
}

void drawing_keeps_its_memory() {
    RenderWorlds worlds(20);
    EmbreeViews drawn(worlds, 16, 16);
    const auto move_and_draw = [&](int times) {
        for (int i = 0; i < times; ++i) {
            for (float& value : worlds.body_positions) value += 0.01f;
            drawn.draw();
        }
    };
    move_and_draw(5);
    const size_t before = allocated_bytes();
    move_and_draw(50);
    CHECK_EQUAL(allocated_bytes(), before);
}

// ---- Pictures

ds_picture_config picture_config(int width, int height) {
    ds_picture_config config{};
    config.struct_size = sizeof config;
    config.width = width;
    config.height = height;
    config.samples = 1;
    config.num_threads = 1;
    config.vertical_fov = 60.f;
    config.rotation[0] = 1.f;
    for (float& part : config.ground) part = 1.f;
    config.to_sun[0] = config.to_sun[1] = -0.40824829f;
    config.to_sun[2] = 0.81649658f;
    config.sun = 0.5f;
    config.sky = 0.25f;
    config.corner_reach = 1e-3f;  // none
    return config;
}

std::vector<uint8_t> drawn(const std::vector<ds_picture_object>& objects, const ds_picture_config& config) {
    std::vector<uint8_t> rgb(static_cast<size_t>(config.width * config.height * 3));
    CHECK_EQUAL(draw_picture(objects.data(), objects.size(), config, rgb.data()), DS_STATUS_OK);
    return rgb;
}

ds_picture_object object_at(int shape, float x, float y, float z, float size) {
    return {shape, {x, y, z}, {1, 0, 0, 0}, {size, size, size}, {1, 1, 1}, 1, 0, 0, 0, 0};
}

void look_down(ds_picture_config& config, float x, float y, float metres) {
    config.orthographic = 1;
    config.vertical_fov = metres;
    config.position[0] = x;
    config.position[1] = y;
    config.position[2] = 20.f;
    config.rotation[0] = sqrtf(0.5f);
    config.rotation[1] = -sqrtf(0.5f);
}

// The light's direction is (1, 1, -2): a cube of 2 m casts its shadow 1 m to the right and 1 m up in the picture. The
// view from above is 10 m and 100 pixels wide, centred on the cube, so one pixel is 0.1 m.
void shadows_fall_away_from_the_light() {
    ds_picture_config config = picture_config(100, 100);
    look_down(config, 1.f, 1.f, 10.f);
    const std::vector<ds_picture_object> cube{object_at(DS_PICTURE_BOX, 1.f, 1.f, 1.f, 2.f)};
    const std::vector<uint8_t> light = drawn(cube, config);
    config.shadows = 1;
    const std::vector<uint8_t> dark = drawn(cube, config);
    for (int row = 0; row < 100; ++row) {
        for (int column = 0; column < 100; ++column) {
            const double x = (column + 0.5 - 50) / 10, y = (49.5 - row) / 10;  // from the cube's centre
            const bool on_cube = fabs(x) < 1 && fabs(y) < 1;
            // The cube's outline swept by (1, 1).
            const bool swept = x > -1 && y > -1 && x < 2 && y < 2 && fabs(x - y) < 2;
            const double edge = fmin(fmin(fabs(x - 2), fabs(y - 2)), fabs(fabs(x - y) - 2));
            const size_t at = static_cast<size_t>(3 * (100 * row + column));
            if (edge < 0.1) continue;
            CHECK((dark[at] != light[at]) == (swept && !on_cube));
        }
    }
}

void colours_are_lit_in_linear_light_and_what_has_no_shape_is_not_there() {
    ds_picture_config config = picture_config(3, 3);
    look_down(config, 0.f, 0.f, 1.f);
    std::vector<ds_picture_object> objects{object_at(DS_PICTURE_BOX, 0, 0, 1, 2),
                                           object_at(DS_PICTURE_NONE, 0, 0, 5, 2)};
    const float colour[3] = {0.2f, 0.4f, 0.6f};
    for (int i = 0; i < 3; ++i) objects[0].colour[i] = colour[i];
    const std::vector<uint8_t> rgb = drawn(objects, config);
    const double light = 0.25 + 0.5 * 2 / sqrt(6.0);  // of sides that face up
    for (int i = 0; i < 3; ++i) {
        const double linear = pow((static_cast<double>(colour[i]) + 0.055) / 1.055, 2.4) * light;
        CHECK_NEAR(rgb[static_cast<size_t>(12 + i)], 255 * (1.055 * pow(linear, 1 / 2.4) - 0.055), 1.01);
    }
}

// From above, 100 pixels for 10 m: a disc of 2 m, stripes, a rectangle that is half transparent.
void shapes_on_the_floor_cover_what_they_should() {
    ds_picture_config config = picture_config(100, 100);
    look_down(config, 0.f, 0.f, 10.f);
    config.sun = 0.f;
    config.sky = 1.f;
    std::vector<ds_picture_object> marks{object_at(DS_PICTURE_DISC, 0, 0, 0, 2)};
    for (float& part : marks[0].colour) part = 0.f;
    const auto count_dark = [&] {
        int dark = 0;
        for (const uint8_t level : drawn(marks, config)) dark += level < 186;  // less than half of the light
        return dark / 3;
    };
    CHECK_NEAR(count_dark(), 314, 12);
    marks[0].line_width = 0.5f;  // a ring
    CHECK_NEAR(count_dark(), 314 * 0.75, 20);
    marks[0].shape = DS_PICTURE_RECTANGLE;
    CHECK_NEAR(count_dark(), 400, 4);
    marks[0].shape = DS_PICTURE_STRIPES;
    marks[0].size[0] = marks[0].size[1] = 8.f;
    marks[0].line_width = 0.5f;
    marks[0].line_period = 1.f;
    CHECK_NEAR(count_dark(), 6400 * 0.55, 320);  // half of it, and its border
    marks[0].opacity = 0.f;
    CHECK_EQUAL(count_dark(), 0);
}

void borders_of_shadows_are_as_wide_as_the_sun() {
    ds_picture_config config = picture_config(200, 200);
    look_down(config, 0.f, 0.f, 4.f);
    config.shadows = 1;
    config.to_sun[0] = 0.f;
    config.to_sun[1] = -0.6f;
    config.to_sun[2] = 0.8f;
    config.sun_radius = 0.1f;
    // Its upper edge at z = 4 is 5 m from the floor along the light: the border is 2 * 0.5 m wide across it, and 1 / 0.8
    // of that on the floor.
    const std::vector<ds_picture_object> wall{object_at(DS_PICTURE_BOX, 0, -3.5f, 2, 4)};
    const std::vector<uint8_t> rgb = drawn(wall, config);
    int changing = 0;
    for (int row = 1; row < 200; ++row) {
        const size_t here = static_cast<size_t>(3 * (200 * row + 100)), above = here - 3 * 200;
        changing += rgb[here] != rgb[above];
    }
    CHECK(changing * 0.02 > 0.8);
    CHECK(changing * 0.02 < 1.4);
}

// Half of every pixel of the middle column shows the cube's top, half the floor.
void samples_are_averaged() {
    ds_picture_config config = picture_config(3, 3);
    look_down(config, 1.f, 0.7f, 0.3f);
    std::vector<ds_picture_object> cube{object_at(DS_PICTURE_BOX, 0.f, 0.f, 1.f, 2.f)};
    for (float& part : cube[0].colour) part = 0.f;
    const auto light = [](uint8_t level) { return pow((level / 255.0 + 0.055) / 1.055, 2.4); };
    for (const int samples : {2, 3, 4, 8}) {
        config.samples = samples;
        const std::vector<uint8_t> rgb = drawn(cube, config);
        const double share = (light(rgb[3 * 4]) - light(rgb[3 * 5])) / (light(rgb[3 * 3]) - light(rgb[3 * 5]));
        CHECK_NEAR(share, 0.5, 0.5 / samples * 0.4 + 0.02);
    }
}

void threads_draw_the_same_picture() {
    ds_picture_config config = picture_config(97, 61);
    config.position[1] = -9.f;
    config.position[2] = 3.f;
    config.samples = 2;
    config.shadows = 1;
    const std::vector<ds_picture_object> objects{object_at(DS_PICTURE_AGENT, 0, 0, 1, 2),
                                                 object_at(DS_PICTURE_BOX, 3, 2, 1, 2)};
    const std::vector<uint8_t> alone = drawn(objects, config);
    for (const int threads : {2, 5, 1024}) {
        config.num_threads = threads;
        CHECK(drawn(objects, config) == alone);
    }
}

void rows_drawn_apart_are_those_of_the_whole_picture() {
    ds_picture_config config = picture_config(97, 61);
    config.position[1] = -9.f;
    config.position[2] = 3.f;
    config.samples = 3;
    config.shadows = 1;
    config.num_threads = 2;
    const std::vector<ds_picture_object> objects{object_at(DS_PICTURE_AGENT, 0, 0, 1, 2)};
    const std::vector<uint8_t> whole = drawn(objects, config);
    std::vector<uint8_t> rgb(whole.size());
    for (const int first_row : {40, 0, 20, 60}) {
        config.first_row = first_row;
        config.num_rows = first_row == 60 ? 0 : 20;
        const std::vector<uint8_t> before = rgb;
        CHECK_EQUAL(draw_picture(objects.data(), objects.size(), config, rgb.data()), DS_STATUS_OK);
        const size_t begin = static_cast<size_t>(first_row * 97 * 3), end = begin + (first_row == 60 ? 1 : 20) * 97 * 3;
        for (size_t i = 0; i < rgb.size(); ++i) CHECK(rgb[i] == (i < begin || i >= end ? before : whole)[i]);
    }
    CHECK(rgb == whole);
}

void empty_pictures_are_floor_and_sky() {
    ds_picture_config config = picture_config(2, 2);
    config.position[2] = 1.f;
    const std::vector<uint8_t> rgb = drawn({}, config);
    CHECK_EQUAL(rgb[0], 0);  // the background
    CHECK(rgb[6] > 100);
}

}  // namespace

int main() {
    const ds_api* api;
    CHECK_EQUAL(ds_get_api(DS_ABI_VERSION, &api), DS_STATUS_OK);
    set_core(api);
    RUN(embree_starts_no_threads_and_reads_no_files);
    RUN(structs_are_laid_out_as_embrees);
    RUN(packets_hit_what_the_reference_hits);
    RUN(rays_from_inside_see_through);
    RUN(views_are_what_the_reference_sees);
    RUN(views_of_as_many_objects_as_there_are_are_what_the_reference_sees);
    RUN(views_of_any_size_are_complete);
    RUN(only_what_is_wanted_is_written);
    RUN(what_has_no_place_is_not_drawn);
    RUN(an_agent_without_a_place_sees_the_sky);
    RUN(agents_do_not_see_themselves_when_others_are_gone);
    RUN(whatever_else_is_of_the_agents_kind_is_a_box);
    RUN(drawing_keeps_its_memory);
    RUN(shadows_fall_away_from_the_light);
    RUN(borders_of_shadows_are_as_wide_as_the_sun);
    RUN(colours_are_lit_in_linear_light_and_what_has_no_shape_is_not_there);
    RUN(shapes_on_the_floor_cover_what_they_should);
    RUN(samples_are_averaged);
    RUN(threads_draw_the_same_picture);
    RUN(rows_drawn_apart_are_those_of_the_whole_picture);
    RUN(empty_pictures_are_floor_and_sky);
    return 0;
}
