// The rasteriser: what all simulators need, and the renderer of simulators on the CPU, whose threads copy worlds to
// memory that the device can access, and views back.
#include "render/vulkan/vulkan_renderer.h"

#include <stdio.h>
#include <string.h>

#include <new>

#include "render/api/core.h"

namespace doorstep {
namespace {

// ---- The shaders

constexpr const wchar_t* kComputeProfile = L"cs_6_2";
constexpr const wchar_t* kVertexProfile = L"vs_6_2";
constexpr const wchar_t* kPixelProfile = L"ps_6_2";

// The bindings of pixels.hlsl.
uint32_t bindings_of_pixels(const ViewTensors& tensors) {
    uint32_t bindings =
        1u << kObjectsBinding | 1u << kViewsBinding | 1u << kAgentCornersBinding | 1u << kSurfacesBinding;
    for (int tensor = 0; tensor < DS_CAMERA_TENSOR_COUNT; ++tensor) {
        if (tensors.address(tensor)) bindings |= 1u << (kFirstOutputBinding + tensor);
    }
    return bindings;
}

ds_status compile_pixels(const CameraSetup& setup, const Text& constants, ShaderCompiler* compiler, Spirv* pixels) {
    const char* material = setup.config.material;
    const char* name = setup.config.material_name ? setup.config.material_name : "material";
    Text source;
    write_pixels_shader(constants, material, name, &source);
    if (const ds_status status = compiler->compile(source, kComputeProfile, pixels)) return status;
    return material ? check_material(*pixels, bindings_of_pixels(setup.views.tensors), name) : DS_STATUS_OK;
}

// Copies the sizes of one world's bodies to the host.
ds_status read_body_sizes(const CameraSetup& setup, Vec3 (&sizes)[kMaxObjects]) {
    ds_tensor_info field{};
    field.struct_size = sizeof field;
    const ds_status viewed = core().simulator_view_state(setup.simulator, DS_STATE_body_sizes, &field);
    if (viewed) return viewed;
    field.shape[0] = 1;
    ds_memory memory = 0;
    if (const ds_status status = core().simulator_get_memory(setup.simulator, &memory)) return status;
    const uint64_t bytes = static_cast<uint64_t>(setup.views.fields.num_bodies) * sizeof(Vec3);
    const ds_status status = core().memory_read(memory, &field, sizes, bytes);
    core().memory_release(memory);
    return status;
}

ds_status compile_shaders(const CameraSetup& setup, const ChunkPlan& plan, Shaders* shaders) {
    ShaderCompiler compiler;
    if (const ds_status status = compiler.create()) return status;
    Vec3 body_sizes[kMaxObjects];
    if (const ds_status status = read_body_sizes(setup, body_sizes)) return status;
    Text constants;
    write_constants(setup.views, body_sizes, plan.tiles, &constants);
    const struct {
        void (*write)(const Text& constants, Text* source);
        const wchar_t* profile;
        Spirv* shader;
    } rows[] = {{write_objects_shader, kComputeProfile, &shaders->objects},
                {write_boxes_shader, kVertexProfile, &shaders->boxes},
                {write_agents_shader, kVertexProfile, &shaders->agents},
                {write_surface_shader, kPixelProfile, &shaders->surface}};
    for (const auto& row : rows) {
        Text source;
        row.write(constants, &source);
        if (const ds_status status = compiler.compile(source, row.profile, row.shader)) return status;
    }
    return compile_pixels(setup, constants, &compiler, &shaders->pixels);
}

}  // namespace

// ---- The parts

VulkanParts* new_parts() {
    auto* parts = new (std::nothrow) VulkanParts{};
    if (!parts) fail(DS_STATUS_OUT_OF_MEMORY, "", "", "no memory for a renderer");
    return parts;
}

ds_status prepare_parts(const CameraSetup& setup, const uint8_t* uuid, bool shared, VulkanParts* parts) {
    const Views& views = setup.views;
    if (const ds_status status = parts->device.find(uuid)) return status;
    if (const ds_status status = plan_chunks(views, *parts->device.get(), &parts->plan)) return status;
    if (const ds_status status = compile_shaders(setup, parts->plan, &parts->shaders)) return status;
    const WorldLayout layout = layout_of(views.fields);
    if (!layout.is_block) {
        return fail(DS_STATUS_INTERNAL, "", "please report it", "the fields of a world are not in one block");
    }
    parts->world_bytes = static_cast<uint64_t>((views.num_worlds - 1) * layout.world_stride + layout.bytes);
    parts->num_pixels = parts->plan.num_views * static_cast<uint64_t>(views.rig.width) *
                        static_cast<uint64_t>(views.rig.height);
    return parts->timeline.create(parts->device.get(), shared);
}

bool wait_for_parts(const VulkanParts& parts, uint64_t value) {
    return check_not_forked() == DS_STATUS_OK && (value == 0 || parts.timeline.wait(value) == DS_STATUS_OK);
}

// ---- Simulators on the CPU

namespace {

constexpr int64_t kCopyBytes = 1 << 18;  // per item of the threads' work

struct Copy {
    char* to;
    const char* from;
    uint64_t bytes;
};

void copy_items(void* context, int64_t first, int64_t count, int32_t) {
    const Copy& copy = *static_cast<const Copy*>(context);
    const uint64_t begin = static_cast<uint64_t>(first) * kCopyBytes;
    const uint64_t end = begin + static_cast<uint64_t>(count) * kCopyBytes;
    memcpy(copy.to + begin, copy.from + begin, (end < copy.bytes ? end : copy.bytes) - begin);
}

void copy_with_threads(const ds_turn& turn, void* to, const void* from, uint64_t bytes) {
    Copy copy{static_cast<char*>(to), static_cast<const char*>(from), bytes};
    turn.run(turn.pool, static_cast<int64_t>((bytes + kCopyBytes - 1) / kCopyBytes), copy_items, &copy);
}

class HostRenderer final : public BatchRenderer {
public:
    ~HostRenderer() override {
        if (parts_ && !given_up_ && wait_for_parts(*parts_, drawn_)) delete parts_;
    }

