#include "exec/cpu/cpu_simulator.h"

#include <string.h>

#include <new>

#include "exec/cpu/float_environment.h"
#include "exec/cpu/thread.h"
#include "runtime/hash.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

constexpr int64_t kTensorAlignment = 256;
constexpr int64_t kTickStride = (kNumStages + 7) / 8 * 8;  // workers do not share cache lines

// Calls function(first, count) for every run of worlds in [first, first + count) whose mask byte is set.
template <class Function>
void for_each_run(const uint8_t* mask, int64_t first, int64_t count, const Function& function) {
    const int64_t end = first + count;
    if (!mask) return function(first, count);
    for (int64_t world = first; world < end;) {
        const int64_t start = world;
        while (world < end && mask[world]) ++world;
        if (world > start) function(start, world - start);
        while (world < end && !mask[world]) ++world;
    }
}

// Bytes from the first to beyond the last element of one world's part of a field.
int64_t constant_bytes(const StateField& field, int32_t dtype) {
    int64_t bytes = dtype_bytes(dtype);
    for (int axis = 0; axis < field.rank; ++axis) bytes += (field.shape[axis] - 1) * field.strides[axis];
    return bytes;
}

}  // namespace

// ---- Creation ----

Ref<CpuSimulator> CpuSimulator::create(const ds_simulator_config& config) {
    const DefaultFloatEnvironment environment;  // the model computes tables when it is first used
    Ref<CpuSimulator> simulator = Ref<CpuSimulator>::adopt(new (std::nothrow) CpuSimulator(config));
    if (!simulator || !simulator->progress_ ||
        !simulator->pool_.initialize(simulator->config_.num_threads, config.num_worlds)) {
        fail(DS_STATUS_OUT_OF_MEMORY, "num_worlds", "close other simulators, or raise the memory limit",
             "no memory is left for the simulator's own records");
        return {};
    }
    CpuSimulator& self = *simulator;
    if (!self.take_memory() || !self.start_threads()) return {};
    self.pool_.run(config.num_worlds, [&self](int64_t first, int64_t count, int) {
        self.model_->create(self.simulation_, first, count, static_cast<uint32_t>(self.config_.seed),
                            static_cast<uint64_t>(self.config_.world_offset));
    });
    return simulator;
}

CpuSimulator::CpuSimulator(const ds_simulator_config& config)
    : config_(config),
      model_(&find_world_model(static_cast<int>(config.num_agents))),
      progress_(Ref<StepProgress>::adopt(new (std::nothrow) StepProgress)) {
    config_.device_kind = DS_DEVICE_CPU;
    if (config_.num_threads == 0) config_.num_threads = default_thread_count();
    simulation_.episode_length = static_cast<int32_t>(config.episode_length);
    simulation_.auto_reset = config.auto_reset;
    simulation_.action_check = config.action_check;
}

bool CpuSimulator::take_memory() {
    memory_ = Memory::map(lay_out(nullptr), "num_worlds");
    if (!memory_) return false;
    lay_out(memory_->data());
    for (int field = 0; field < DS_STATE_COUNT; ++field) {
        const StateField& row = model_->state_fields[field];
        if (row.offset < 0) {
            memcpy(constants_[field], row.constant, static_cast<size_t>(constant_bytes(row, kStateRows[field].dtype)));
        }
    }
    return true;
}

