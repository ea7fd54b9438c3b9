#include "rollouts/device_rows.h"

#include <string.h>

#include <algorithm>
#include <new>
#include <utility>

#include "exec/arena.h"
#include "exec/cuda/images.h"
#include "exec/cuda/kernel_module.h"
#include "runtime/status.h"
#include "sim/observation_layout.h"

namespace doorstep {

// ---- Creation and end ----

DeviceRows::DeviceRows(const Ref<Simulator>& simulator, int64_t num_policies)
    : simulator_(simulator),
      num_rows_(simulator->config().num_worlds * simulator->config().num_agents),
      num_policies_(num_policies),
      slots_(new (std::nothrow) Slot[static_cast<size_t>(num_policies)]) {}

Ref<DeviceRows> DeviceRows::create(const Ref<Simulator>& simulator, int64_t num_policies) {
    const Ref<DeviceRows> made = check_allocated(new (std::nothrow) DeviceRows(simulator, num_policies));
    if (!made) return {};
    if (!made->slots_) {
        fail_no_memory();
        return {};
    }
    return made->load() || made->take_memory() ? Ref<DeviceRows>() : made;
}

ds_status DeviceRows::load() {
    const Ref<Context> context = Context::of_device(simulator_->config().device_index);
    if (!context) return last_status();
    stream_ = Stream::borrow(context, simulator_->stream());
    if (!stream_) return last_status();
    prepared_ = Event::create(context);
    if (!prepared_) return last_status();
    const Ref<Module> module = load_module(context, kPoliciesModule);
    if (!module) return last_status();
    prepare_ = Kernel::get(module, kPrepareRowsKernel);
    if (!prepare_) return last_status();
    count_ = Kernel::get(module, kCountStepKernel);
    return count_ ? DS_STATUS_OK : last_status();
}

ds_status DeviceRows::take_memory() {
    lists_at(0, &list_bytes_);
    acted_bytes_ = 2 * num_rows_ * static_cast<int64_t>(sizeof *acted_);
    const int64_t before_flags = list_bytes_ + acted_bytes_;
    pinned_ = PinnedMemory::create(stream_->context(), static_cast<uint64_t>(before_flags + 3 * num_rows_));
    if (!pinned_) return last_status();
    memory_ = DeviceMemory::create_on(stream_, static_cast<uint64_t>(before_flags + num_rows_) + sizeof *counter_);
    if (!memory_) return last_status();
    char* const host = static_cast<char*>(pinned_->data());
    char* const device = reinterpret_cast<char*>(memory_->address());
    memset(host, 0, static_cast<size_t>(list_bytes_));
    staged_ = lists_at(reinterpret_cast<uint64_t>(host), &list_bytes_);
    lists_ = lists_at(memory_->address(), &list_bytes_);
    acted_on_host_ = reinterpret_cast<float*>(host + list_bytes_);
    acted_ = reinterpret_cast<float*>(device + list_bytes_);
    ends_ = reinterpret_cast<uint8_t*>(host + before_flags);
    counter_ = reinterpret_cast<uint32_t*>(device + before_flags);
    nonfinite_ = reinterpret_cast<uint8_t*>(counter_ + 1);
    const uint64_t cleared = static_cast<uint64_t>(acted_bytes_) + sizeof *counter_;
    return stream_->fill(reinterpret_cast<uint64_t>(acted_), 0, cleared);
}

DeviceRows::Lists DeviceRows::lists_at(uint64_t base, int64_t* bytes) const {
    Parts parts;
    const auto place = [&]<class Item>(Item*& list, int64_t count) {
        const int64_t offset = parts.place(count * static_cast<int64_t>(sizeof(Item)));
        list = reinterpret_cast<Item*>(base + static_cast<uint64_t>(offset));
    };
    Lists lists;
    place(lists.rows, num_rows_);
    place(lists.order, num_rows_);
    place(lists.sampling, num_rows_);
    place(lists.keys, num_rows_);
    place(lists.ranges, num_policies_);
    place(lists.policies, num_policies_);
    *bytes = parts.bytes;
    return lists;
}

DeviceRows::~DeviceRows() {
    if (!stream_) return;
    bool finished;
    {
        const CurrentContext current(*stream_->context());
        finished = current.entered() && stream_->finish();
    }
    if (finished) return;
    if (memory_) memory_->abandon();
    if (pinned_) pinned_->abandon();
    for (int64_t i = 0; i < num_policies_; ++i) {
        if (slots_[i].states) slots_[i].states->abandon();
        if (slots_[i].device) slots_[i].device->abandon();
    }
}

// ---- Lists ----

ds_status DeviceRows::set_policy(int64_t index, const Ref<Policy>& policy) {
    DS_ASSERT(index >= 0 && index < num_policies_);
    Slot slot;
    slot.policy = policy;
    if (policy) {
        slot.device = policy->clone_on_device();
        if (!slot.device) return last_status();
        if (const ds_status status = open_branch(&slot)) return status;
        if (const int64_t size = policy->state_size()) {
            slot.states = DeviceMemory::create_on(stream_, static_cast<uint64_t>(num_rows_ * size * 4));
            if (!slot.states) return last_status();
            // Episodes that are played already go on from there
            if (const ds_status status = stream_->fill(slot.states->address(), 0, slot.states->bytes())) return status;
        }
    }
    if (const ds_status status = stream_->synchronize()) return status;  // the graph may be in use
    graph_ = {};
    slots_[index] = std::move(slot);
    float* const states = slots_[index].states ? reinterpret_cast<float*>(slots_[index].states->address()) : nullptr;
    staged_.policies[index] = {states, policy ? policy->state_size() : 0};
    return DS_STATUS_OK;
}

ds_status DeviceRows::open_branch(Slot* slot) const {
    slot->branch = Stream::create(stream_->context());
    if (!slot->branch) return last_status();
    slot->acted = Event::create(stream_->context());
    return slot->acted ? DS_STATUS_OK : last_status();
}

// The staging memory is free: the host has waited for what the last step ended.
ds_status DeviceRows::upload(const PlayedRow* rows, const int32_t* order, const ds_sampling* sampling,
                             const ds_sampling_key* keys, uint32_t steps, const int64_t* first_rows) {
    DS_ASSERT(first_rows[0] == 0 && first_rows[num_policies_] <= num_rows_);
    std::copy_n(rows, num_rows_, staged_.rows);
    std::copy_n(order, first_rows[num_policies_], staged_.order);
    memcpy(staged_.sampling, sampling, static_cast<size_t>(num_rows_) * sizeof *sampling);
    for (int64_t row = 0; row < num_rows_; ++row) {
        staged_.keys[row] = keys[row];
        staged_.keys[row].step += steps - steps_;
    }
    for (int64_t i = 0; i < num_policies_; ++i) {
        DS_ASSERT(first_rows[i] <= first_rows[i + 1]);
        staged_.ranges[i] = {first_rows[i], first_rows[i + 1] - first_rows[i]};
        if (acts(i) && !slots_[i].is_captured) graph_ = {};
    }
    return stream_->copy(memory_->address(), pinned_->address(), static_cast<uint64_t>(list_bytes_));
}

// ---- Work ----

ds_status DeviceRows::play() {
    if (!graph_) {
        if (const ds_status status = capture()) return status;
    }
    ++steps_;
    return graph_->launch(*stream_);
}

ds_status DeviceRows::capture() {
    DS_ASSERT(!graph_);
    for (int64_t i = 0; i < num_policies_; ++i) slots_[i].is_captured |= acts(i);
    const Ref<Graph> graph = Graph::capture(*stream_, [this] { return launch_all(); });
    if (!graph) return last_status();
    graph_ = GraphExec::create(graph);
    return graph_ ? DS_STATUS_OK : last_status();
}

ds_status DeviceRows::launch_all() {
    if (const ds_status status = prepare()) return status;
    if (const ds_status status = act(0)) return status;
    if (const ds_status status = simulator_->step()) return status;
    return launch_count();
}

ds_status DeviceRows::step() {
    if (const ds_status status = simulator_->step()) return status;
    ++steps_;
    return launch_count();
}

ds_status DeviceRows::prepare() {
    const TensorPointers& tensors = simulator_->simulation().tensors;
    const FlatLayout& flat = simulator_->simulation().flat;
    const int agents = simulator_->model().num_agents;
    const PartPlace time_left = place_of(DS_OBSERVATION_PART_steps_remaining, flat.parts, agents);
    PlayedRows call = {num_rows_,
                       lists_.rows,
                       lists_.keys,
                       counter_,
                       lists_.policies,
                       tensors.observations,
                       flat.size,
                       time_left.place,
                       time_left.scale,
                       tensors.actions};
    const uint32_t blocks = static_cast<uint32_t>((num_rows_ + kPrepareThreads - 1) / kPrepareThreads);
    void* parameters[] = {&call};
    return prepare_->launch(*stream_, {{blocks, 1, 1}, {kPrepareThreads, 1, 1}}, parameters);
}

ds_status DeviceRows::act(int32_t recorded) {
    const TensorPointers& tensors = simulator_->simulation().tensors;
    ActCall call{};
    call.num_rows = num_rows_;
    call.rows = lists_.order;
    call.observations = tensors.observations;
    call.observation_stride = simulator_->simulation().flat.size;
    call.sampling = lists_.sampling;
    call.keys = lists_.keys;
    call.actions = tensors.actions;
    call.nonfinite = nonfinite_;
    if (recorded & DS_RECORD_LOG_PROBS) call.log_probs = acted_;
    if (recorded & DS_RECORD_VALUES) call.values = acted_ + num_rows_;
    call.step_counter = counter_;
    if (const ds_status status = prepared_->record(*stream_)) return status;
    const Slot* first = nullptr;
    for (int64_t i = 0; i < num_policies_; ++i) {
        const Slot& slot = slots_[i];
        if (!slot.policy || !(slot.is_captured || acts(i))) continue;
        call.states = staged_.policies[i].states;
        call.state_stride = staged_.policies[i].size;
        const RowRange* const range = &lists_.ranges[i];
        const ds_status status =
            first ? act_in_branch(slot, call, range) : slot.device->launch(*stream_, call, range);
        if (status) return status;
        if (!first) first = &slot;
    }
    for (int64_t i = 0; i < num_policies_; ++i) {
        const Slot& slot = slots_[i];
        if (!slot.policy || &slot == first || !(slot.is_captured || acts(i))) continue;
        if (const ds_status status = stream_->wait_event(*slot.acted)) return status;
    }
    return DS_STATUS_OK;
}

ds_status DeviceRows::act_in_branch(const Slot& slot, const ActCall& call, const RowRange* range) const {
    if (const ds_status status = slot.branch->wait_event(*prepared_)) return status;
    if (const ds_status status = slot.device->launch(*slot.branch, call, range)) return status;
    return slot.acted->record(*slot.branch);
}

ds_status DeviceRows::launch_count() {
    void* parameters[] = {&counter_};
    return count_->launch(*stream_, {{1, 1, 1}, {1, 1, 1}}, parameters);
}

ds_status DeviceRows::read_states(int64_t index, void* host) {
    DS_ASSERT(index >= 0 && index < num_policies_ && slots_[index].states);
    const DeviceMemory& states = *slots_[index].states;
    if (const ds_status status = stream_->copy(reinterpret_cast<uint64_t>(host), states.address(), states.bytes())) {
        return status;
    }
    return stream_->synchronize();
}

ds_status DeviceRows::read_acted(const float** log_probs, const float** values) {
    const ds_status status = stream_->copy(reinterpret_cast<uint64_t>(acted_on_host_), reinterpret_cast<uint64_t>(acted_),
                                           static_cast<uint64_t>(acted_bytes_));
    if (status) return status;
    *log_probs = acted_on_host_;
    *values = acted_on_host_ + num_rows_;
    return stream_->synchronize();
}

ds_status DeviceRows::read_ends(uint8_t* terminations, uint8_t* truncations) {
    const TensorPointers& tensors = simulator_->simulation().tensors;
    const uint64_t bytes = static_cast<uint64_t>(num_rows_), host = reinterpret_cast<uint64_t>(ends_);
    if (const ds_status status = stream_->copy(host, reinterpret_cast<uint64_t>(tensors.terminations), bytes)) {
        return status;
    }
    if (const ds_status status = stream_->copy(host + bytes, reinterpret_cast<uint64_t>(tensors.truncations), bytes)) {
        return status;
    }
    if (const ds_status status = stream_->synchronize()) return status;
    memcpy(terminations, ends_, bytes);
    memcpy(truncations, ends_ + bytes, bytes);
    return DS_STATUS_OK;
}

ds_status DeviceRows::read_nonfinite(const uint8_t** flags) {
    *flags = nullptr;
    int64_t counted = 0;
    for (int64_t i = 0; i < num_policies_; ++i) counted += slots_[i].device ? slots_[i].device->nonfinite_rows() : 0;
    if (counted == std::exchange(nonfinite_rows_, counted)) return DS_STATUS_OK;
    uint8_t* const host = ends_ + 2 * num_rows_;
    const ds_status status = stream_->copy(reinterpret_cast<uint64_t>(host), reinterpret_cast<uint64_t>(nonfinite_),
                                           static_cast<uint64_t>(num_rows_));
    if (status) return status;
    if (const ds_status waited = stream_->synchronize()) return waited;
    *flags = host;
    return DS_STATUS_OK;
}

}  // namespace doorstep
