#include "rollouts/recordings.h"

#include <string.h>

#include <algorithm>

namespace doorstep {
namespace {

char* put(char* to, const void* from, int64_t bytes) {
    memcpy(to, from, static_cast<size_t>(bytes));
    return to + bytes;
}

}  // namespace

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

// ---- Layout ----

Recordings::Parts Recordings::parts_of(int64_t world) const {
    const PlayedEpisode& episode = episodes_[world];
    const int64_t one = bytes_of(1);
    const bool tells_log_probs = episode.records(DS_RECORD_LOG_PROBS), tells_values = episode.records(DS_RECORD_VALUES);
    return {{{bytes_of(kActionComponents), false},
             {tells_log_probs ? one : 0, false},
             {tells_log_probs ? one : 0, false},  // versions
             {tells_values ? one : 0, false},
             {bytes_of(state_size(world)), true},
             {observes(episode) ? bytes_of(tensors_.num_inputs) : 0, true},
             {observes(episode) ? one : 0, false}}};  // rewards
}

int64_t Recordings::row_bytes(int64_t world) const {
    int64_t bytes = 0;
    for (const Part& one : parts_of(world).parts) bytes += one.bytes;
    return bytes;
}

int64_t Recordings::end_bytes(int64_t world) const {
    int64_t bytes = 0;
    for (const Part& one : parts_of(world).parts) bytes += one.has_end ? one.bytes : 0;
    return bytes;
}

// What the rows have: after an interruption their states may be shorter.
char* Recordings::put_states(char* to, int64_t world) const {
    const int64_t first = first_row(world), size = state_size(world), known = std::min(size, acted_.state_stride);
    for (int64_t row = first; size > 0 && row < first + episodes_.num_agents(); ++row) {
        to = put(to, acted_.state_of(row), known * 4);
        memset(to, 0, static_cast<size_t>((size - known) * 4));
        to += (size - known) * 4;
    }
    return to;
}

char* Recordings::put_observations(char* to, int64_t world) const {
    if (!observes(episodes_[world])) return to;
    return put(to, tensors_.observations_of(first_row(world)), bytes_of(tensors_.num_inputs));
}

// ---- Steps ----

void Recordings::begin(int64_t world, int64_t state_size) {
    records_[world].clear();
    records_[world].state_size = episodes_[world].records(DS_RECORD_STATES) ? static_cast<int32_t>(state_size) : 0;
    DS_ASSERT(records_[world].state_size <= acted_.state_stride);
}

bool Recordings::record_before_step(int64_t world) {
    const PlayedEpisode& episode = episodes_[world];
    DS_ASSERT(episodes_.state(world) == SlotState::kReady && episode.recorded && !episodes_.has_ended(world));
    char* to = records_[world].add_row(row_bytes(world));
    if (!to) return false;
    const int64_t row = first_row(world);
    to = put(to, tensors_.actions_of(row), bytes_of(kActionComponents));
    if (episode.records(DS_RECORD_LOG_PROBS)) {
        to = put(to, &acted_.log_probs[row], bytes_of(1));
        to = put(to, &acted_.versions[row], bytes_of(1));
    }
    if (episode.records(DS_RECORD_VALUES)) to = put(to, &acted_.values[row], bytes_of(1));
    put_observations(put_states(to, world), world);
    return true;
}

void Recordings::record_after_step(int64_t world) {
    DS_ASSERT(episodes_[world].recorded && episodes_.length(world) > 0);
    if (observes(episodes_[world])) put(records_[world].end(bytes_of(1)), tensors_.rewards + first_row(world), bytes_of(1));
}

bool Recordings::record_end(int64_t world) {
    DS_ASSERT(episodes_[world].records(kStepRecords) && episodes_.has_ended(world));
    if (end_bytes(world) == 0) return true;
    if (char* const to = records_[world].add_row(end_bytes(world))) {
        put_observations(put_states(to, world), world);
        return true;
    }
    records_[world].clear();
    return false;
}

// ---- Copies ----

Ref<OutputMemory> Recordings::copy_step(int64_t world) {
    const PlayedEpisode& episode = episodes_[world];
    DS_ASSERT(episode.records(DS_RECORD_STREAM) && episodes_.length(world) > 0);
    const int64_t bytes = row_bytes(world);
    Ref<OutputMemory> memory = OutputMemory::copy(records_[world].end(bytes), bytes);
    if (!episode.records(kStepRecords)) records_[world].clear();
    return memory;
}

bool Recordings::has_rows(int64_t world) const {
    const PlayedEpisode& episode = episodes_[world];
    return episode.records(kStepRecords) && episodes_.length(world) > 0 && records_[world].bytes() > 0;
}

Ref<OutputMemory> Recordings::copy_all(int64_t world) const {
    const StepRecord& record = records_[world];
    DS_ASSERT(record.bytes() == episodes_.length(world) * row_bytes(world) + end_bytes(world));
    Ref<OutputMemory> made = OutputMemory::make(record.bytes());
    if (!made) return {};
    const int64_t stride = row_bytes(world), length = episodes_.length(world);
    const char *part = record.data(), *end = record.data() + length * stride;
    char* to = made->data();
    for (const Part& one : parts_of(world).parts) {
        for (int64_t step = 0; step < length; ++step) to = put(to, part + step * stride, one.bytes);
        part += one.bytes;
        if (!one.has_end) continue;
        to = put(to, end, one.bytes);
        end += one.bytes;
    }
    DS_ASSERT(to == made->data() + made->bytes() && part == record.data() + stride);
    return made;
}

}  // namespace doorstep
