#include "rollouts/actors.h"

#include <string.h>

#include <new>

#include "rollouts/device_rows.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

class DeviceActors final : public Actors {
public:
    explicit DeviceActors(const ActorParts& parts) : Actors(parts) {}

    ds_status act() override;
    ds_status step() override;
    ds_status read_ends(int32_t recorded) override;

private:
    ds_status open() override;
    ds_failure_cause place(int64_t index, PolicySlot* slot) override;

    bool some_act_on_host() const;
    ds_status upload();
    ds_status prepare();
    ds_status act_on_device(bool some_act_on_host);
    ds_status read_states();
    ds_status note_acted();
    template <class Value>
    ds_status read_tensor(int tensor, Value* host);
    ds_status write_actions();

    Ref<PinnedMemory> staging_;  // the tensors
    Ref<DeviceRows> device_;
    bool uses_host_ = false;  // in this step: rows act there or are recorded, else one graph does it all
};

ds_status DeviceActors::open() {
    const int64_t rows = episodes_.num_rows();
    const int64_t row_bytes = (num_inputs_ + 1 + kActionComponents) * 4 + 2;
    if (!take_memory()) return fail_rows_memory();
    const Ref<Context> context = Context::of_device(simulator_->config().device_index);
    if (!context) return last_status();
    staging_ = PinnedMemory::create(context, static_cast<uint64_t>(rows * row_bytes));
    if (!staging_) return last_status();
    memset(staging_->data(), 0, staging_->bytes());
    float* const floats = static_cast<float*>(staging_->data());
    int32_t* const actions = reinterpret_cast<int32_t*>(floats + rows * (num_inputs_ + 1));
    const uint8_t* const ends = reinterpret_cast<uint8_t*>(actions + rows * kActionComponents);
    tensors_ = {floats, floats + rows * num_inputs_, ends, ends + rows, actions, num_inputs_};
    device_ = DeviceRows::create(simulator_, num_policies_);
    return device_ ? DS_STATUS_OK : last_status();
}

ds_failure_cause DeviceActors::place(int64_t index, PolicySlot* slot) {
    const Ref<Policy>& policy = slot->native;
    const bool on_cuda = policy && policy->device_kind() == DS_DEVICE_CUDA;
    if (on_cuda && policy->device_index() != simulator_->config().device_index) return DS_CAUSE_DEVICE;
    slot->on_device = on_cuda || is_built_in(slot->kind);
    if (slot->on_device) slot->chooser = chooser_of(slot->kind);
    return device_->set_policy(index, on_cuda ? policy : Ref<Policy>()) ? DS_CAUSE_MEMORY : DS_CAUSE_NONE;
}

// ---- Act ----

ds_status DeviceActors::act() {
    if (list_rows()) {
        if (const ds_status status = upload()) return status;
    }
    const bool on_host = some_act_on_host();
    uses_host_ = on_host || episodes_.num_recorded() > 0;
    if (!uses_host_) {
        episodes_.acted();  // in the step
        return DS_STATUS_OK;
    }
    if (const ds_status status = prepare()) return status;
    if (const ds_status status = act_on_host()) return status;
    while (callers_.num_asked() > 0 && !pause_.is_closed()) {
        pause_.until([this] { return callers_.take_answers(); });
    }
    DS_ASSERT(pause_.is_closed() || episodes_.num_ready() == episodes_.num_active());
    return pause_.is_closed() ? DS_STATUS_OK : act_on_device(on_host);
}

ds_status DeviceActors::upload() {
    return device_->upload(played_.data(), order_.data(), episodes_.sampling(), episodes_.keys(), *episodes_.steps(),
                           first_row_.data());
}

bool DeviceActors::some_act_on_host() const {
    for (int64_t policy = 0; policy < num_policies_; ++policy) {
        if (num_listed(policy) > 0 && !policies_[policy].on_device) return true;
    }
    return false;
}

