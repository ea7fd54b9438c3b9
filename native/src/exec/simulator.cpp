#include "exec/simulator.h"

#include <algorithm>
#include <memory>
#include <new>

#include "runtime/hash.h"
#include "runtime/list.h"
#include "runtime/machine.h"
#include "sim/observation_layout.h"
#include "sim/reference_level.h"

namespace doorstep {
namespace {

ds_status fail_table(int64_t count) {
    return fail(DS_STATUS_OUT_OF_MEMORY, "max_levels", "use fewer worlds or levels, or raise the memory limit",
                "no memory is left to pass on %ld levels and their weights", count);
}

}  // namespace

Simulator::Simulator(const ds_simulator_config& config, int32_t device_kind)
    : config_(config),
      model_(&prepared_model(kind_of(config))),
      layout_(lay_out_arena(config, *model_)),
      bytes_for_attachments_(Ref<ByteCount>::adopt(new (std::nothrow) ByteCount)) {
    config_.device_kind = device_kind;
    simulation_.rules.episode_length = static_cast<int32_t>(config.episode_length);
    simulation_.rules.auto_reset = config.auto_reset;
    simulation_.rules.action_check = config.action_check;
    simulation_.max_levels = config.max_levels;
    simulation_.num_agents = model_->num_agents;
    simulation_.flat = layout_of(config.observations, model_->num_agents);
    set_rewards(nullptr);
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

ds_status Simulator::set_first_levels() {
    if (config_.max_levels == 0) return DS_STATUS_OK;
    const int64_t count = config_.max_levels;
    const std::unique_ptr<ds_level[]> levels(new (std::nothrow) ds_level[static_cast<size_t>(count)]);
    const std::unique_ptr<float[]> weights(new (std::nothrow) float[static_cast<size_t>(count)]);
    if (!levels || !weights) return fail_table(count);
    std::fill_n(levels.get(), count, reference_level());
    std::fill_n(weights.get(), count, 0.f);
    weights[0] = 1.f;
    return set_levels(levels.get(), count, weights.get());
}

ds_status Simulator::set_levels(const ds_level* levels, int64_t count, const float* weights) {
    DS_ASSERT(count >= 1 && count <= config_.max_levels);
    const int64_t row = config_.max_levels, worlds = config_.num_worlds;
    const std::unique_ptr<float[]> rows(new (std::nothrow) float[static_cast<size_t>(worlds * row)]);
    if (!rows) return fail_table(count);
    for (int64_t i = 0; i < worlds * row; ++i) rows[i] = i % row >= count ? 0.f : weights ? weights[i % row] : 1.f;
    const int64_t level_bytes = count * static_cast<int64_t>(sizeof(ds_level));
    const int64_t weight_bytes = worlds * row * static_cast<int64_t>(sizeof(float));
    if (const ds_status status = memory_->write(memory_->data() + layout_.levels, level_bytes, levels)) return status;
    return memory_of(DS_TENSOR_level_weights)->write(simulation_.tensors.level_weights, weight_bytes, rows.get());
}

void Simulator::set_rewards(const ds_level_rewards* rewards) { simulation_.given_rewards = given(rewards); }

void Simulator::describe_tensor(int tensor, ds_tensor_info* info) const {
    DS_ASSERT(has_tensor(tensor));
    doorstep::describe_tensor(kTensorRows[tensor], dimensions_of(config_, *model_), info);
    info->data = tensor_address(simulation_.tensors, tensor);
}

Ref<Memory> Simulator::bind(int tensor, Ref<Memory> memory) {
    DS_ASSERT(has_tensor(tensor));
    DS_ASSERT(!memory || memory->device_kind() == config_.device_kind);
    set_tensor_address(&simulation_.tensors, tensor, memory ? memory->data() : own_address(tensor));
    Ref<Memory> replaced = std::exchange(bound_[tensor], std::move(memory));
    if (watched_count_) collect_watched();
    return replaced;
}

void Simulator::watch(int tensor, const uint64_t* first, const uint64_t* second) {
    DS_ASSERT(bound_[tensor]);
    bound_[tensor]->watch(kTensorRows[tensor].name, first, second);
    collect_watched();
}

void Simulator::collect_watched() {
    watched_count_ = 0;
    for (const Ref<Memory>& memory : bound_)
        for (int i = 0; memory && i < Memory::kWatched; ++i)
            if (memory->watched(i).word) watched_[watched_count_++] = memory->watched(i);
}

ds_status Simulator::fail_moved() const {
    for (const Ref<Memory>& memory : bound_)
        if (memory && memory->has_moved()) return memory->check();
    return DS_STATUS_OK;  // another thread moved it back
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

ds_status Simulator::summarise(const uint8_t* mask, EpisodeSummary* summaries) {
    DS_ASSERT(mask);
    return visit_blocks(mask, [&](int64_t world, const char* block) {
        EpisodeSummary& summary = summaries[world];
        model_->read_progress(block, &summary.progress);
        summary.hash = hash_bytes(block, model_->world_bytes);
        WorldHealth counts;
        model_->read_health(block, &counts);
        summary.met_trouble = counts.dropped_contacts || counts.nonfinite_values || counts.repaired_indices;
    });
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

// ---- Models

namespace {

constinit Mutex models_mutex;  // held while tables are made
constinit std::atomic<const WorldModel*> prepared[2][DS_MAX_AGENTS];

}  // namespace

const WorldModel& prepared_model(WorldKind kind) {
    DS_ASSERT(kind.num_agents >= 1 && kind.num_agents <= DS_MAX_AGENTS);
    std::atomic<const WorldModel*>& model = prepared[kind.plays_levels][kind.num_agents - 1];
    if (const WorldModel* found = model.load(std::memory_order_acquire)) return *found;
    MutexGuard guard(models_mutex);
    const WorldModel& found = find_world_model(kind, cpu_features().avx512);
    model.store(&found, std::memory_order_release);
    return found;
}

void lock_models() { models_mutex.lock(); }
void unlock_models() { models_mutex.unlock(); }
void reset_models() { models_mutex.reset(); }

// ---- Open simulators

namespace {

constinit Mutex list_mutex;
constinit List<Simulator> open_simulators;  // guarded by list_mutex

}  // namespace

void list_open(Simulator* simulator) {
    MutexGuard guard(list_mutex);
    open_simulators.insert(simulator);
}

void unlist_open(Simulator* simulator) {
    MutexGuard guard(list_mutex);
    open_simulators.remove(simulator);
}

void lock_open_simulators() {
    list_mutex.lock();
    open_simulators.for_each([](Simulator& simulator) { simulator.turn.lock(); });
}

void unlock_open_simulators() {
    open_simulators.for_each([](Simulator& simulator) { simulator.turn.unlock(); });
    list_mutex.unlock();
}

void enter_forked_child_with_simulators() {
    open_simulators.for_each([](Simulator& simulator) {
        simulator.enter_forked_child();
        simulator.turn.reset();
    });
    list_mutex.reset();
}

}  // namespace doorstep
