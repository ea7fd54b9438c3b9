// The Vulkan renderer's chunks of views, shaders, and checks of materials. The last test needs a Vulkan
// driver; tests/render/test_vulkan.py checks the pictures.
#include <dlfcn.h>
#include <float.h>
#include <stdio.h>
#include <string.h>

#include <string>

#include "check.h"
#include "render/api/core.h"
#include "render/vulkan/device.h"
#include "render/vulkan/resources.h"
#include "render/vulkan/shader_compiler.h"
#include "render/vulkan/tiled_drawing.h"

using namespace doorstep;

namespace {

// ---- Views for which to plan and compile

constexpr int64_t kWorldBytes = 2048;
char worlds[kWorldBytes];

FieldView field_at(int64_t offset) { return {worlds + offset, kWorldBytes, 12, 4}; }

Views views_of(int64_t num_worlds, int num_agents, int width, int height) {
    static uint8_t bytes[1];
    static float floats[1];
    Views views{};
    views.num_worlds = num_worlds;
    views.fields = {num_agents,    num_agents + 5, 12,             6,             field_at(0),
                    field_at(200), field_at(400),  field_at(600),  field_at(800), field_at(1000),
                    field_at(1200), field_at(1400), field_at(1600)};
    views.rig = {width, height, 1.2f, 1.2f, {0.f, 0.f, 1.5f}, {1.f, 0.f, 0.f, 0.f}};
    views.tensors = {bytes, floats, bytes, floats};
    return views;
}

struct DeviceWith : VulkanDevice {
    explicit DeviceWith(uint64_t bytes) : VulkanDevice{} {
        largest_binding = largest_buffer = bytes, binding_alignment = 256;
        strcpy(name, "a device");
    }
};

std::string latest_message() {
    auto error = sized<ds_error>();
    CHECK_EQUAL(ds_last_error(&error), DS_STATUS_OK);
    return error.message;
}
bool latest_message_has(const char* text) { return latest_message().find(text) != std::string::npos; }

// ---- Chunks

void check_plan(const Views& views, const VulkanDevice& device) {
    ChunkPlan plan;
    CHECK_EQUAL(plan_chunks(views, device, &plan), DS_STATUS_OK);
    const auto width = static_cast<uint32_t>(views.rig.width), height = static_cast<uint32_t>(views.rig.height);
    const auto num_agents = static_cast<uint32_t>(views.fields.num_agents);
    CHECK(plan.tiles.columns * width <= 4096 && plan.tiles.rows * height <= 4096);
    CHECK(plan.tiles.columns * plan.tiles.rows >= plan.views_per_chunk);
    CHECK(uint64_t{plan.views_per_chunk} * width * height * kPixelBytes[DS_CAMERA_TENSOR_normals] + 256 <= device.largest_binding);
    uint64_t next_view = 0;
    for (uint32_t i = 0; i < plan.num_chunks; ++i) {
        const Chunk chunk = chunk_of(plan, num_agents, i);
        CHECK_EQUAL(chunk.first_view, next_view);
        CHECK(chunk.num_views > 0 && chunk.num_views <= plan.views_per_chunk);
        CHECK(chunk.num_worlds <= plan.worlds_per_chunk && chunk.num_views <= 65535);
        CHECK_EQUAL(chunk.first_world, next_view / num_agents);
        next_view += chunk.num_views;
        CHECK_EQUAL(chunk.first_world + chunk.num_worlds - 1, (next_view - 1) / num_agents);
        CHECK(uint64_t{chunk.num_worlds} * kWorldBytes + 256 <= device.largest_binding);
    }
    CHECK_EQUAL(next_view, static_cast<uint64_t>(views.num_worlds) * num_agents);
}

LAW(chunks_have_every_view_once) {
    const DeviceWith small(uint64_t{1} << 27), large(UINT32_MAX);
    const int sizes[][2] = {{64, 64}, {1, 1}, {37, 23}, {2049, 67}, {2049, 2049}, {1023, 1025}, {4096, 1}, {3, 4096}};
    for (const auto& [width, height] : sizes)
        for (const int64_t num_worlds : {1, 7, 100003})
            for (const int num_agents : {1, 3, 8})
                for (const DeviceWith* device : {&small, &large})
                    check_plan(views_of(num_worlds, num_agents, width, height), *device);
    check_plan(views_of(3, 2, 4096, 4096), large);
}

LAW(views_beyond_the_device_are_refused) {
    ChunkPlan plan;
    const DeviceWith small(uint64_t{1} << 27);
    CHECK_EQUAL(plan_chunks(views_of(1, 1, 4096, 4096), small, &plan), DS_STATUS_RENDERER);
    CHECK_EQUAL(plan_chunks(views_of(int64_t{1} << 30, 8, 1, 1), small, &plan), DS_STATUS_RENDERER);
}

// The device's functions are not called.
LAW(buffers_beyond_the_device_are_refused) {
    DeviceWith small(uint64_t{1} << 20);
    Buffer buffer;
    CHECK_EQUAL(buffer.create(&small, (uint64_t{1} << 20) + 1, HostAccess::kNone), DS_STATUS_RENDERER);
    CHECK(latest_message_has("1048577 bytes"));
}

// ---- Shaders

void write_constants(Text* constants) {
    Vec3 sizes[kMaxObjects]{};
    sizes[0] = {0.1f, FLT_MIN, -FLT_MAX};
    write_constants(views_of(3, 2, 64, 48), sizes, {4, 2}, constants);
}

// Some locales write decimal points as commas.
LAW(constants_are_written_as_bits) {
    Text constants;
    write_constants(&constants);
    CHECK(strstr(constants.data(), "static const float kTangentX = asfloat(0x3f99999au);\n"));
    CHECK(strstr(constants.data(), "kRigRotation = asfloat(uint4(0x3f800000u, 0x00000000u, 0x00000000u, 0x00000000u)"));
    CHECK(strstr(constants.data(), "{asfloat(uint3(0x3dcccccdu, 0x00800000u, 0xff7fffffu)), "));
    CHECK(!strchr(constants.data(), '.'));
}

// Devices need not support writes in vertex shaders.
LAW(vertex_shaders_write_nothing) {
    const struct {
        void (*write)(const Text& constants, Text* source);
        const wchar_t* profile;
        bool writes;
    } rows[] = {{write_boxes_shader, L"vs_6_2", false},
                {write_agents_shader, L"vs_6_2", false},
                {write_objects_shader, L"cs_6_2", true}};
    ShaderCompiler compiler;
    CHECK_EQUAL(compiler.create(), DS_STATUS_OK);
    for (const auto& [write, profile, writes] : rows) {
        Text constants, source;
        write_constants(&constants);
        write(constants, &source);
        Spirv spirv;
        CHECK_EQUAL(compiler.compile(source, profile, &spirv), DS_STATUS_OK);
        const char name[] = "type.RWStructuredBuffer";
        CHECK_EQUAL(memmem(spirv.words(), spirv.bytes(), name, sizeof name - 1) != nullptr, writes);
        CHECK(memmem(spirv.words(), spirv.bytes(), "StructuredBuffer", 16));
    }
}

ds_status compile_material(const char* material) {
    Text constants, source;
    write_constants(&constants);
    write_pixels_shader(constants, material, "mine.hlsl", &source);
    ShaderCompiler compiler;
    CHECK_EQUAL(compiler.create(), DS_STATUS_OK);
    Spirv spirv;
    if (const ds_status status = compiler.compile(source, L"cs_6_2", &spirv)) return status;
    const uint32_t bindings = (1u << kBindingCount) - 1 - (1u << kWorldsBinding);
    return check_material(spirv, bindings, "mine.hlsl");
}

// Using a resource that the pipeline does not provide would be undefined behaviour of the driver. More of what is
// refused is in tests/render/test_materials.py.
LAW(materials_bind_nothing_of_their_own) {
    CHECK_EQUAL(compile_material("float3 surface_colour(Surface s) { return s.position; }"), DS_STATUS_OK);
    const char* const refused[] = {
        "Texture2D<float4> t : register(t4); float3 surface_colour(Surface s) { return t[uint2(0, 0)].rgb; }",
        "[[vk::binding(0)]] Texture2D<float4> t; float3 surface_colour(Surface s) { return t[uint2(0, 0)].rgb; }",
        "[[vk::binding(5)]] ByteAddressBuffer b; float3 surface_colour(Surface s) { return b.Load(0); }",
        "[[vk::binding(1, 1)]] ByteAddressBuffer b; float3 surface_colour(Surface s) { return b.Load(0); }",
        "float3 surface_colour(Surface s) { if (s.slot) DeviceMemoryBarrier(); return 1; }",
        "float3 surface_colour(Surface s) { doorstep::surfaces[uint2(0, 0)] = 0; return 1; }",
        "float3 surface_colour(Surface s) { doorstep::objects[0].centre = 0; return 1; }",
    };
    for (const char* material : refused) {
        printf("    %.60s\n", material);
        CHECK_EQUAL(compile_material(material), DS_STATUS_SHADER);
        CHECK(latest_message_has("mine.hlsl"));
    }
}

// ---- The device

LAW(a_retired_device_is_found_no_more) {
    DeviceUse first, second, third;
    void* const loader = dlopen("libvulkan.so.1", RTLD_NOW);
    if (!loader || first.find(nullptr) == DS_STATUS_RENDERER) {
        puts("    skipped: there is no Vulkan device here");
        return;
    }
    dlclose(loader);
    retire_device(first.get());
    retire_device(first.get());
    CHECK_EQUAL(second.find(first->uuid), DS_STATUS_OK);
    CHECK(first.get() != second.get());
    CHECK_EQUAL(third.find(nullptr), DS_STATUS_OK);
    CHECK(third.get() == second.get());
    second.release();
    third.release();
    CHECK_EQUAL(first->users, 1);
    VkQueue queue = nullptr;  // keeps the device, and so the instance, alive
    first->functions.vkGetDeviceQueue(first->handle, first->queue_family, 0, &queue);
    CHECK(queue == first->queue);
}

}  // namespace
