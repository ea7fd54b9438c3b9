#include "rollouts/step_records.h"

#include <string.h>

#include <algorithm>
#include <new>
#include <utility>

#include "math/exponential.h"
#include "policy/random_action.h"

namespace doorstep {
namespace {

char* put(char* to, const void* from, int64_t bytes) {
    memcpy(to, from, static_cast<size_t>(bytes));
    return to + bytes;
}

// Of an action that no network chooses.
float log_prob_of(ds_policy_kind kind) {
    if (kind == DS_POLICY_RANDOM) return kRandomLogProb;
    return kind == DS_POLICY_IDLE ? 0 : not_a_number<float>();
}

}  // namespace

bool StepRecords::take_memory() {
    worlds_.reset(new (std::nothrow) World[static_cast<size_t>(num_worlds_)]);
    log_probs_.reset(new (std::nothrow) float[static_cast<size_t>(num_rows())]);
    values_.reset(new (std::nothrow) float[static_cast<size_t>(num_rows())]);
    versions_.reset(new (std::nothrow) int32_t[static_cast<size_t>(num_rows())]);
    return worlds_ && log_probs_ && values_ && versions_;
}

bool StepRecords::begin(int64_t world, int32_t recorded, int64_t state_size) {
    World& episode = worlds_[world];
    count(episode, -1);
    episode.steps.clear();
    episode.recorded = recorded & (kStepRecords | DS_RECORD_STREAM);
    episode.state_size = episode.records(DS_RECORD_STATES) ? static_cast<int32_t>(state_size) : 0;
    count(episode, 1);
    return episode.state_size <= state_stride_ || take_states(episode.state_size);
}

void StepRecords::count(const World& world, int64_t more) {
    num_log_probs_ += world.records(DS_RECORD_LOG_PROBS) ? more : 0;
    num_values_ += world.records(DS_RECORD_VALUES) ? more : 0;
    num_states_ += world.records(DS_RECORD_STATES) ? more : 0;
    DS_ASSERT(std::min({num_log_probs_, num_values_, num_states_}) >= 0);
}

// Rows that have acted already keep theirs.
bool StepRecords::take_states(int64_t stride) {
    Pages grown = map_pages(num_rows() * stride * 4, "num_worlds");
    if (!grown) return false;
    for (int64_t row = 0; row < num_rows(); ++row) {
        memcpy(grown.data() + row * stride * 4, states_.data() + row * state_stride_ * 4,
               static_cast<size_t>(state_stride_ * 4));
    }
    states_ = std::move(grown);
    state_stride_ = stride;
    return true;
}

// ---- Acting ----

void StepRecords::note(const ActingRows& acting) {
    if (num_log_probs_ + num_values_ + num_states_ == 0) return;
    const float log_prob = log_prob_of(acting.kind);
    const int64_t size = acting.states ? std::min(acting.state_size, state_stride_) : 0;
    for (int64_t i = 0; i < acting.count; ++i) {
        const int64_t row = acting.rows[i];
        DS_ASSERT(row >= 0 && row < num_rows());
        log_probs_[row] = log_prob;
        values_[row] = not_a_number<float>();
        versions_[row] = acting.version;
        if (!worlds_[row / num_agents_].records(DS_RECORD_STATES)) continue;
        float* const state = reinterpret_cast<float*>(states_.data()) + row * state_stride_;
        std::copy_n(acting.states + row * acting.state_size, size, state);
        std::fill(state + size, state + state_stride_, 0.f);
    }
}

// ---- Steps ----

int64_t StepRecords::row_bytes(const World& world) const {
    int64_t bytes = kActionBytes;
    if (world.records(DS_RECORD_LOG_PROBS)) bytes += 2 * 4;
    if (world.records(DS_RECORD_VALUES)) bytes += 4;
    if (world.records(DS_RECORD_OBSERVATIONS)) bytes += 4;  // the reward
    return num_agents_ * bytes + end_bytes(world);
}

int64_t StepRecords::end_bytes(const World& world) const {
    const int64_t inputs = world.records(DS_RECORD_OBSERVATIONS) ? num_inputs_ : 0;
    return num_agents_ * (world.state_size + inputs) * 4;
}

char* StepRecords::put_states(char* to, int64_t world) const {
    for (int64_t row = world * num_agents_; row < (world + 1) * num_agents_; ++row) {
        to = put(to, states_.data() + row * state_stride_ * 4, worlds_[world].state_size * 4);
    }
    return to;
}

// Everything but the rewards, which are not known yet.
bool StepRecords::add_step(int64_t world, const float* observations, const int32_t* actions) {
    World& episode = worlds_[world];
    char* to = episode.steps.add_row(row_bytes(episode));
    if (!to) return false;
    const int64_t row = world * num_agents_;
    to = put(to, actions + row * kActionComponents, num_agents_ * kActionBytes);
    if (episode.records(DS_RECORD_LOG_PROBS)) {
        to = put(to, &log_probs_[row], num_agents_ * 4);
        to = put(to, &versions_[row], num_agents_ * 4);
    }
    if (episode.records(DS_RECORD_VALUES)) to = put(to, &values_[row], num_agents_ * 4);
    if (episode.state_size > 0) to = put_states(to, world);
    if (episode.records(DS_RECORD_OBSERVATIONS)) put(to, observations + row * num_inputs_, num_agents_ * num_inputs_ * 4);
    return true;
}

void StepRecords::add_rewards(int64_t world, const float* rewards) {
    World& episode = worlds_[world];
    if (!episode.records(DS_RECORD_OBSERVATIONS)) return;
    put(episode.steps.end(num_agents_ * 4), rewards + world * num_agents_, num_agents_ * 4);
}

bool StepRecords::add_end(int64_t world, const float* observations) {
    World& episode = worlds_[world];
    if (end_bytes(episode) == 0) return true;
    char* to = episode.steps.add_row(end_bytes(episode));
    if (!to) return false;
    if (episode.state_size > 0) to = put_states(to, world);
    if (episode.records(DS_RECORD_OBSERVATIONS)) {
        put(to, observations + world * num_agents_ * num_inputs_, num_agents_ * num_inputs_ * 4);
    }
    return true;
}

// ---- What there is ----

Ref<OutputMemory> StepRecords::last_step(int64_t world) {
    World& episode = worlds_[world];
    const int64_t bytes = row_bytes(episode);
    Ref<OutputMemory> copy = OutputMemory::copy(episode.steps.end(bytes), bytes);
    if (!episode.records(kStepRecords)) episode.steps.clear();  // only the stream needs it
    return copy;
}

Ref<OutputMemory> StepRecords::all(int64_t world, int64_t length) {
    const World& episode = worlds_[world];
    DS_ASSERT(episode.steps.bytes() == length * row_bytes(episode) + end_bytes(episode));
    return OutputMemory::copy(episode.steps.data(), episode.steps.bytes());
}

}  // namespace doorstep