    ds_status create(const CameraSetup& setup) {
        parts_ = new_parts();
        if (!parts_) return DS_STATUS_OUT_OF_MEMORY;
        if (const ds_status status = prepare_parts(setup, nullptr, false, parts_)) return status;
        if (const ds_status status = create_buffers(setup.views)) return status;
        return parts_->drawing.create(parts_->device.get(), setup.views, parts_->plan, parts_->shaders, parts_->buffers,
                                      false);
    }

    ds_status draw(const Views& views, const ds_turn& turn) override {
        if (const ds_status status = check_not_forked()) return status;
        if (given_up_) {
            return fail(DS_STATUS_RENDERER, "renderer", "create a new simulator, with another material or renderer",
                        "drawing on %s was abandoned before", parts_->device->name);
        }
        ViewBuffers& buffers = parts_->buffers;
        copy_with_threads(turn, buffers.worlds.host(), layout_of(views.fields).first, parts_->world_bytes);
        if (const ds_status status = parts_->drawing.submit(parts_->timeline.handle(), 0, drawn_ + 1)) return status;
        ++drawn_;
        if (const ds_status status = parts_->timeline.wait(drawn_)) {
            given_up_ = true;
            return status;
        }
        for (int tensor = 0; tensor < DS_CAMERA_TENSOR_COUNT; ++tensor) {
            const Buffer& buffer = buffers.outputs[tensor];
            if (void* to = views.tensors.address(tensor)) copy_with_threads(turn, to, buffer.host(), buffer.bytes());
        }
        return DS_STATUS_OK;
    }

    const char* device_name() const override { return parts_->device->name; }

private:
    ds_status create_buffers(const Views& views) {
        VulkanDevice* device = parts_->device.get();
        ViewBuffers& buffers = parts_->buffers;
        for (int tensor = 0; tensor < DS_CAMERA_TENSOR_COUNT; ++tensor) {
            if (!views.tensors.address(tensor)) continue;
            const uint64_t bytes = parts_->num_pixels * kPixelBytes[tensor];
            if (const ds_status status = buffers.outputs[tensor].create(device, bytes, HostAccess::kReads)) {
                return status;
            }
        }
        return buffers.worlds.create(device, parts_->world_bytes, HostAccess::kWrites);
    }

    VulkanParts* parts_ = nullptr;
    uint64_t drawn_ = 0;  // number of drawings begun: the timeline's value when they are done
    bool given_up_ = false;
};

}  // namespace

ds_status create_vulkan_renderer(const CameraSetup& setup, BatchRenderer** renderer) {
    return setup.info.device_kind == DS_DEVICE_CPU ? make_renderer<HostRenderer>(setup, renderer)
                                                   : create_shared_renderer(setup, renderer);
}

ds_status describe_vulkan_renderer(ds_renderer_info* info) {
    DeviceUse device;
    if (const ds_status status = device.find(nullptr)) return status;
    snprintf(info->description, sizeof info->description, "%s", device->name);
    return DS_STATUS_OK;
}

}  // namespace doorstep
