#include "render/vulkan/shader_sources.h"

#include <bit>

#include "render/scene/look.h"
#include "render/scene/meshes.h"

namespace doorstep {
namespace {

constexpr const char* kScene =
#include "render/vulkan/shaders/scene.hlsl"
    ;
constexpr const char* kObjectsShader =
#include "render/vulkan/shaders/objects.hlsl"
    ;
constexpr const char* kTiles =
#include "render/vulkan/shaders/tiles.hlsl"
    ;
constexpr const char* kBoxesShader =
#include "render/vulkan/shaders/boxes.hlsl"
    ;
constexpr const char* kAgentsShader =
#include "render/vulkan/shaders/agents.hlsl"
    ;
constexpr const char* kLook =
#include "render/vulkan/shaders/look.hlsl"
    ;
constexpr const char* kPixelsShader =
#include "render/vulkan/shaders/pixels.hlsl"
    ;

constexpr const char* kSurfaceShader = "uint main(doorstep::Corner corner) : SV_Target { return corner.surface; }\n";
constexpr const char* kDefaultMaterial =
    "float3 surface_colour(Surface surface) { return lit(surface.base_colour, surface); }\n";

// The fields that shaders read: X(member, name of the constant).
#define DS_FIELDS_READ(X)                                                                            \
    X(body_positions, kBodyPositions) X(body_rotations, kBodyRotations) X(body_kinds, kBodyKinds)    \
        X(static_positions, kStaticPositions) X(static_sizes, kStaticSizes) X(static_kinds, kStaticKinds) \
            X(button_positions, kButtonPositions) X(button_pressed, kButtonPressed)

// ---- Constants ----

// Bit patterns, because the process's locale changes how decimal numbers are written.
uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

void write(const char* name, float value, Text* source) {
    source->print("static const float %s = asfloat(0x%08xu);\n", name, bits_of(value));
}
void write(const char* name, uint32_t value, Text* source) {
    source->print("static const uint %s = %u;\n", name, value);
}
void write(const char* name, Vec3 v, Text* source) {
    source->print("static const float3 %s = asfloat(uint3(0x%08xu, 0x%08xu, 0x%08xu));\n", name, bits_of(v.x),
                  bits_of(v.y), bits_of(v.z));
}
void write(const char* name, Colour colour, Text* source) {
    write(name, Vec3{colour.red, colour.green, colour.blue}, source);
}
void write(const char* name, Quat q, Text* source) {
    source->print("static const float4 %s = asfloat(uint4(0x%08xu, 0x%08xu, 0x%08xu, 0x%08xu));\n", name, bits_of(q.w),
                  bits_of(q.x), bits_of(q.y), bits_of(q.z));
}
void write(const char* name, const FieldView& field, const char* first, Text* source) {
    source->print("static const uint3 %s = uint3(%u, %u, %u);\n", name, static_cast<uint32_t>(field.data - first),
                  static_cast<uint32_t>(field.item_stride), static_cast<uint32_t>(field.component_stride));
}

void write_kinds(Text* source) {
    write("kButton", uint32_t{DS_ENTITY_BUTTON}, source);
    write("kCube", uint32_t{DS_ENTITY_CUBE}, source);
    write("kWall", uint32_t{DS_ENTITY_WALL}, source);
    write("kAgent", uint32_t{DS_ENTITY_AGENT}, source);
    write("kDoor", uint32_t{DS_ENTITY_DOOR}, source);
    write("kFloor", uint32_t{kFloorKind}, source);
    write("kEyeMaterial", uint32_t{kEyeMaterial}, source);
}

void write_look(Text* source) {
    write("kCubeColour", kCubeColour, source);
    write("kWallColour", kWallColour, source);
    write("kDoorColour", kDoorColour, source);
    write("kButtonColour", kButtonColour, source);
    write("kAgentColour", kAgentColour, source);
    write("kEyeColour", kEyeColour, source);
    write("kSkyColour", kSkyColour, source);
    write("kFloorColour", kFloorColour, source);
    write("kFloorLineColour", kFloorLineColour, source);
    write("kToLight", kToLight, source);
    write("kAmbient", kAmbient, source);
    write("kAmbientFromAbove", kAmbientFromAbove, source);
    write("kDiffuse", kDiffuse, source);
    write("kGridCell", kGridCell, source);
    write("kGridLineWidth", kGridLineWidth, source);
}

void write_fields(const WorldFields& fields, const Vec3* body_sizes, Text* source) {
    const WorldLayout layout = layout_of(fields);
    write("kAgents", static_cast<uint32_t>(fields.num_agents), source);
    write("kBodies", static_cast<uint32_t>(fields.num_bodies), source);
    write("kStatics", static_cast<uint32_t>(fields.num_statics), source);
    write("kButtons", static_cast<uint32_t>(fields.num_buttons), source);
    write("kWorldBytes", static_cast<uint32_t>(layout.world_stride), source);
    write("kPlateSide", kPlateSide, source);
    write("kPlateHeight", kPlateHeight, source);
    write("kPressedPlateHeight", kPressedPlateHeight, source);
#define DS_WRITE(member, name) write(#name, fields.member, layout.first, source);
    DS_FIELDS_READ(DS_WRITE)
#undef DS_WRITE
    source->append("static const float3 kBodySizes[kBodies] = {");
    for (int i = 0; i < fields.num_bodies; ++i) {
        const Vec3 size = body_sizes[i];
        source->print("%sasfloat(uint3(0x%08xu, 0x%08xu, 0x%08xu))", i ? ", " : "", bits_of(size.x), bits_of(size.y),
                      bits_of(size.z));
    }
    source->append("};\n");
}

// ---- Sources ----

// The compiler's messages about this text name the file and number its lines from 1.
void write_file(const char* name, const char* text, Text* source) {
    source->append("\n#line 1 \"");
    for (const char* c = name; *c; ++c) {
        if (*c == '"' || *c == '\\') source->append("\\");
        source->append(*c == '\n' || *c == '\r' ? " " : c, 1);
    }
    source->append("\"\n");
    source->append(text);
}

void write_scene(const Text& constants, Text* source) {
    source->append(constants.data());
    write_file("scene.hlsl", kScene, source);
}

// The end of a field, in bytes from the start of a world's block.
int64_t end_of(const FieldView& field, int64_t items, int64_t components) {
    return (items - 1) * field.item_stride + (components - 1) * field.component_stride + 4;
}

}  // namespace

WorldLayout layout_of(const WorldFields& fields) {
    WorldLayout layout{fields.body_positions.data, fields.body_positions.world_stride, 0, true};
#define DS_FIRST(member, name) \
    if (fields.member.data < layout.first) layout.first = fields.member.data;
    DS_FIELDS_READ(DS_FIRST)
#undef DS_FIRST
    const struct {
        const FieldView& field;
        int64_t items, components;
    } fields_read[] = {{fields.body_positions, fields.num_bodies, 3},
                       {fields.body_rotations, fields.num_bodies, 4},
                       {fields.body_kinds, fields.num_bodies, 1},
                       {fields.static_positions, fields.num_statics, 3},
                       {fields.static_sizes, fields.num_statics, 3},
                       {fields.static_kinds, fields.num_statics, 1},
                       {fields.button_positions, fields.num_buttons, 3},
                       {fields.button_pressed, fields.num_buttons, 1}};
    for (const auto& [field, items, components] : fields_read) {
        const int64_t end = field.data - layout.first + end_of(field, items, components);
        if (end > layout.bytes) layout.bytes = end;
        layout.is_block = layout.is_block && field.world_stride == layout.world_stride;
    }
    return layout;
}

void write_constants(const Views& views, const Vec3* body_sizes, const TileGrid& tiles, Text* source) {
    const CameraRig& rig = views.rig;
    write_kinds(source);
    write_look(source);
    write_fields(views.fields, body_sizes, source);
    write("kWidth", static_cast<uint32_t>(rig.width), source);
    write("kHeight", static_cast<uint32_t>(rig.height), source);
    write("kTileColumns", tiles.columns, source);
    write("kTileRows", tiles.rows, source);
    write("kTangentX", rig.tangent_x, source);
    write("kTangentY", rig.tangent_y, source);
    write("kRigPosition", rig.position, source);
    write("kRigRotation", rig.rotation, source);
    write("kNearPlane", kNearPlane, source);
    write("kFarPlane", kFarPlane, source);
    source->print("#define WRITE_RGB %d\n", views.tensors.rgb ? 1 : 0);
    source->print("#define WRITE_DEPTH %d\n", views.tensors.depth ? 1 : 0);
    source->print("#define WRITE_SEGMENTATION %d\n", views.tensors.segmentation ? 1 : 0);
    source->print("#define WRITE_NORMALS %d\n", views.tensors.normals ? 1 : 0);
}

void write_objects_shader(const Text& constants, Text* source) {
    source->append("#define WRITE_OBJECTS 1\n");
    write_scene(constants, source);
    write_file("objects.hlsl", kObjectsShader, source);
}

void write_boxes_shader(const Text& constants, Text* source) {
    write_scene(constants, source);
    write_file("tiles.hlsl", kTiles, source);
    write_file("boxes.hlsl", kBoxesShader, source);
}

void write_agents_shader(const Text& constants, Text* source) {
    write_scene(constants, source);
    write_file("tiles.hlsl", kTiles, source);
    write_file("agents.hlsl", kAgentsShader, source);
}

void write_surface_shader(const Text& constants, Text* source) {
    write_scene(constants, source);
    write_file("tiles.hlsl", kTiles, source);
    write_file("surface.hlsl", kSurfaceShader, source);
}

void write_pixels_shader(const Text& constants, const char* material, const char* name, Text* source) {
    write_scene(constants, source);
    write_file("look.hlsl", kLook, source);
    write_file(material ? name : "default_material.hlsl", material ? material : kDefaultMaterial, source);
    write_file("pixels.hlsl", kPixelsShader, source);
}

}  // namespace doorstep
