R"hlsl(// The triangles of the other agents. Instances: views times agents.

namespace doorstep {

Corner corner_of_agent(uint vertex, uint instance) {
    const uint view_index = instance / kAgents, index = instance % kAgents;
    const View view = views[view_index];
    const Object agent = objects[world_of_view(view_index) * kObjects + index];
    const float3 offset = agent.centre.xyz - view.origin.xyz;
    const float radius = length(float3(agent.axis_x.w, agent.axis_y.w, agent.axis_z.w));
    const bool hidden = index == agent_of_view(view_index) || agent.centre.w == 0;
    if (hidden || !can_be_seen(view, offset, radius)) return no_corner();
    const float3 own = agent_corners[2 * vertex].xyz;
    const float3 from_centre = own.x * agent.axis_x.xyz + own.y * agent.axis_y.xyz + own.z * agent.axis_z.xyz;
    return project(view, view_index, offset + from_centre, (index + 1) << 16 | vertex / 3);
}

}  // namespace doorstep

doorstep::Corner main(uint vertex : SV_VertexID, uint instance : SV_InstanceID) {
    return doorstep::corner_of_agent(vertex, instance);
}
)hlsl"
