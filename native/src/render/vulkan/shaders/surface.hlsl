R"hlsl(uint main(doorstep::Corner corner) : SV_Target { return corner.surface; }
)hlsl"
