// Descriptions of tensors and state.
#include "api/call.h"
#include "api/tensor_description.h"

namespace doorstep {
namespace {

ds_status check_field(int32_t field) {
    return check_range("field", "pass a ds_state_id", field, 0, DS_STATE_COUNT - 1);
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

ds_status ds_simulator_get_tensor(ds_simulator simulator, int32_t tensor, ds_tensor_info* info) {
    if (const ds_status status = check_struct(info, "info")) return status;
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    if (const ds_status status = check_tensor(*call, tensor)) return status;
    call->describe_tensor(tensor, info);
    return DS_STATUS_OK;
}

ds_status ds_simulator_get_state(ds_simulator simulator, int32_t field, ds_tensor_info* info) {
    if (const ds_status status = check_struct(info, "info")) return status;
    if (const ds_status status = check_field(field)) return status;
    const SimulatorCall call(simulator);
    if (call.status()) return call.status();
    call->look_for_edits();
    call->describe_state(field, info);
    return DS_STATUS_OK;
}

ds_status ds_simulator_view_state(ds_simulator simulator, int32_t field, ds_tensor_info* info) {
    if (const ds_status status = check_struct(info, "info")) return status;
    if (const ds_status status = check_field(field)) return status;
    const Ref<Simulator> found = simulators.find(simulator);
    if (!found) return fail_closed("simulator");
    found->describe_state(field, info);
    info->access = DS_ACCESS_READ;
    return DS_STATUS_OK;
}
