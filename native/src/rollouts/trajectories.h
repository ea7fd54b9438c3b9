// What is recorded of episodes while they are played: rows of steps, in memory of the request, part by part as
// ds_episode_output has them. It is allocated when the episode begins. Readers of streamed steps read it meanwhile: what has
// been output is not written again.
#pragma once

#include "rollouts/episodes.h"

namespace doorstep {

constexpr int32_t kActingRecords = DS_RECORD_LOG_PROBS | DS_RECORD_VALUES | DS_RECORD_STATES;

// What is known of rows when they act, beside their actions. By row, of all worlds, from its latest act on.
struct ActedRows {
    Array<float> log_probs, values;
    Array<int32_t> versions;  // of the policies
    Pages states;             // of state_stride floats: before the row acted; shorter ones end with zeros
    int64_t state_stride = 0;

    bool take_memory(int64_t num_rows) {
        return log_probs.take(num_rows) && values.take(num_rows) && versions.take(num_rows);
    }
    // Room for states of this size. False if memory ran out.
    bool reserve_states(int64_t size);
    float* state_of(int64_t row) const { return reinterpret_cast<float*>(states.data()) + row * state_stride; }
    void set_state(int64_t row, const float* state, int64_t size);
};

class TrajectoryRecorder {
public:
    // The tensors are valid, and the others live, as long as this.
    TrajectoryRecorder(const Episodes* episodes, const HostTensors* tensors, const ActedRows* acted)
        : episodes_(*episodes), tensors_(*tensors), acted_(*acted) {}

    // In the order of a world's life. False if memory ran out. state_size: the most floats of a state of its policies;
    // most_steps: that the episode is expected to make.
    bool begin(int64_t world, int64_t state_size, int64_t most_steps) const;
    bool record_before_step(int64_t world) const;
    void record_after_step(int64_t world) const;
    // What there is after the last step.
    void record_end(int64_t world) const;

private:
    // The arrays of a trajectory; null: it has none.
    struct Parts {
        char *actions, *log_probs, *versions, *values, *states, *observations, *rewards;
        int64_t bytes;  // of all
    };

    Parts parts_of(int64_t world, const Trajectory& trajectory) const;
    bool grow(int64_t world) const;
    void put(char* part, int64_t step, const void* row, int64_t values) const;
    void put_states(const Parts& parts, int64_t step, int64_t world) const;
    Trajectory& of(int64_t world) const { return episodes_[world].request->trajectory; }
    int64_t first_row(int64_t world) const { return world * episodes_.num_agents(); }

    const Episodes& episodes_;
    const HostTensors& tensors_;
    const ActedRows& acted_;
};

}  // namespace doorstep
