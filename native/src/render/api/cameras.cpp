// Creating the cameras of simulators, and their tensors.
#include "render/api/core.h"
#include "render/cameras/cameras.h"

namespace doorstep {
namespace {

constexpr const char* kTensorNames[DS_CAMERA_TENSOR_COUNT] = {
#define DS_CAMERA_TENSOR_NAME(name, dtype, shape, access, sentence) #name,
    DS_CAMERA_TENSOR_TABLE(DS_CAMERA_TENSOR_NAME)
#undef DS_CAMERA_TENSOR_NAME
};

constexpr float kSmallestFieldOfView = 0.1f;  // degrees

ds_status check_outputs(uint32_t outputs) {
    constexpr uint32_t kAll = (1u << DS_CAMERA_TENSOR_COUNT) - 1;
    return check_range("outputs", "choose at least one of rgb, depth, segmentation and normals",
                       static_cast<int64_t>(outputs), 1, kAll);
}

// The names of the renderers that take materials, each after a space.
#define DS_TAKES_NONE(name) ""
#define DS_TAKES_HLSL(name) " \"" #name "\""
#define DS_TAKES(NAME, name, number, simulators, materials, sentence) DS_TAKES_##materials(name)
constexpr const char kMaterialHint[] = "choose a renderer that takes materials:" DS_RENDERER_TABLE(DS_TAKES);
#undef DS_TAKES
#undef DS_TAKES_HLSL
#undef DS_TAKES_NONE

ds_status check_material(const ds_cameras_config& config) {
    const RendererRow& renderer = find_renderer(config.renderer);
    if (!config.material || renderer.takes_materials) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "material", kMaterialHint, "the renderer \"%s\" takes no material",
                renderer.name);
}

// With smaller angles, single precision decides what is visible, and renderers differ.
ds_status check_is_wide_enough(float degrees) {
    if (degrees >= kSmallestFieldOfView) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "fov", "pass the vertical angle of the view in degrees",
                "fov is %g; it must be at least %g", static_cast<double>(degrees),
                static_cast<double>(kSmallestFieldOfView));
}

ds_status check_config(const ds_cameras_config& config) {
    if (const ds_status status = check_ranges(
            {{"renderer", "pass a ds_renderer", config.renderer, DS_RENDERER_AUTO, DS_RENDERER_COUNT - 1},
             {"width", "a view has at least one pixel", config.width, 1, DS_MAX_RESOLUTION},
             {"height", "a view has at least one pixel", config.height, 1, DS_MAX_RESOLUTION}})) {
        return status;
    }
    if (const ds_status status = check_field_of_view(config.vertical_fov)) return status;
    if (const ds_status status = check_is_wide_enough(config.vertical_fov)) return status;
    if (const ds_status status = check_outputs(config.outputs)) return status;
    if (const ds_status status = check_position(config.position)) return status;
    if (const ds_status status = check_rotation(config.rotation)) return status;
    return check_material(config);
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_cameras_create(ds_simulator simulator, const ds_cameras_config* config, ds_cameras* cameras) {
    if (const ds_status status = check_open()) return status;
    if (const ds_status status = check_struct(config, "config")) return status;
    if (!cameras) return fail_null("cameras");
    if (const ds_status status = check_config(*config)) return status;
    Ref<Cameras> made;
    if (const ds_status status = Cameras::create(simulator, *config, &made)) return status;
    const ds_cameras handle = cameras_registry.insert(made);
    if (!handle) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "", "close cameras that are no longer needed",
                    "no memory is left for a handle");
    }
    if (const ds_status status = made->attach(simulator)) {
        cameras_registry.remove(handle, "cameras");
        return status;
    }
    *cameras = handle;
    return DS_STATUS_OK;
}

ds_status ds_cameras_get_tensor(ds_cameras cameras, int32_t tensor, ds_tensor_info* info, ds_memory* memory) {
    if (const ds_status status = check_open()) return status;
    if (const ds_status status = check_struct(info, "info")) return status;
    if (!memory) return fail_null("memory");
    if (const ds_status status =
            check_range("tensor", "pass a ds_camera_tensor_id", tensor, 0, DS_CAMERA_TENSOR_COUNT - 1)) {
        return status;
    }
    const Ref<Cameras> found = cameras_registry.find(cameras, "cameras");
    if (!found) return last_status();
    if (!found->has_tensor(tensor)) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "tensor", "add it to the outputs when you create the cameras",
                    "these cameras have no %s", kTensorNames[tensor]);
    }
    if (core().memory_share(found->memory(), memory)) return fail_closed("cameras");
    *info = found->tensor(tensor);
    return DS_STATUS_OK;
}

ds_status ds_cameras_get_info(ds_cameras cameras, ds_cameras_info* info) {
    if (const ds_status status = check_open()) return status;
    if (const ds_status status = check_struct(info, "info")) return status;
    const Ref<Cameras> found = cameras_registry.find(cameras, "cameras");
    if (!found) return last_status();
    *info = found->info();
    return DS_STATUS_OK;
}

ds_status ds_cameras_close(ds_cameras cameras) {
    if (const ds_status status = check_open()) return status;
    return cameras_registry.release(cameras, "cameras");
}

ds_status ds_cameras_count(int64_t* count) {
    if (const ds_status status = check_open()) return status;
    if (!count) return fail_null("count");
    *count = live_cameras.load();
    return DS_STATUS_OK;
}
