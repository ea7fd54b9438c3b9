R"hlsl(// A material's input: the point that a pixel shows. The appearance that all renderers share (scene/look.h).

struct Surface {
    int kind;             // 1 button, 2 cube, 3 wall, 4 agent, 5 door, 6 floor
    int slot;             // in its table: bodies, statics or buttons; 0 for the floor
    int part;             // 1: an agent's eyes; otherwise 0
    int world;            // number of the world in the simulator
    int agent;            // index of the agent that carries the camera
    float depth;          // along the camera's forward axis, metres
    float3 position;      // in the world, metres
    float3 normal;        // unit, in world axes
    float3 own_position;  // in the object's own frame, from its centre; the floor's is the world's
    float3 own_normal;
    float3 size;          // full extents of the object, metres; 0 for the floor
    float3 base_colour;   // unlit colour, 0 .. 1
};

// The factor of a colour: ambient light, more from above, and one white light.
float brightness(float3 normal) {
    return kAmbient + kAmbientFromAbove * normal.z + kDiffuse * max(dot(normal, kToLight), 0.0);
}

// A lit colour.
float3 lit(float3 colour, Surface surface) { return colour * brightness(surface.normal); }

namespace doorstep {

float3 colour_of_kind(int kind) {
    return kind == kCube ? kCubeColour : kind == kDoor ? kDoorColour : kind == kButton ? kButtonColour
           : kind == kAgent ? kAgentColour : kWallColour;
}

// The fraction of a box of this width around a coordinate that lines across it cover.
float2 line_coverage(float2 coordinate, float2 width) {
    const float half_line = 0.5 * kGridLineWidth / kGridCell;
    const float2 u = coordinate / kGridCell;
    const float2 w = clamp(width / kGridCell, 1e-6, 1.0);
    const float2 from_line = abs(u - round(u));
    const float2 low = from_line - 0.5 * w, high = from_line + 0.5 * w;
    const float2 this_line = max(min(high, half_line) - max(low, -half_line), 0.0);
    const float2 next_line = max(high - (1.0 - half_line), 0.0);
    return (this_line + next_line) / w;
}

// footprint: the extents of the pixel on the floor.
float3 colour_of_floor(float2 position, float2 footprint) {
    const float2 across = line_coverage(position, footprint);
    return lerp(kFloorColour, kFloorLineColour, across.x + across.y - across.x * across.y);
}

}  // namespace doorstep
)hlsl"