// Gives every part its place from `base` on and returns the bytes of all; with a null base it only adds them up.
int64_t CpuSimulator::lay_out(char* base) {
    int64_t used = 0;
    const auto place = [&](int64_t bytes) {
        used = (used + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
        char* start = base ? base + used : nullptr;
        used += bytes;
        return start;
    };
    const int64_t world_bytes = static_cast<int64_t>(model_->world_bytes);
    simulation_.worlds = place(config_.num_worlds * world_bytes);
    for (int tensor = 0; tensor < DS_TENSOR_COUNT; ++tensor) {
        ds_tensor_info info;
        doorstep::describe_tensor(kTensorRows[tensor], dimensions(), &info);
        tensor_data_[tensor] = has_tensor(tensor) ? place(tensor_bytes(info)) : nullptr;
    }
#define DS_SET_POINTER(name, dtype, shape, access, sentence) \
    simulation_.tensors.name = static_cast<DS_CTYPE_##dtype*>(tensor_data_[DS_TENSOR_##name]);
    DS_TENSOR_TABLE(DS_SET_POINTER)
#undef DS_SET_POINTER
    for (int field = 0; field < DS_STATE_COUNT; ++field) {
        const StateField& row = model_->state_fields[field];
        if (row.offset < 0) constants_[field] = place(constant_bytes(row, kStateRows[field].dtype));
    }
    mask_ = reinterpret_cast<uint8_t*>(place(config_.num_worlds));
    ticks_ = reinterpret_cast<uint64_t*>(place(pool_.size() * kTickStride * static_cast<int64_t>(sizeof(uint64_t))));
    return used;
}

// ---- Description ----

Dimensions CpuSimulator::dimensions() const {
    return {config_.num_worlds, config_.num_agents, model_->flat_observation_size};
}

int64_t CpuSimulator::allocated_bytes() const {
    return memory_->bytes() + pool_.allocated_bytes() +
           static_cast<int64_t>(sizeof(CpuSimulator) + sizeof(Memory) + sizeof(StepProgress));
}

bool CpuSimulator::has_tensor(int tensor) const {
    const bool flat = tensor == DS_TENSOR_observations || tensor == DS_TENSOR_final_observations;
    return config_.flat_observations || !flat;
}

void CpuSimulator::describe_tensor(int tensor, ds_tensor_info* info) const {
    doorstep::describe_tensor(kTensorRows[tensor], dimensions(), info);
    info->data = tensor_data_[tensor];
}

void CpuSimulator::describe_state(int field, ds_tensor_info* info) const {
    const StateField& row = model_->state_fields[field];
    info->dtype = kStateRows[field].dtype;
    info->access = kStateRows[field].access;
    info->rank = row.rank + 1;
    info->shape[0] = config_.num_worlds;
    info->strides[0] = row.offset < 0 ? 0 : static_cast<int64_t>(model_->world_bytes);
    for (int axis = 0; axis < row.rank; ++axis) {
        info->shape[axis + 1] = row.shape[axis];
        info->strides[axis + 1] = row.strides[axis];
    }
    info->data = row.offset < 0 ? constants_[field] : block(0) + row.offset;
}

char* CpuSimulator::block(int64_t world) const {
    return static_cast<char*>(simulation_.worlds) + world * static_cast<int64_t>(model_->world_bytes);
}

// ---- Threads ----

bool CpuSimulator::start_threads() {
    if (pool_.start()) return true;
    fail(DS_STATUS_OUT_OF_MEMORY, "num_threads", "use fewer threads, or raise the limit of processes (ulimit -u)",
         "the operating system refuses to start %d threads", pool_.size() - 1);
    return false;
}

bool CpuSimulator::start_background() {
    if (background_.start()) return true;
    fail(DS_STATUS_OUT_OF_MEMORY, "", "use step(), or raise the limit of processes (ulimit -u)",
         "the operating system refuses to start the thread for asynchronous steps");
    return false;
}

void CpuSimulator::stop_threads() {
    background_.stop();
    pool_.stop();
}

void CpuSimulator::forget_threads() {
    background_.forget_thread();
    pool_.forget_threads();
}

// ---- Operations ----

void CpuSimulator::step() {
    std::atomic<uint32_t> trouble{0};
    pool_.run(config_.num_worlds, [&](int64_t first, int64_t count, int worker) {
        const uint32_t met = model_->step(simulation_, first, count, profiling_ ? ticks_of(worker) : nullptr);
        if (met) trouble.fetch_or(met, std::memory_order_relaxed);
    });
    trouble_ |= trouble.load(std::memory_order_relaxed);
    step_count_.fetch_add(1, std::memory_order_relaxed);
}

void CpuSimulator::step_in_background() {
    progress_->begin();
    background_.post(
        [](void* context) {
            CpuSimulator* self = static_cast<CpuSimulator*>(context);
            self->step();
            self->progress_->end();
            self->turn.unlock();
        },
        this);
}

bool CpuSimulator::find_bad_action(BadAction* bad) const {
    return model_->find_bad_action(simulation_, 0, config_.num_worlds, bad);
}

void CpuSimulator::reset(const uint8_t* mask) {
    pool_.run(config_.num_worlds,
              [&](int64_t first, int64_t count, int) { model_->reset(simulation_, first, count, mask); });
}

void CpuSimulator::refresh(const uint8_t* mask) {
    std::atomic<uint32_t> trouble{kTroubleNone};
    pool_.run(config_.num_worlds, [&](int64_t first, int64_t count, int) {
        for_each_run(mask, first, count, [&](int64_t start, int64_t length) {
            trouble.fetch_or(model_->refresh(simulation_, start, length), std::memory_order_relaxed);
        });
    });
    trouble_ |= trouble.load(std::memory_order_relaxed);
}

// ---- Health ----

uint32_t CpuSimulator::take_trouble() {
    const uint32_t trouble = trouble_;
    trouble_ = kTroubleNone;
    return trouble;
}

void CpuSimulator::read_health(ds_health* health) const {
    *health = {health->struct_size, -1, -1, -1, 0, 0, 0, 0};
    for (int64_t world = 0; world < config_.num_worlds; ++world) {
        WorldHealth counts;
        model_->read_health(block(world), &counts);
        health->clamped_actions += counts.clamped_actions;
        health->dropped_contacts += counts.dropped_contacts;
        health->nonfinite_values += counts.nonfinite_values;
        health->repaired_indices += counts.repaired_indices;
    }
    WorldHealth culprit;
    if (!find_latest_culprit(&health->culprit_world, &culprit)) return;
    health->culprit_body = culprit.culprit_body;
    health->culprit_step = culprit.culprit_step;
}

bool CpuSimulator::find_latest_culprit(int64_t* world, WorldHealth* health) const {
    bool found = false;
    for (int64_t candidate = 0; candidate < config_.num_worlds; ++candidate) {
        WorldHealth counts;
        model_->read_health(block(candidate), &counts);
        if (counts.culprit_step < 0 || (found && counts.culprit_step <= health->culprit_step)) continue;
        *world = candidate;
        *health = counts;
        found = true;
    }
    return found;
}

// ---- Hash ----

uint64_t CpuSimulator::hash(const uint8_t* mask, uint64_t* hashes) {
    std::atomic<uint64_t> sum{0};
    pool_.run(config_.num_worlds, [&](int64_t first, int64_t count, int) {
        uint64_t part = 0;
        for (int64_t world = first; world < first + count; ++world) {
            if (mask && !mask[world]) continue;
            const uint64_t hash = hash_bytes(block(world), model_->world_bytes);
            if (hashes) hashes[world] = hash;
            part += hash;
        }
        sum.fetch_add(part, std::memory_order_relaxed);
    });
    return sum.load(std::memory_order_relaxed);
}

// ---- Profile ----

uint64_t* CpuSimulator::ticks_of(int worker) { return ticks_ + worker * kTickStride; }

void CpuSimulator::set_profiling(bool enabled) {
    if (enabled) memset(ticks_, 0, static_cast<size_t>(pool_.size() * kTickStride) * sizeof(uint64_t));
    profiling_ = enabled;
}

void CpuSimulator::read_profile(uint64_t* ticks) const {
    for (int stage = 0; stage < kNumStages; ++stage) {
        ticks[stage] = 0;
        for (int worker = 0; worker < pool_.size(); ++worker) ticks[stage] += ticks_[worker * kTickStride + stage];
    }
}

}  // namespace doorstep
