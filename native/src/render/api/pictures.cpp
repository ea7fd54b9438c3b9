// Single pictures.
#include <math.h>

#include "render/api/core.h"
#include "render/embree/picture.h"

namespace doorstep {
namespace {

constexpr uint64_t kMaxPictureObjects = 1u << 20;

ds_status check_view(const ds_picture_config& config) {
    const float fov = config.vertical_fov;
    if (config.orthographic) {
        if (isfinite(fov) && fov > 0.f) return DS_STATUS_OK;
        return fail(DS_STATUS_INVALID_ARGUMENT, "fov", "pass the full height of the view in metres",
                    "the height of the view is %g; it must be more than 0", static_cast<double>(fov));
    }
    return check_field_of_view(fov);
}

bool are_shares(const float* values, int count) {
    for (int i = 0; i < count; ++i) {
        if (!(values[i] >= 0.f && values[i] <= 1.f)) return false;
    }
    return true;
}

ds_status check_colour(const char* argument, const float* c) {
    if (are_shares(c, 3)) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, argument, "pass red, green and blue", "%s is (%g, %g, %g); each must be 0 to 1",
                argument, static_cast<double>(c[0]), static_cast<double>(c[1]), static_cast<double>(c[2]));
}

ds_status check_light(const ds_picture_config& config) {
    struct {
        const char* argument;
        float value, largest;
    } const rows[] = {{"sun", config.sun, 10.f},
                      {"sun_radius", config.sun_radius, 1.f},
                      {"sky", config.sky, 10.f},
                      {"bounce", config.bounce, 10.f}};
    for (const auto& row : rows) {
        if (row.value >= 0.f && row.value <= row.largest) continue;
        return fail(DS_STATUS_INVALID_ARGUMENT, row.argument, "1 shows a colour unchanged",
                    "%s is %g; it must be 0 to %g", row.argument, static_cast<double>(row.value),
                    static_cast<double>(row.largest));
    }
    const float* s = config.to_sun;
    if (!(fabsf(s[0] * s[0] + s[1] * s[1] + s[2] * s[2] - 1.f) <= kUnitTolerance)) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "to_sun", "divide it by its length",
                    "to_sun is (%g, %g, %g); it must be a unit vector", static_cast<double>(s[0]),
                    static_cast<double>(s[1]), static_cast<double>(s[2]));
    }
    if (config.corner_reach > 0.f && config.corner_reach <= 1000.f) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "corner_reach", "pass metres",
                "corner_reach is %g; it must be more than 0 and at most 1000", static_cast<double>(config.corner_reach));
}

ds_status check_look(const ds_picture_config& config) {
    if (const ds_status status = check_colour("ground", config.ground)) return status;
    if (const ds_status status = check_colour("background", config.background)) return status;
    if (const ds_status status = check_colour("eye", config.eye)) return status;
    if (const ds_status status = check_colour("pupil", config.pupil)) return status;
    return check_light(config);
}

ds_status check_config(const ds_picture_config& config) {
    if (const ds_status status = check_ranges(
            {{"width", "a picture has at least one pixel", config.width, 1, DS_MAX_RESOLUTION},
             {"height", "a picture has at least one pixel", config.height, 1, DS_MAX_RESOLUTION},
             {"samples", "a pixel takes samples * samples rays", config.samples, 1, DS_MAX_SAMPLES},
             {"shadows", "pass 0 or 1", config.shadows, 0, 1},
             {"orthographic", "pass 0 or 1", config.orthographic, 0, 1},
             {"num_threads", "0 uses as many threads as the process may", config.num_threads, 0, DS_MAX_THREADS},
             {"first_row", "rows are counted from the top", config.first_row, 0, config.height - 1},
             {"num_rows", "0 draws all rows from first_row on", config.num_rows, 0,
              int64_t{config.height} - config.first_row}})) {
        return status;
    }
    if (const ds_status status = check_view(config)) return status;
    if (const ds_status status = check_position(config.position)) return status;
    if (const ds_status status = check_rotation(config.rotation)) return status;
    return check_look(config);
}

// Worlds may contain values that are not finite; such objects cannot be drawn.
ds_status check_object(uint64_t index, const ds_picture_object& object) {
    if (object.shape < DS_PICTURE_NONE || object.shape >= DS_PICTURE_SHAPE_COUNT) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "objects", "pass a ds_picture_shape",
                    "objects[%lu].shape is %d; it must be %d to %d", index, object.shape, DS_PICTURE_NONE,
                    DS_PICTURE_SHAPE_COUNT - 1);
    }
    if (object.shape == DS_PICTURE_NONE) return DS_STATUS_OK;
    const float shares[] = {object.colour[0], object.colour[1], object.colour[2], object.opacity, object.shine};
    if (!are_shares(shares, 5)) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "objects", "pass red, green, blue, opacity and shine from 0 to 1",
                    "objects[%lu] has the colour (%g, %g, %g), opacity %g and shine %g; each must be 0 to 1", index,
                    static_cast<double>(object.colour[0]), static_cast<double>(object.colour[1]),
                    static_cast<double>(object.colour[2]), static_cast<double>(object.opacity),
                    static_cast<double>(object.shine));
    }
    const float lengths[] = {object.bevel, object.line_width, object.line_period};
    const bool finite = all_finite(object.centre, 3) && all_finite(object.size, 3) && all_finite(lengths, 3);
    if (finite && is_rotation(object.rotation)) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "objects", "leave out objects that cannot be drawn",
                "objects[%lu] has a value that is not finite, or a rotation that is not a unit quaternion", index);
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_picture_draw(const ds_picture_object* objects, uint64_t count, const ds_picture_config* config,
                          uint8_t* rgb, uint64_t bytes) {
    if (const ds_status status = check_open()) return status;
    if (!objects && count > 0) return fail_null("objects");
    if (const ds_status status = check_struct(config, "config")) return status;
    if (!rgb) return fail_null("rgb");
    if (const ds_status status = check_config(*config)) return status;
    if (count > kMaxPictureObjects) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "count", "draw fewer objects", "count is %lu; it must be at most %lu",
                    count, kMaxPictureObjects);
    }
    for (uint64_t i = 0; i < count; ++i) {
        if (const ds_status status = check_object(i, objects[i])) return status;
    }
    const uint64_t expected = static_cast<uint64_t>(config->width) * static_cast<uint64_t>(config->height) * 3;
    if (bytes != expected) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "bytes", "pass room for [height, width, 3]",
                    "bytes is %lu; it must be %lu", bytes, expected);
    }
    ds_picture_config complete = *config;
    if (complete.num_threads == 0) {
        int64_t threads;
        if (const ds_status status = core().default_thread_count(&threads)) return status;
        complete.num_threads = static_cast<int32_t>(threads);
    }
    return draw_picture(objects, count, complete, rgb);
}
