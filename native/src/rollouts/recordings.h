// What is recorded of episodes while they are played: rows of steps, of which results have copies part by part, as
// ds_episode_output has them.
//
// A row has, of all agents: actions; then what is recorded of log-probabilities and versions, values, states, observations
// and rewards. Rewards are known after the step, the others before it. States and observations after the last step are
// behind the rows.
#pragma once

#include <stdlib.h>

#include <utility>

#include "rollouts/acted_rows.h"
#include "rollouts/episodes.h"
#include "rollouts/output_queue.h"

namespace doorstep {

constexpr int32_t kStepRecords = kActingRecords | DS_RECORD_ACTIONS | DS_RECORD_OBSERVATIONS;

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
        std::swap(state_size, other.state_size);
    }
    // A new row of this many bytes; null if memory ran out.
    char* add_row(int64_t bytes);

    int32_t state_size = 0;  // floats of the states that are recorded

private:
    char* data_ = nullptr;
    int64_t bytes_ = 0, capacity_ = 0;
};

class Recordings {
public:
    // The tensors are valid, and the others live, as long as this.
    Recordings(const Episodes* episodes, const HostTensors* tensors, const ActedRows* acted)
        : episodes_(*episodes), tensors_(*tensors), acted_(*acted) {}
    bool take_memory() { return records_.take(episodes_.num_worlds()); }

    // In the order of a world's life. False if memory ran out: the episode has failed. state_size: the most floats of a
    // state of its policies.
    void begin(int64_t world, int64_t state_size);
    // Of an episode that is interrupted, or goes on.
    void exchange(int64_t world, StepRecord* record) { records_[world].swap(*record); }
    bool record_before_step(int64_t world);
    void record_after_step(int64_t world);
    // The rows of the world have been noted since they stepped.
    bool record_end(int64_t world);

    int32_t state_size(int64_t world) const { return records_[world].state_size; }

    // A copy of the latest row, which is dropped if only the stream needs it. Null if memory ran out.
    Ref<OutputMemory> copy_step(int64_t world);
    // Whether there is something to copy for a result.
    bool has_rows(int64_t world) const;
    // Of the rows and what is behind them, part by part. Null if memory ran out.
    Ref<OutputMemory> copy_all(int64_t world) const;

private:
    // Of a row, in this order; has_end: there is one behind the rows too.
    struct Part {
        int64_t bytes;
        bool has_end;
    };
    struct Parts {
        Part parts[7];
    };

    Parts parts_of(int64_t world) const;
    int64_t row_bytes(int64_t world) const;
    int64_t end_bytes(int64_t world) const;
    char* put_states(char* to, int64_t world) const;
    char* put_observations(char* to, int64_t world) const;
    static bool observes(const PlayedEpisode& episode) { return episode.records(DS_RECORD_OBSERVATIONS); }
    int64_t bytes_of(int64_t values) const { return episodes_.num_agents() * values * 4; }
    int64_t first_row(int64_t world) const { return world * episodes_.num_agents(); }

    const Episodes& episodes_;
    const HostTensors& tensors_;
    const ActedRows& acted_;
    Array<StepRecord> records_;  // by world
};

}  // namespace doorstep
