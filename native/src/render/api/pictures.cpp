// Single pictures.
#include <math.h>

#include "render/api/checks.h"
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

ds_status check_config(const ds_picture_config& config) {
    struct {
        const char* argument;
        const char* hint;
        int32_t value, smallest, largest;
    } const rows[] = {
        {"width", "a picture has at least one pixel", config.width, 1, DS_MAX_RESOLUTION},
        {"height", "a picture has at least one pixel", config.height, 1, DS_MAX_RESOLUTION},
        {"samples", "a pixel takes samples * samples rays", config.samples, 1, DS_MAX_SAMPLES},
        {"shadows", "pass 0 or 1", config.shadows, 0, 1},
        {"orthographic", "pass 0 or 1", config.orthographic, 0, 1},
        {"num_threads", "0 uses as many threads as the process may", config.num_threads, 0, DS_MAX_THREADS},
        {"first_row", "rows are counted from the top", config.first_row, 0, config.height - 1},
        {"num_rows", "0 draws all rows from first_row on", config.num_rows, 0, config.height - config.first_row},
    };
    for (const auto& row : rows) {
        if (const ds_status status = check_range(row.argument, row.hint, row.value, row.smallest, row.largest)) {
            return status;
        }
    }
    if (const ds_status status = check_view(config)) return status;
    if (const ds_status status = check_position(config.position)) return status;
    return check_rotation(config.rotation);
}

bool is_tint(const float* t) {
    const auto is_share = [](float value) { return value >= 0.f && value <= 1.f; };
    return (is_share(t[0]) && is_share(t[1]) && is_share(t[2])) || (t[0] < 0.f && t[1] < 0.f && t[2] < 0.f);
}

// Worlds may contain values that are not finite; such objects cannot be drawn.
ds_status check_object(uint64_t index, const ds_picture_object& object) {
    const unsigned long long number = index;
    if (object.hidden || object.kind == DS_ENTITY_NONE) return DS_STATUS_OK;
    if (object.kind < DS_ENTITY_BUTTON || object.kind > DS_ENTITY_DOOR) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "objects", "pass the ds_entity_kind of an object",
                    "objects[%llu].kind is %d; it must be %d to %d", number, object.kind, DS_ENTITY_BUTTON,
                    DS_ENTITY_DOOR);
    }
    if (!is_tint(object.tint)) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "objects", "pass red, green and blue, or three negative numbers",
                    "objects[%llu].tint is (%g, %g, %g); each must be 0 to 1, or all negative for the kind's colour",
                    number, static_cast<double>(object.tint[0]), static_cast<double>(object.tint[1]),
                    static_cast<double>(object.tint[2]));
    }
    const bool finite = all_finite(object.centre, 3) && all_finite(object.size, 3);
    if (finite && is_rotation(object.rotation)) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "objects", "hide objects that cannot be drawn",
                "objects[%llu] has a value that is not finite, or a rotation that is not a unit quaternion", number);
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
        return fail(DS_STATUS_INVALID_ARGUMENT, "count", "draw fewer objects", "count is %llu; it must be at most %llu",
                    static_cast<unsigned long long>(count), static_cast<unsigned long long>(kMaxPictureObjects));
    }
    for (uint64_t i = 0; i < count; ++i) {
        if (const ds_status status = check_object(i, objects[i])) return status;
    }
    const uint64_t expected = static_cast<uint64_t>(config->width) * static_cast<uint64_t>(config->height) * 3;
    if (bytes != expected) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "bytes", "pass room for [height, width, 3]",
                    "bytes is %llu; it must be %llu", static_cast<unsigned long long>(bytes),
                    static_cast<unsigned long long>(expected));
    }
    ds_picture_config complete = *config;
    if (complete.num_threads == 0) {
        int64_t threads;
        if (const ds_status status = core().default_thread_count(&threads)) return status;
        complete.num_threads = static_cast<int32_t>(threads);
    }
    return draw_picture(objects, count, complete, rgb);
}
