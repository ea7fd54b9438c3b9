R"hlsl(float3 surface_colour(Surface surface) { return lit(surface.base_colour, surface); }
)hlsl"
