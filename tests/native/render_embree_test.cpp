// Embree itself; and pictures, most of which is tested from Python.
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "render/api/core.h"
#include "render/embree/object_scene.h"
#include "render/embree/picture.h"

using namespace doorstep;

namespace {

// Before all others of this program.
LAW(rendering_uses_the_functions_of_the_library) {
    const ds_api* api;
    CHECK_EQUAL(ds_get_api(DS_ABI_VERSION, &api), DS_STATUS_OK);
    set_core(api);
}

// ---- Embree itself

int count_threads() {
    DIR* directory = opendir("/proc/self/task");
    CHECK(directory);
    int count = 0;
    while (const dirent* entry = readdir(directory)) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

// First: a device that reads configuration files would start four threads because of the file written here.
LAW(embree_starts_no_threads_and_reads_no_files) {
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
LAW(structs_are_laid_out_as_embrees) {
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
        CHECK(packet.hit.Ng_x[i] == 0 && packet.hit.Ng_y[i] == 0 && packet.hit.Ng_z[i] == 16);
    }
    CHECK(memcmp(&packet.ray.mask, &before.ray.mask, 3 * 32) == 0);

    RTCRayHit single{};
    single.ray = {1, 2, -1, 0, 0, 0, 2, 0, 100, 4, 0, 0};
    single.hit.geomID = single.hit.instID[0] = single.hit.instPrimID[0] = RTC_INVALID_GEOMETRY_ID;
    rtcIntersect1(scene, &single, nullptr);
    CHECK_NEAR(single.ray.tfar, 1.5, 1e-6);
    CHECK(single.hit.v == packet.hit.v[0] && single.hit.Ng_z == packet.hit.Ng_z[0] && single.hit.primID == 1);

    RTCRay8 rays = before.ray;
    rtcOccluded8(valid, scene, &rays, nullptr);
    for (int i = 0; i < 8; ++i) CHECK((rays.tfar[i] < 0) == (i < 2 || i == 7));
    rtcReleaseScene(scene);
}

// ---- Pictures

ds_picture_config picture_config(int width, int height) {
    auto config = sized<ds_picture_config>();
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

// From above, 100 pixels for 10 m: a disc of 2 m, stripes, a rectangle that is half transparent.
LAW(shapes_on_the_floor_cover_what_they_should) {
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

LAW(threads_draw_the_same_picture) {
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

}  // namespace
