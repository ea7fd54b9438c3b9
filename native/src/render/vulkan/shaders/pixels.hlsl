R"hlsl(// Writes the tensors: intersects each pixel's ray with the surface that the tile shows there. The hit is
// computed as in a ray caster, so that no precision is lost in the tiles. The outputs are declared after the material,
// which therefore cannot access them.

namespace doorstep {

// The surface of each pixel of the tiles: 0, or the index of an object + 1 above the 16 bits of a triangle (agents) or
// of the axis across which the side of a box lies.
[[vk::binding(4), vk::image_format("r32ui")]] RWTexture2D<uint> surfaces;
[[vk::binding(5)]] RWStructuredBuffer<uint> rgb;
[[vk::binding(6)]] RWStructuredBuffer<float> depth;
[[vk::binding(7)]] RWStructuredBuffer<uint16_t> segmentation;
[[vk::binding(8)]] RWStructuredBuffer<float> normals;

struct Ray {
    float3 origin, direction;  // the direction's component along the camera's forward axis is 1
};

Ray ray_of_pixel(View view, uint2 pixel) {
    Ray ray;
    ray.origin = view.origin.xyz;
    ray.direction = view.forward.xyz + view.right.xyz * (kTangentX * ((2.0 * pixel.x + 1.0) / kWidth - 1.0)) +
                    view.up.xyz * (kTangentY * (1.0 - (2.0 * pixel.y + 1.0) / kHeight));
    return ray;
}

float3 to_own_axes(Object object, float3 v) {
    return float3(dot(object.axis_x.xyz, v), dot(object.axis_y.xyz, v), dot(object.axis_z.xyz, v));
}
float3 to_world_axes(Object object, float3 v) {
    return v.x * object.axis_x.xyz + v.y * object.axis_y.xyz + v.z * object.axis_z.xyz;
}

void hit_box(float3 half_size, float3 origin, float3 direction, uint axis, inout Surface surface) {
    const float side = origin[axis] > 0 ? 1.0 : -1.0;
    surface.depth = (side * half_size[axis] - origin[axis]) / direction[axis];
    surface.own_normal = 0;
    surface.own_normal[axis] = side;
    surface.own_position = origin + direction * surface.depth;
}

// The tiles contain the triangle; at its edges the ray may miss it by some hundredths of a pixel, and is moved
// onto it.
void hit_triangle(float3 origin, float3 direction, uint index, inout Surface surface) {
    const uint first = 6 * index;
    const float3 a = agent_corners[first].xyz;
    const float3 ab = agent_corners[first + 2].xyz - a, ac = agent_corners[first + 4].xyz - a;
    const float3 p = cross(direction, ac), to_origin = origin - a, q = cross(to_origin, ab);
    const float determinant = dot(ab, p);
    float3 weights;
    weights.y = dot(to_origin, p) / determinant;
    weights.z = dot(direction, q) / determinant;
    weights.x = 1.0 - weights.y - weights.z;
    const bool inside = all(weights >= 0.0);
    weights = max(weights, 0.0);
    weights /= weights.x + weights.y + weights.z;
    surface.own_position = a + weights.y * ab + weights.z * ac;
    surface.depth = inside ? dot(ac, q) / determinant
                           : dot(surface.own_position - origin, direction) / dot(direction, direction);
    surface.own_normal = normalize(weights.x * agent_corners[first + 1].xyz + weights.y * agent_corners[first + 3].xyz +
                                   weights.z * agent_corners[first + 5].xyz);
    surface.part = asint(agent_corners[first].w);
}

void hit_object(Ray ray, uint world, uint packed, inout Surface surface) {
    const uint index = (packed >> 16) - 1, part = packed & 0xffff;
    const Object object = objects[world * kObjects + index];
    const float3 half_size = float3(object.axis_x.w, object.axis_y.w, object.axis_z.w);
    const float3 origin = to_own_axes(object, ray.origin - object.centre.xyz);
    const float3 direction = to_own_axes(object, ray.direction);
    surface.kind = int(object.centre.w);
    surface.slot = index < kBodies ? index : index < kBodies + kStatics ? index - kBodies : index - kBodies - kStatics;
    surface.size = 2.0 * half_size;
    if (index < kAgents) {
        hit_triangle(origin, direction, part, surface);
    } else {
        hit_box(half_size, origin, direction, part, surface);
    }
    surface.normal = to_world_axes(object, surface.own_normal);
    surface.base_colour = surface.part == kEyeMaterial ? kEyeColour : colour_of_kind(surface.kind);
}

void hit_floor(View view, Ray ray, inout Surface surface) {
    const float t = -ray.origin.z / ray.direction.z;
    const bool is_seen = ray.direction.z < 0.0 && t > kNearPlane && t < surface.depth;  // from above only
    if (!is_seen) return;
    surface.kind = kFloor;
    surface.slot = surface.part = 0;
    surface.size = 0;
    surface.depth = t;
    surface.normal = surface.own_normal = float3(0, 0, 1);
    surface.own_position = ray.origin + ray.direction * t;
    const float2 slope = ray.direction.xy / ray.direction.z;
    const float pixel_side = 2.0 * kTangentY / kHeight;
    const float2 footprint = t * pixel_side * (abs(view.right.xy - slope * view.right.z) +
                                               abs(view.up.xy - slope * view.up.z));
    surface.base_colour = colour_of_floor(surface.own_position.xy, footprint);
}

uint packed_colour(float3 colour) {
    const uint3 levels = uint3(saturate(colour) * 255.0 + 0.5);
    return levels.x | levels.y << 8 | levels.z << 16 | 255u << 24;
}

void draw_pixel(uint view_index, uint2 pixel) {
    const View view = views[view_index];
    const Ray ray = ray_of_pixel(view, pixel);
    const uint packed = surfaces[tile_of_view(view_index) + pixel];

    Surface surface = (Surface)0;
    surface.world = (chunk.first_view + view_index) / kAgents;
    surface.agent = agent_of_view(view_index);
    surface.depth = kFarPlane;
    if (packed != 0) hit_object(ray, world_of_view(view_index), packed, surface);
    if (!(surface.depth < kFarPlane)) surface.kind = 0;
    hit_floor(view, ray, surface);
    if (surface.kind == 0) {
        surface.depth = 0;
        surface.normal = 0;
    }
    surface.position = ray.origin + ray.direction * surface.depth;

    const uint index = (view_index * kHeight + pixel.y) * kWidth + pixel.x;
#if WRITE_RGB
    float3 colour = kSkyColour;
    if (surface.kind != 0) colour = surface_colour(surface);
    rgb[chunk.rgb_begin + index] = packed_colour(colour);
#endif
#if WRITE_DEPTH
    depth[chunk.depth_begin + index] = surface.depth;
#endif
#if WRITE_SEGMENTATION
    segmentation[chunk.segmentation_begin + index] = uint16_t(surface.kind | surface.slot << 8);
#endif
#if WRITE_NORMALS
    const uint first = chunk.normals_begin + 3 * index;
    normals[first] = surface.normal.x;
    normals[first + 1] = surface.normal.y;
    normals[first + 2] = surface.normal.z;
#endif
}

}  // namespace doorstep

[numthreads(8, 8, 1)] void main(uint3 thread : SV_DispatchThreadID) {
    if (thread.x < kWidth && thread.y < kHeight) doorstep::draw_pixel(thread.z, thread.xy);
}
)hlsl"
