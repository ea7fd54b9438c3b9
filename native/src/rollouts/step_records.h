// What is recorded of the episodes of a replica while they are played: a row per step, see ds_episode_output.
#pragma once

#include "policy/policy.h"
#include "rollouts/output_queue.h"
#include "rollouts/step_record.h"
#include "sim/action_table.h"

namespace doorstep {

constexpr int64_t kActionBytes = kActionComponents * sizeof(int32_t);  // of a row

// What is known when rows act, and what there is at all.
constexpr int32_t kActingRecords = DS_RECORD_LOG_PROBS | DS_RECORD_VALUES | DS_RECORD_STATES;
constexpr int32_t kStepRecords = kActingRecords | DS_RECORD_ACTIONS | DS_RECORD_OBSERVATIONS;

// Rows that act next, all with one policy. states: of all rows; null: the policy has none.
struct ActingRows {
    const int32_t* rows;
    int64_t count;
    ds_policy_kind kind;
    int32_t version;
    const float* states;
    int64_t state_size;
};

class StepRecords {
public:
    StepRecords(int64_t num_worlds, int64_t num_agents, int64_t num_inputs)
        : num_worlds_(num_worlds), num_agents_(num_agents), num_inputs_(num_inputs) {}
    bool take_memory();

    // Of a new episode. state_size: the most floats of a state of its policies. False if memory ran out.
    bool begin(int64_t world, int32_t recorded, int64_t state_size);
    int32_t state_size(int64_t world) const { return worlds_[world].state_size; }

    // ---- Acting
    // Before the rows act: notes what is known of them, if an episode records it.
    void note(const ActingRows& acting);
    // By row, for native policies to write; null: no episode records it.
    float* log_probs() const { return num_log_probs_ > 0 ? log_probs_.get() : nullptr; }
    float* values() const { return num_values_ > 0 ? values_.get() : nullptr; }

    // ---- Steps, from tensors of all worlds. False if memory ran out
    bool add_step(int64_t world, const float* observations, const int32_t* actions);
    void add_rewards(int64_t world, const float* rewards);
    // Behind the steps. The rows of the world have been noted since the last one.
    bool add_end(int64_t world, const float* observations);

    // ---- What there is; null if memory ran out
    Ref<OutputMemory> last_step(int64_t world);
    // length: of the episode, whose end has been added.
    Ref<OutputMemory> all(int64_t world, int64_t length);
    bool is_empty(int64_t world) const { return worlds_[world].steps.bytes() == 0; }
    void clear(int64_t world) { worlds_[world].steps.clear(); }

private:
    struct World {
        StepRecord steps;
        int32_t recorded = 0;    // bits of ds_episode_record
        int32_t state_size = 0;
        bool records(int32_t bits) const { return (recorded & bits) != 0; }
    };

    int64_t num_rows() const { return num_worlds_ * num_agents_; }
    void count(const World& world, int64_t more);
    bool take_states(int64_t stride);
    int64_t row_bytes(const World& world) const;
    int64_t end_bytes(const World& world) const;
    char* put_states(char* to, int64_t world) const;

    const int64_t num_worlds_, num_agents_, num_inputs_;
    std::unique_ptr<World[]> worlds_;
    int64_t num_log_probs_ = 0, num_values_ = 0, num_states_ = 0;  // episodes that record it; counted until the next one
    std::unique_ptr<float[]> log_probs_, values_;  // by row
    std::unique_ptr<int32_t[]> versions_;          // likewise, of the policies
    Pages states_;                                 // likewise, of state_stride_ floats: before the row acts
    int64_t state_stride_ = 0;
};

}  // namespace doorstep
