#include "render/cameras/world_fields.h"

#include "render/api/core.h"

namespace doorstep {
namespace {

FieldView view_of(const ds_tensor_info& info) {
    return {static_cast<const char*>(info.data), info.strides[0], info.strides[1], info.rank > 2 ? info.strides[2] : 0};
}

}  // namespace

ds_status find_world_fields(ds_simulator simulator, const ds_simulator_info& info, WorldFields* fields) {
    struct {
        ds_state_id field;
        FieldView* view;
    } const rows[] = {
        {DS_STATE_body_positions, &fields->body_positions},
        {DS_STATE_body_rotations, &fields->body_rotations},
        {DS_STATE_body_sizes, &fields->body_sizes},
        {DS_STATE_body_kinds, &fields->body_kinds},
        {DS_STATE_static_positions, &fields->static_positions},
        {DS_STATE_static_sizes, &fields->static_sizes},
        {DS_STATE_static_kinds, &fields->static_kinds},
        {DS_STATE_button_positions, &fields->button_positions},
        {DS_STATE_button_pressed, &fields->button_pressed},
    };
    for (const auto& row : rows) {
        ds_tensor_info found = {};
        found.struct_size = sizeof found;
        if (const ds_status status = core().simulator_view_state(simulator, row.field, &found)) return status;
        *row.view = view_of(found);
    }
    fields->num_agents = static_cast<int32_t>(info.num_agents);
    fields->num_bodies = static_cast<int32_t>(info.num_bodies);
    fields->num_statics = static_cast<int32_t>(info.num_statics);
    fields->num_buttons = static_cast<int32_t>(info.num_buttons);
    if (object_count(*fields) <= kMaxObjects) return DS_STATUS_OK;
    return fail(DS_STATUS_INTERNAL, "simulator", "please report it", "a world has %d objects; %d can be drawn",
                object_count(*fields), kMaxObjects);
}

}  // namespace doorstep
