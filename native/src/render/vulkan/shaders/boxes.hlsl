R"hlsl(// The sides of a box that face the view, at most three, two triangles each. Instances: views times boxes.

namespace doorstep {

Corner corner_of_box(uint vertex, uint instance) {
    const uint num_boxes = kObjects - kAgents;
    const uint view_index = instance / num_boxes, index = kAgents + instance % num_boxes;
    const View view = views[view_index];
    const Object box = objects[world_of_view(view_index) * kObjects + index];
    const float3 half_size = float3(box.axis_x.w, box.axis_y.w, box.axis_z.w);
    const float3 offset = box.centre.xyz - view.origin.xyz;
    if (box.centre.w == 0 || !can_be_seen(view, offset, length(half_size))) return no_corner();

    const uint axis = vertex / 6;
    const float3 eye = -float3(dot(box.axis_x.xyz, offset), dot(box.axis_y.xyz, offset), dot(box.axis_z.xyz, offset));
    if (abs(eye[axis]) <= half_size[axis]) return no_corner();
    const uint corner = vertex % 6;  // of (0, 1, 2) and (0, 2, 3)
    float3 own;
    own[axis] = eye[axis] > 0 ? half_size[axis] : -half_size[axis];
    const uint u = (axis + 1) % 3, v = (axis + 2) % 3;
    own[u] = corner == 1 || corner == 2 || corner == 4 ? half_size[u] : -half_size[u];
    own[v] = corner == 2 || corner == 4 || corner == 5 ? half_size[v] : -half_size[v];
    const float3 from_centre = own.x * box.axis_x.xyz + own.y * box.axis_y.xyz + own.z * box.axis_z.xyz;
    return project(view, view_index, offset + from_centre, (index + 1) << 16 | axis);
}

}  // namespace doorstep

doorstep::Corner main(uint vertex : SV_VertexID, uint instance : SV_InstanceID) {
    return doorstep::corner_of_box(vertex, instance);
}
)hlsl"
