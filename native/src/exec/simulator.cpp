#include "exec/simulator.h"

#include <new>

namespace doorstep {

Simulator::Simulator(const ds_simulator_config& config, int32_t device_kind)
    : config_(config),
      model_(&find_world_model(static_cast<int>(config.num_agents))),
      layout_(lay_out_arena(config, *model_)),
      bytes_for_attachments_(Ref<ByteCount>::adopt(new (std::nothrow) ByteCount)) {
    config_.device_kind = device_kind;
    simulation_.rules.episode_length = static_cast<int32_t>(config.episode_length);
    simulation_.rules.auto_reset = config.auto_reset;
    simulation_.rules.action_check = config.action_check;
}

ds_status Simulator::fail_records() {
    return fail(DS_STATUS_OUT_OF_MEMORY, "num_worlds", "close other simulators, or raise the memory limit",
                "no memory is left for the simulator's own records");
}

void Simulator::take_over(Ref<Memory> memory) {
    DS_ASSERT(!memory_ && memory->bytes() >= layout_.bytes);
    locate(layout_, memory->data(), &simulation_);
    memory_ = std::move(memory);
}

ds_status Simulator::allocate(int64_t bytes, Ref<Memory>* memory) {
    if (const ds_status status = take_memory(bytes, memory)) return status;
    (*memory)->count_in(bytes_for_attachments_);
    return DS_STATUS_OK;
}

void Simulator::describe_tensor(int tensor, ds_tensor_info* info) const {
    DS_ASSERT(has_tensor(tensor));
    doorstep::describe_tensor(kTensorRows[tensor], dimensions_of(config_, *model_), info);
    info->data = tensor_address(simulation_.tensors, tensor);
}

Ref<Memory> Simulator::bind(int tensor, Ref<Memory> memory) {
    DS_ASSERT(has_tensor(tensor));
    DS_ASSERT(!memory || memory->device_kind() == config_.device_kind);
    set_tensor_address(&simulation_.tensors, tensor, memory ? memory->data() : own_address(tensor));
    return std::exchange(bound_[tensor], std::move(memory));
}

void Simulator::describe_state(int field, ds_tensor_info* info) const {
    DS_ASSERT(field >= 0 && field < DS_STATE_COUNT);
    const StateField& row = model_->state_fields[field];
    const bool constant = row.offset < 0;
    info->dtype = kStateRows[field].dtype;
    info->access = kStateRows[field].access;
    info->rank = row.rank + 1;
    info->shape[0] = config_.num_worlds;
    info->strides[0] = constant ? 0 : static_cast<int64_t>(model_->world_bytes);
    for (int axis = 0; axis < row.rank; ++axis) {
        info->shape[axis + 1] = row.shape[axis];
        info->strides[axis + 1] = row.strides[axis];
    }
    info->data = memory_->data() + (constant ? layout_.constants[field] : layout_.worlds + row.offset);
}

ds_status Simulator::read_health(ds_health* health) {
    ds_health total = {health->struct_size, -1, -1, -1, 0, 0, 0, 0};
    const ds_status status = visit_blocks(nullptr, [&](int64_t world, const char* block) {
        WorldHealth counts;
        model_->read_health(block, &counts);
        total.clamped_actions += counts.clamped_actions;
        total.dropped_contacts += counts.dropped_contacts;
        total.nonfinite_values += counts.nonfinite_values;
        total.repaired_indices += counts.repaired_indices;
        if (counts.culprit_step < 0 || counts.culprit_step <= total.culprit_step) return;
        total.culprit_world = world;
        total.culprit_body = counts.culprit_body;
        total.culprit_step = counts.culprit_step;
    });
    if (status) return status;
    *health = total;
    return DS_STATUS_OK;
}

}  // namespace doorstep
