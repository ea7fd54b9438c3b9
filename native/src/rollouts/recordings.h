// What is recorded of episodes while they are played: rows of steps, as ds_episode_output has them.
//
// A row has, of all agents: actions; then, if they are recorded, observations and rewards. Rewards are known after the
// step, the others before it. The observations after the last step are behind the rows.
#pragma once

#include <stdlib.h>

#include <utility>

#include "rollouts/episodes.h"
#include "rollouts/host_tensors.h"
#include "rollouts/output_queue.h"

namespace doorstep {

// The rows of an episode.
class StepRecord {
public:
    StepRecord() = default;
    ~StepRecord() { free(data_); }
    StepRecord(const StepRecord&) = delete;
    StepRecord& operator=(const StepRecord&) = delete;

    const char* data() const { return data_; }
    int64_t bytes() const { return bytes_; }
    // The last `bytes` of it.
    char* end(int64_t bytes) {
        DS_ASSERT(bytes >= 0 && bytes <= bytes_);
        return data_ + bytes_ - bytes;
    }
    // Memory is kept for the next episode.
    void clear() { bytes_ = 0; }
    void swap(StepRecord& other) {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(capacity_, other.capacity_);
    }
    // A new row of this many bytes; null if memory ran out.
    char* add_row(int64_t bytes);

private:
    char* data_ = nullptr;
    int64_t bytes_ = 0, capacity_ = 0;
};

class Recordings {
public:
    // The tensors are valid, and the episodes live, as long as this.
    Recordings(const Episodes* episodes, const HostTensors* tensors) : episodes_(*episodes), tensors_(*tensors) {}
    bool take_memory() { return records_.take(episodes_.num_worlds()); }

    // In the order of a world's life. False if memory ran out: the episode has failed.
    void begin(int64_t world) { records_[world].clear(); }
    // Of an episode that is interrupted, or goes on.
    void exchange(int64_t world, StepRecord* record) { records_[world].swap(*record); }
    bool record_before_step(int64_t world);
    void record_after_step(int64_t world);
    bool record_end(int64_t world);

    // A copy of the latest row, which is dropped if only the stream needs it. Null if memory ran out.
    Ref<OutputMemory> copy_step(int64_t world);
    // Whether there is something to copy for a result.
    bool has_rows(int64_t world) const;
    // Null if memory ran out.
    Ref<OutputMemory> copy_all(int64_t world) const;

private:
    int64_t row_bytes(const PlayedEpisode& episode) const {
        return action_bytes() + (observes(episode) ? observation_bytes() + reward_bytes() : 0);
    }
    static bool observes(const PlayedEpisode& episode) { return episode.records(DS_RECORD_OBSERVATIONS); }
    int64_t bytes_of(int64_t values) const { return episodes_.num_agents() * values * 4; }
    int64_t action_bytes() const { return bytes_of(kActionComponents); }
    int64_t observation_bytes() const { return bytes_of(tensors_.num_inputs); }
    int64_t reward_bytes() const { return bytes_of(1); }
    int64_t first_row(int64_t world) const { return world * episodes_.num_agents(); }

    const Episodes& episodes_;
    const HostTensors& tensors_;
    Array<StepRecord> records_;  // by world
};

}  // namespace doorstep
