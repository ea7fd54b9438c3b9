R"hlsl(// Shared by all shaders: the records that they pass on, and the bindings. Comes after constants that
// shader_sources.cpp writes. The worlds and views of one call are a chunk of the batch, counted from 0.

namespace doorstep {

// A box, or the frame of an agent's mesh.
struct Object {
    float4 centre;          // w: kind; 0: not drawn
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
#if WRITE_OBJECTS
[[vk::binding(1)]] RWStructuredBuffer<Object> objects;
[[vk::binding(2)]] RWStructuredBuffer<View> views;
#else
[[vk::binding(1)]] StructuredBuffer<Object> objects;
[[vk::binding(2)]] StructuredBuffer<View> views;
#endif
[[vk::binding(3)]] StructuredBuffer<float4> agent_corners;

struct Chunk {
    uint first_view;   // in the batch
    uint num_views;
    uint first_world;  // of the worlds with these views
    uint num_worlds;
    // Where the chunk starts in the bindings: bytes of worlds, elements of the others.
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
