#include "render/cameras/cameras.h"

#include <math.h>
#include <stdio.h>

#include <new>

#include "render/api/core.h"
#include "render/cameras/renderers.h"

namespace doorstep {
namespace {

constexpr int64_t kAlignment = 256;

// By ds_dtype.
constexpr int64_t kElementBytes[] = {
#define DS_BYTES(name, number, type, dlpack_code) sizeof(type),
    DS_DTYPE_TABLE(DS_BYTES)
#undef DS_BYTES
};

constexpr ds_tensor_info describe_pixel(ds_dtype dtype, const char* shape) {
    const char* last = shape;
    while (last[1]) ++last;
    ds_tensor_info info = {};
    info.struct_size = sizeof info;
    info.dtype = dtype;
    info.access = DS_ACCESS_READ;
    info.rank = 5;
    info.shape[4] = *last - '0';
    info.strides[4] = kElementBytes[dtype];
    return info;
}

// The rows of DS_CAMERA_TENSOR_TABLE: element type and components of a pixel.
constexpr ds_tensor_info kPixels[DS_CAMERA_TENSOR_COUNT] = {
#define DS_PIXEL(name, dtype, shape, access, sentence) describe_pixel(DS_DTYPE_##dtype, shape),
    DS_CAMERA_TENSOR_TABLE(DS_PIXEL)
#undef DS_PIXEL
};

ds_tensor_info describe(int tensor, const ds_simulator_info& simulator, const ds_cameras_config& config) {
    ds_tensor_info info = kPixels[tensor];
    const int64_t shape[] = {simulator.num_worlds, simulator.num_agents, config.height, config.width};
    for (int axis = 4; axis-- > 0;) {
        info.shape[axis] = shape[axis];
        info.strides[axis] = info.strides[axis + 1] * info.shape[axis + 1];
    }
    return info;
}

int64_t bytes_of(const ds_tensor_info& info) { return info.shape[0] * info.strides[0]; }

FieldView view_of(const ds_tensor_info& info) {
    return {static_cast<const char*>(info.data), info.strides[0], info.strides[1], info.rank > 2 ? info.strides[2] : 0};
}

// The addresses of a simulator's fields, on its device, valid until it ends. Its steps do not check for edits because
// of them.
ds_status find_world_fields(ds_simulator simulator, const ds_simulator_info& info, WorldFields* fields) {
    struct {
        ds_state_id field;
        FieldView* view;
    } const rows[] = {
        {DS_STATE_body_positions, &fields->body_positions},
        {DS_STATE_body_rotations, &fields->body_rotations},
        {DS_STATE_body_sizes, &fields->body_sizes},
        {DS_STATE_body_kinds, &fields->body_kinds},
        {DS_STATE_static_positions, &fields->static_positions},
        {DS_STATE_static_sizes, &fields->static_sizes},
        {DS_STATE_static_kinds, &fields->static_kinds},
        {DS_STATE_button_positions, &fields->button_positions},
        {DS_STATE_button_pressed, &fields->button_pressed},
    };
    for (const auto& row : rows) {
        ds_tensor_info found = {};
        found.struct_size = sizeof found;
        if (const ds_status status = core().simulator_view_state(simulator, row.field, &found)) return status;
        *row.view = view_of(found);
    }
    fields->num_agents = static_cast<int32_t>(info.num_agents);
    fields->num_bodies = static_cast<int32_t>(info.num_bodies);
    fields->num_statics = static_cast<int32_t>(info.num_statics);
    fields->num_buttons = static_cast<int32_t>(info.num_buttons);
    if (object_count(*fields) <= kMaxObjects) return DS_STATUS_OK;
    return fail(DS_STATUS_INTERNAL, "simulator", "please report it", "a world has %d objects; %d can be drawn",
                object_count(*fields), kMaxObjects);
}

// Checked: the camera's position is finite, its quaternion is close to a unit.
CameraRig make_rig(const ds_cameras_config& config) {
    const double half_angle = static_cast<double>(config.vertical_fov) * (3.14159265358979323846 / 360.0);
    const double tangent_y = tan(half_angle);
    const double aspect = static_cast<double>(config.width) / static_cast<double>(config.height);
    const float* p = config.position;
    const float* q = config.rotation;
    return {config.width,
            config.height,
            static_cast<float>(tangent_y * aspect),
            static_cast<float>(tangent_y),
            {p[0], p[1], p[2]},
            normalize(Quat{q[0], q[1], q[2], q[3]})};
}

enum class Simulators { ANY, CPU };
enum class Materials { NONE, HLSL };

constexpr RendererRow kRenderers[] = {
#define DS_RENDERER_ROW(NAME, name, number, simulators, materials, sentence)                                      \
    {DS_RENDERER_##NAME, #name, Simulators::simulators == Simulators::ANY, Materials::materials == Materials::HLSL, \
     create_##name##_renderer, describe_##name##_renderer},
    DS_RENDERER_TABLE(DS_RENDERER_ROW)
#undef DS_RENDERER_ROW
};

ds_status check_device(const RendererRow& renderer, int32_t device_kind) {
    if (renderer.draws_cuda || device_kind == DS_DEVICE_CPU) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "renderer", "choose another, or create the simulator on the CPU",
                "the renderer \"%s\" draws simulators on the CPU only; this one is on CUDA", renderer.name);
}

// Before anything is created for cameras that could not be attached.
ds_status check_room(ds_simulator simulator) {
    int32_t attached;
    if (const ds_status status = core().simulator_has_attachment(simulator, &attached)) return status;
    if (!attached) return DS_STATUS_OK;
    return fail(DS_STATUS_INVALID_ARGUMENT, "simulator", "create another simulator",
                "something is attached to this simulator already");
}

}  // namespace

const RendererRow& find_renderer(int32_t number) {
    for (const RendererRow& row : kRenderers) {
        if (row.number == number) return row;
    }
    return kRenderers[0];
}

std::atomic<int64_t> live_cameras{0};

Cameras::Cameras() { live_cameras.fetch_add(1, std::memory_order_relaxed); }

Cameras::~Cameras() {
    end();
    live_cameras.fetch_sub(1, std::memory_order_relaxed);
}

ds_status Cameras::create(ds_simulator simulator, const ds_cameras_config& config, Ref<Cameras>* cameras) {
    CameraSetup setup = {simulator, {}, config, {}};
    setup.info.struct_size = sizeof setup.info;
    if (const ds_status status = core().simulator_get_info(simulator, &setup.info)) return status;
    const RendererRow& row = find_renderer(config.renderer);
    if (const ds_status status = check_device(row, setup.info.device_kind)) return status;
    if (const ds_status status = check_room(simulator)) return status;
    const Ref<Cameras> made = Ref<Cameras>::adopt(new (std::nothrow) Cameras);
    if (!made) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "", "close other simulators, or raise the memory limit",
                    "no memory is left for the cameras' own records");
    }
    Views& views = made->views_;
    views.num_worlds = setup.info.num_worlds;
    views.rig = make_rig(config);
    if (const ds_status status = find_world_fields(simulator, setup.info, &views.fields)) return status;
    if (const ds_status status = made->take_memory(simulator, setup.info, config)) return status;
    setup.views = views;
    if (const ds_status status = row.create(setup, &made->renderer_)) return status;
    made->info_ = {sizeof(ds_cameras_info), row.number, {}};
    snprintf(made->info_.device, sizeof made->info_.device, "%s", made->renderer_->device_name());
    *cameras = made;
    return DS_STATUS_OK;
}

