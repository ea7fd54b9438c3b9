R"hlsl(// What all shaders share: the records that they hand on, and where everything is bound. Behind constants that
// shader_constants.cpp writes. The worlds and views of one call are a chunk of the batch, counted from 0.

namespace doorstep {

// A box, or the frame of an agent's mesh.
struct Object {
    float4 centre;          // w: kind; 0: nothing there
    float4 axis_x;          // unit vectors of its own axes, in world axes; w: half extents along them
    float4 axis_y;
    float4 axis_z;
};

struct View {
    float4 origin;
    float4 right;
    float4 forward;
    float4 up;
};

// Two float4 for every corner of the agent's triangles: position and material, normal.
[[vk::binding(0)]] ByteAddressBuffer worlds;
[[vk::binding(1)]] RWStructuredBuffer<Object> objects;
[[vk::binding(2)]] RWStructuredBuffer<View> views;
[[vk::binding(3)]] StructuredBuffer<float4> agent_corners;
// What each pixel of the tiles shows: 0, or the index of an object + 1 above the 16 bits of a triangle (agents) or
// of the axis that the side of a box is across.
[[vk::binding(4), vk::image_format("r32ui")]] RWTexture2D<uint> surfaces;
[[vk::binding(5)]] RWStructuredBuffer<uint> rgb;
[[vk::binding(6)]] RWStructuredBuffer<float> depth;
[[vk::binding(7)]] RWStructuredBuffer<uint16_t> segmentation;
[[vk::binding(8)]] RWStructuredBuffer<float> normals;

struct Chunk {
    uint first_view;   // in the batch
    uint num_views;
    uint first_world;  // of the worlds that have these views
    uint num_worlds;
    // Where the chunk begins in what is bound: bytes of worlds, elements of the others.
    uint worlds_begin;
    uint rgb_begin;
    uint depth_begin;
    uint segmentation_begin;
    uint normals_begin;
};
[[vk::push_constant]] Chunk chunk;

static const uint kObjects = kBodies + kStatics + kButtons;

uint world_of_view(uint view) { return (chunk.first_view + view) / kAgents - chunk.first_world; }
uint agent_of_view(uint view) { return (chunk.first_view + view) % kAgents; }

// The upper left pixel of a view's tile.
uint2 tile_of_view(uint view) { return uint2(view % kTileColumns * kWidth, view / kTileColumns * kHeight); }

}  // namespace doorstep
)hlsl"