// What the host needs of all rows, and records; then what networks there need.
ds_status DeviceActors::prepare() {
    if (const ds_status status = device_->prepare()) return status;
    if (const ds_status status = read_tensor(DS_TENSOR_observations, tensors_.observations)) return status;
    if (const ds_status status = read_tensor(DS_TENSOR_actions, tensors_.actions)) return status;
    if (const ds_status status = recorded_ & DS_RECORD_STATES ? read_states() : DS_STATUS_OK) return status;
    for (int64_t policy = 0; policy < num_policies_; ++policy) {
        if (!policies_[policy].on_device) prepare_rows(first_row_[policy], num_listed(policy));
    }
    return DS_STATUS_OK;
}

// After the rows that act on the host.
ds_status DeviceActors::act_on_device(bool some_act_on_host) {
    if (some_act_on_host) {
        if (const ds_status status = write_actions()) return status;
    }
    if (const ds_status status = device_->act(recorded_)) return status;
    if (episodes_.num_recorded() == 0) return DS_STATUS_OK;
    if (const ds_status status = read_tensor(DS_TENSOR_actions, tensors_.actions)) return status;
    return recorded_ & (DS_RECORD_LOG_PROBS | DS_RECORD_VALUES) ? note_acted() : DS_STATUS_OK;
}

// ---- What is recorded of networks on the device

// Of all rows.
ds_status DeviceActors::read_states() {
    for (int64_t policy = 0; policy < num_policies_; ++policy) {
        const PolicySlot& slot = policies_[policy];
        if (!slot.on_device || !slot.native || slot.native->state_size() == 0) continue;
        DS_ASSERT(slot.states && slot.state_size == slot.native->state_size());
        if (const ds_status status = device_->read_states(policy, slot.states.data())) return status;
    }
    return DS_STATUS_OK;
}

// In place of what was noted before they acted.
ds_status DeviceActors::note_acted() {
    const float *log_probs, *values;
    if (const ds_status status = device_->read_acted(&log_probs, &values)) return status;
    for (int64_t policy = 0; policy < num_policies_; ++policy) {
        if (!policies_[policy].on_device || !policies_[policy].native) continue;
        for (int64_t place = first_row_[policy]; place < first_row_[policy + 1]; ++place) {
            const int64_t row = order_[place];
            acted_.log_probs[row] = log_probs[row];
            acted_.values[row] = values[row];
        }
    }
    return DS_STATUS_OK;
}

// ---- Step ----

ds_status DeviceActors::step() {
    DS_ASSERT(episodes_.num_ready() > 0 && episodes_.num_ready() == episodes_.num_active());
    if (const ds_status status = uses_host_ ? device_->step() : device_->play()) return status;
    uint8_t* const terminations = const_cast<uint8_t*>(tensors_.terminations);
    uint8_t* const truncations = const_cast<uint8_t*>(tensors_.truncations);
    if (const ds_status status = device_->read_ends(terminations, truncations)) return status;
    if (const ds_status status = device_->read_nonfinite(&device_nonfinite_)) return status;
    return uses_host_ ? read_tensor(DS_TENSOR_rewards, tensors_.rewards) : DS_STATUS_OK;
}

ds_status DeviceActors::read_ends(int32_t recorded) {
    if (recorded & DS_RECORD_OBSERVATIONS) {
        if (const ds_status status = read_tensor(DS_TENSOR_observations, tensors_.observations)) return status;
        show_last_time_left();
    }
    return recorded & DS_RECORD_STATES ? read_states() : DS_STATUS_OK;
}

// ---- Tensors ----

template <class Value>
ds_status DeviceActors::read_tensor(int tensor, Value* host) {
    ds_tensor_info info = {};
    simulator_->describe_tensor(tensor, &info);
    auto* const to = const_cast<std::remove_const_t<Value>*>(host);
    return simulator_->memory_of(tensor)->read(info.data, tensor_bytes(info), to);
}

ds_status DeviceActors::write_actions() {
    ds_tensor_info info = {};
    simulator_->describe_tensor(DS_TENSOR_actions, &info);
    return simulator_->memory_of(DS_TENSOR_actions)->write(info.data, tensor_bytes(info), tensors_.actions);
}

}  // namespace

Actors* make_device_actors(const ActorParts& parts) { return new (std::nothrow) DeviceActors(parts); }

}  // namespace doorstep
