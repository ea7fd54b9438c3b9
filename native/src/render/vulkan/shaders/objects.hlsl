R"hlsl(// Reads the worlds: objects as in render/scene/objects.h, views as in camera.h.

namespace doorstep {

// A field is (offset in the world, stride of items, stride of components), in bytes.
uint address_of(uint3 field, uint world, uint item, uint component) {
    return chunk.worlds_begin + world * kWorldBytes + field.x + item * field.y + component * field.z;
}
float3 read_vector(uint3 field, uint world, uint item) {
    return float3(asfloat(worlds.Load(address_of(field, world, item, 0))),
                  asfloat(worlds.Load(address_of(field, world, item, 1))),
                  asfloat(worlds.Load(address_of(field, world, item, 2))));
}
// (w, x, y, z)
float4 read_quaternion(uint3 field, uint world, uint item) {
    return float4(read_vector(field, world, item), asfloat(worlds.Load(address_of(field, world, item, 3))));
}
int read_integer(uint3 field, uint world, uint item) { return asint(worlds.Load(address_of(field, world, item, 0))); }

float4 multiply(float4 a, float4 b) {
    return float4(a.x * b.x - dot(a.yzw, b.yzw), a.x * b.yzw + b.x * a.yzw + cross(a.yzw, b.yzw));
}
float3 rotate(float4 q, float3 v) {
    const float3 t = 2.0 * cross(q.yzw, v);
    return v + q.x * t + cross(q.yzw, t);
}

Object make_object(float3 centre, float4 rotation, float3 half_size, int kind) {
    Object object;
    object.centre = float4(centre, kind);
    object.axis_x = float4(rotate(rotation, float3(1, 0, 0)), half_size.x);
    object.axis_y = float4(rotate(rotation, float3(0, 1, 0)), half_size.y);
    object.axis_z = float4(rotate(rotation, float3(0, 0, 1)), half_size.z);
    return object;
}

Object read_object(uint world, uint index) {
    const float4 upright = float4(1, 0, 0, 0);
    if (index < kBodies) {
        const float3 half_size = 0.5 * kBodySizes[index];
        const int kind = read_integer(kBodyKinds, world, index);
        float3 centre = read_vector(kBodyPositions, world, index);
        if (kind == kAgent) centre.z += half_size.z;
        return make_object(centre, read_quaternion(kBodyRotations, world, index), half_size, kind);
    }
    index -= kBodies;
    if (index < kStatics) {
        const float3 half_size = 0.5 * read_vector(kStaticSizes, world, index);
        const float3 centre = read_vector(kStaticPositions, world, index) + float3(0, 0, half_size.z);
        return make_object(centre, upright, half_size, read_integer(kStaticKinds, world, index));
    }
    index -= kStatics;
    const bool pressed = read_integer(kButtonPressed, world, index) != 0;
    const float3 half_size = 0.5 * float3(kPlateSide, kPlateSide, pressed ? kPressedPlateHeight : kPlateHeight);
    return make_object(read_vector(kButtonPositions, world, index) + float3(0, 0, half_size.z), upright, half_size,
                       kButton);
}

View view_of_agent(uint world, uint agent) {
    const float4 agent_rotation = read_quaternion(kBodyRotations, world, agent);
    const float4 rotation = multiply(agent_rotation, kRigRotation);
    View view;
    view.origin = float4(read_vector(kBodyPositions, world, agent) + rotate(agent_rotation, kRigPosition), 0);
    view.right = float4(rotate(rotation, float3(1, 0, 0)), 0);
    view.forward = float4(rotate(rotation, float3(0, 1, 0)), 0);
    view.up = float4(rotate(rotation, float3(0, 0, 1)), 0);
    return view;
}

// One thread for every object and every view.
void read_item(uint index) {
    const uint num_objects = chunk.num_worlds * kObjects;
    if (index < num_objects) {
        objects[index] = read_object(index / kObjects, index % kObjects);
    } else if (index < num_objects + chunk.num_views) {
        const uint view = index - num_objects;
        views[view] = view_of_agent(world_of_view(view), agent_of_view(view));
    }
}

}  // namespace doorstep

[numthreads(64, 1, 1)] void main(uint3 thread : SV_DispatchThreadID) { doorstep::read_item(thread.x); }
)hlsl"