ds_status Cameras::take_memory(ds_simulator simulator, const ds_simulator_info& info, const ds_cameras_config& config) {
    int64_t bytes = 0, offsets[DS_CAMERA_TENSOR_COUNT] = {};
    ds_tensor_info tensors[DS_CAMERA_TENSOR_COUNT];
    for (int tensor = 0; tensor < DS_CAMERA_TENSOR_COUNT; ++tensor) {
        tensors[tensor] = describe(tensor, info, config);
        offsets[tensor] = bytes;
        if (!(config.outputs >> tensor & 1u)) continue;
        bytes += (bytes_of(tensors[tensor]) + kAlignment - 1) / kAlignment * kAlignment;
    }
    ds_memory memory;
    void* data;
    const ds_status status = core().simulator_allocate(simulator, static_cast<uint64_t>(bytes), &memory, &data);
    if (status == DS_STATUS_OUT_OF_MEMORY) {
        ds_error error = {};
        error.struct_size = sizeof error;
        core().last_error(&error);
        char reason[512];
        snprintf(reason, sizeof reason, "%s", error.message);
        return fail(status, "cameras", "use smaller views, fewer outputs or fewer worlds",
                    "%ld views of %d x %d pixels take %ld bytes: %s", info.num_worlds * info.num_agents, config.width,
                    config.height, bytes, reason);
    }
    if (status) return status;
    memory_.store(memory);
    for (int tensor = 0; tensor < DS_CAMERA_TENSOR_COUNT; ++tensor) {
        if (!(config.outputs >> tensor & 1u)) continue;
        tensors_[tensor] = tensors[tensor];
        tensors_[tensor].data = static_cast<char*>(data) + offsets[tensor];
    }
    views_.tensors = {static_cast<uint8_t*>(tensors_[DS_CAMERA_TENSOR_rgb].data),
                      static_cast<float*>(tensors_[DS_CAMERA_TENSOR_depth].data),
                      static_cast<uint8_t*>(tensors_[DS_CAMERA_TENSOR_segmentation].data),
                      static_cast<float*>(tensors_[DS_CAMERA_TENSOR_normals].data)};
    return DS_STATUS_OK;
}

ds_status Cameras::attach(ds_simulator simulator) {
    ds_attachment attachment = {};
    attachment.struct_size = sizeof attachment;
    attachment.context = Ref<Cameras>::share(this).leak();  // released by release
    attachment.update = [](void* context, const ds_turn* turn) {
        Cameras* self = static_cast<Cameras*>(context);
        return self->renderer_->draw(self->views_, *turn);
    };
    attachment.release = [](void* context) {
        const Ref<Cameras> self = Ref<Cameras>::adopt(static_cast<Cameras*>(context));
        self->end();
    };
    const ds_status status = core().simulator_attach(simulator, &attachment);
    if (status) Ref<Cameras>::adopt(this);
    return status;
}

// The renderer ends first: it may still write to the memory.
void Cameras::end() {
    delete std::exchange(renderer_, nullptr);
    if (const ds_memory memory = memory_.exchange(0)) core().memory_release(memory);
}

}  // namespace doorstep
