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
