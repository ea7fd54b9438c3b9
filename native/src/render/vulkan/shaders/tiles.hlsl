R"hlsl(// Projects corners into the tile of a view. Depth is reversed (the near plane is at 1, infinity at 0), which gives
// floats their best precision; geometry outside the tile is clipped.

namespace doorstep {

struct Corner {
    float4 position : SV_Position;
    float4 inside : SV_ClipDistance;
    nointerpolation uint surface : SURFACE;
};

// Outside every tile, in front of the near plane.
Corner no_corner() {
    Corner corner;
    corner.position = float4(0, 0, 2, 1);
    corner.inside = -1;
    corner.surface = 0;
    return corner;
}

// offset: from the view's origin.
Corner project(View view, uint view_index, float3 offset, uint surface) {
    const float distance = dot(offset, view.forward.xyz);
    const float x = dot(offset, view.right.xyz) / kTangentX;
    const float y = -dot(offset, view.up.xyz) / kTangentY;
    const float2 target = float2(kTileColumns * kWidth, kTileRows * kHeight);
    const float2 tile = tile_of_view(view_index);
    const float2 size = float2(kWidth, kHeight);
    const float2 scale = size / target, centre = (2.0 * tile + size) / target - 1.0;
    Corner corner;
    corner.position = float4(x * scale.x + distance * centre.x, y * scale.y + distance * centre.y, kNearPlane, distance);
    corner.inside = float4(distance + x, distance - x, distance + y, distance - y);
    corner.surface = surface;
    return corner;
}

// Whether a ball around an object can be visible.
bool can_be_seen(View view, float3 offset, float radius) {
    const float distance = dot(offset, view.forward.xyz);
    const float x = abs(dot(offset, view.right.xyz)), y = abs(dot(offset, view.up.xyz));
    return distance + radius > kNearPlane && x - distance * kTangentX < radius * sqrt(1.0 + kTangentX * kTangentX) &&
           y - distance * kTangentY < radius * sqrt(1.0 + kTangentY * kTangentY);
}

}  // namespace doorstep
)hlsl"
