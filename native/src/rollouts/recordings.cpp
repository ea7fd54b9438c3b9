#include "rollouts/recordings.h"

#include <string.h>

#include <algorithm>

namespace doorstep {

char* StepRecord::add_row(int64_t bytes) {
    DS_ASSERT(bytes > 0 && bytes_ <= capacity_);
    if (bytes_ + bytes > capacity_) {
        const int64_t grown = std::max(2 * capacity_, bytes_ + bytes);
        void* memory = has_memory_for(grown) ? realloc(data_, static_cast<size_t>(grown)) : nullptr;
        if (!memory) return nullptr;
        data_ = static_cast<char*>(memory);
        capacity_ = grown;
    }
    bytes_ += bytes;
    return end(bytes);
}

// ---- Steps ----

bool Recordings::record_before_step(int64_t world) {
    const PlayedEpisode& episode = episodes_[world];
    DS_ASSERT(episode.state == SlotState::kReady && episode.recorded && !episodes_.has_ended(world));
    char* row = records_[world].add_row(row_bytes(episode));
    if (!row) return false;
    memcpy(row, tensors_.actions_of(first_row(world)), static_cast<size_t>(action_bytes()));
    if (!observes(episode)) return true;
    const size_t bytes = static_cast<size_t>(observation_bytes());
    memcpy(row + action_bytes(), tensors_.observations_of(first_row(world)), bytes);
    return true;
}

void Recordings::record_after_step(int64_t world) {
    DS_ASSERT(episodes_[world].recorded && episodes_[world].length > 0);
    if (!observes(episodes_[world])) return;
    const float* rewards = tensors_.rewards + first_row(world);
    memcpy(records_[world].end(reward_bytes()), rewards, static_cast<size_t>(reward_bytes()));
}

bool Recordings::record_end(int64_t world) {
    DS_ASSERT(observes(episodes_[world]) && episodes_.has_ended(world));
    char* to = records_[world].add_row(observation_bytes());
    if (!to) {
        records_[world].clear();
        return false;
    }
    memcpy(to, tensors_.observations_of(first_row(world)), static_cast<size_t>(observation_bytes()));
    return true;
}

// ---- Copies ----

Ref<OutputMemory> Recordings::copy_step(int64_t world) {
    const PlayedEpisode& episode = episodes_[world];
    DS_ASSERT(episode.records(DS_RECORD_STREAM) && episode.length > 0);
    const int64_t bytes = row_bytes(episode);
    Ref<OutputMemory> memory = OutputMemory::copy(records_[world].end(bytes), bytes);
    if (!episode.records(DS_RECORD_ACTIONS | DS_RECORD_OBSERVATIONS)) records_[world].clear();
    return memory;
}

bool Recordings::has_rows(int64_t world) const {
    const PlayedEpisode& episode = episodes_[world];
    const bool wanted = episode.records(DS_RECORD_ACTIONS | DS_RECORD_OBSERVATIONS);
    return wanted && episode.length > 0 && records_[world].bytes() > 0;
}

Ref<OutputMemory> Recordings::copy_all(int64_t world) const {
    const PlayedEpisode& episode = episodes_[world];
    const StepRecord& record = records_[world];
    DS_ASSERT(record.bytes() == episode.length * row_bytes(episode) + (observes(episode) ? observation_bytes() : 0));
    return OutputMemory::copy(record.data(), record.bytes());
}

}  // namespace doorstep
