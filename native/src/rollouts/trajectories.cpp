#include "rollouts/trajectories.h"

#include <string.h>

#include <algorithm>
#include <utility>

#include "rollouts/outputs.h"

namespace doorstep {

// ---- Acted rows ----

bool ActedRows::reserve_states(int64_t size) {
    if (size <= state_stride) return true;
    Pages grown = map_pages(log_probs.size() * size * 4, "num_worlds");
    if (!grown) return false;
    float* const to = reinterpret_cast<float*>(grown.data());
    for (int64_t row = 0; row < log_probs.size(); ++row) std::copy_n(state_of(row), state_stride, to + row * size);
    states = std::move(grown);
    state_stride = size;
    return true;
}

void ActedRows::set_state(int64_t row, const float* state, int64_t size) {
    DS_ASSERT(row >= 0 && row < log_probs.size());
    size = std::min(size, state_stride);
    std::copy_n(state, size, state_of(row));
    std::fill_n(state_of(row) + size, state_stride - size, 0.f);
}

// ---- Memory ----

TrajectoryRecorder::Parts TrajectoryRecorder::parts_of(int64_t world, const Trajectory& trajectory) const {
    const PlayedEpisode& episode = episodes_[world];
    Parts parts = {};
    char* const begin = trajectory.memory ? trajectory.memory->data() : nullptr;
    // of rows with so many values of each agent
    const auto add = [&](char** part, bool is_recorded, int64_t rows, int64_t values) {
        if (!is_recorded) return;
        *part = begin + parts.bytes;
        parts.bytes += rows * values * episodes_.num_agents() * 4;
    };
    const int64_t steps = trajectory.capacity;
    add(&parts.actions, true, steps, kActionComponents);
    add(&parts.log_probs, episode.records(DS_RECORD_LOG_PROBS), steps, 1);
    add(&parts.versions, episode.records(DS_RECORD_LOG_PROBS), steps, 1);
    add(&parts.values, episode.records(DS_RECORD_VALUES), steps, 1);
    add(&parts.states, episode.records(DS_RECORD_STATES), steps + 1, trajectory.state_size);
    add(&parts.observations, episode.records(DS_RECORD_OBSERVATIONS), steps + 1, tensors_.num_inputs);
    add(&parts.rewards, episode.records(DS_RECORD_OBSERVATIONS), steps, 1);
    return parts;
}

// An episode that is streamed and played again, because its replica has ended, keeps the rows that have been output.
bool TrajectoryRecorder::begin(int64_t world, int64_t state_size, int64_t most_steps) const {
    const PlayedEpisode& episode = episodes_[world];
    if (!episode.recorded || episode.request->steps_made > 0) return true;
    Trajectory made;
    made.capacity = static_cast<int32_t>(most_steps);
    made.state_size = episode.records(DS_RECORD_STATES) ? static_cast<int32_t>(state_size) : 0;
    made.memory = OutputMemory::make(parts_of(world, made).bytes);
    if (made.memory) of(world) = std::move(made);
    return static_cast<bool>(of(world).memory);
}

// The episode is longer than was expected.
bool TrajectoryRecorder::grow(int64_t world) const {
    Trajectory& trajectory = of(world);
    Trajectory grown = {{}, 2 * trajectory.capacity, trajectory.state_size};
    grown.memory = OutputMemory::make(parts_of(world, grown).bytes);
    if (!grown.memory) return false;
    const Parts from = parts_of(world, trajectory), to = parts_of(world, grown);
    char* Parts::* const parts[] = {&Parts::actions, &Parts::log_probs, &Parts::versions, &Parts::values,
                                          &Parts::states, &Parts::observations, &Parts::rewards};
    const char* end = trajectory.memory->data() + from.bytes;
    for (size_t i = std::size(parts); i-- > 0;) {
        const char* const part = from.*parts[i];
        if (!part) continue;
        memcpy(to.*parts[i], part, static_cast<size_t>(end - part));
        end = part;
    }
    MutexGuard guard(episodes_[world].request->outputs->table().mutex);  // readers of steps refer to what was there
    std::swap(trajectory, grown);
    return true;
}

// ---- Steps ----

// A row of a part, with so many values of each agent.
void TrajectoryRecorder::put(char* part, int64_t step, const void* row, int64_t values) const {
    if (!part) return;
    const int64_t bytes = values * episodes_.num_agents() * 4;
    memcpy(part + step * bytes, row, static_cast<size_t>(bytes));
}

// Of policies that were exchanged meanwhile, as far as there is room for them; zeros behind shorter ones.
void TrajectoryRecorder::put_states(const Parts& parts, int64_t step, int64_t world) const {
    const int64_t size = of(world).state_size, known = std::min(size, acted_.state_stride);
    if (!parts.states || size == 0) return;
    float* to = reinterpret_cast<float*>(parts.states) + step * episodes_.num_agents() * size;
    for (int64_t agent = 0; agent < episodes_.num_agents(); ++agent, to += size) {
        std::copy_n(acted_.state_of(first_row(world) + agent), known, to);
        std::fill_n(to + known, size - known, 0.f);
    }
}

bool TrajectoryRecorder::record_before_step(int64_t world) const {
    const int64_t step = episodes_.length(world), row = first_row(world);
    DS_ASSERT(episodes_.state(world) == SlotState::kReady && of(world).memory);
    if (step < episodes_[world].request->steps_made) return true;
    if (step == of(world).capacity && !grow(world)) return false;
    const Parts parts = parts_of(world, of(world));
    put(parts.actions, step, tensors_.actions_of(row), kActionComponents);
    put(parts.log_probs, step, &acted_.log_probs[row], 1);
    put(parts.versions, step, &acted_.versions[row], 1);
    put(parts.values, step, &acted_.values[row], 1);
    put_states(parts, step, world);
    put(parts.observations, step, tensors_.observations_of(row), tensors_.num_inputs);
    return true;
}

void TrajectoryRecorder::record_after_step(int64_t world) const {
    const int64_t step = episodes_.length(world) - 1;
    DS_ASSERT(step >= 0 && of(world).memory);
    if (step < episodes_[world].request->steps_made) return;
    put(parts_of(world, of(world)).rewards, step, tensors_.rewards + first_row(world), 1);
}

void TrajectoryRecorder::record_end(int64_t world) const {
    DS_ASSERT(episodes_.has_ended(world) && of(world).memory);
    const int64_t length = episodes_.length(world);
    const Parts parts = parts_of(world, of(world));
    put_states(parts, length, world);
    put(parts.observations, length, tensors_.observations_of(first_row(world)), tensors_.num_inputs);
}

}  // namespace doorstep
