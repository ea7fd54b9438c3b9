#include "render/vulkan/vulkan_parts.h"

#include <string.h>

#include <new>

#include "render/api/core.h"

namespace doorstep {
namespace {

constexpr const wchar_t* kComputeProfile = L"cs_6_2";
constexpr const wchar_t* kVertexProfile = L"vs_6_2";
constexpr const wchar_t* kPixelProfile = L"ps_6_2";

// The bindings of pixels.hlsl.
uint32_t bindings_of_pixels(const ViewTensors& tensors) {
    const uint32_t always =
        1u << kObjectsBinding | 1u << kViewsBinding | 1u << kAgentCornersBinding | 1u << kSurfacesBinding;
    return always | (tensors.rgb ? 1u << kRgbBinding : 0) | (tensors.depth ? 1u << kDepthBinding : 0) |
           (tensors.segmentation ? 1u << kSegmentationBinding : 0) | (tensors.normals ? 1u << kNormalsBinding : 0);
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

}  // namespace doorstep
