// The rows of episodes that are played on CUDA, before their policies act: the part of the episode that is left, the
// states of new episodes, and actions that need no network.
#pragma once

#include "policy/random_action.h"

namespace doorstep {

enum class RowChooser : int16_t { kNone, kNetwork, kRandom, kIdle };  // none: does not play, or acts on the host

struct PlayedRow {
    RowChooser chooser;
    int16_t policy;
    int32_t shown_steps;  // that policies shall see as the episode's length; 0: what they see is right
};

// The recurrent states of a policy: a row for each of all rows. Null: it has none.
struct PolicyStates {
    float* states;
    int64_t size;
};

// The one parameter of the kernel, by value. All addresses are the device's.
struct PlayedRows {
    int64_t num_rows;
    const PlayedRow* rows;
    const ds_sampling_key* keys;    // their steps and the counter add up to the episode's length so far
    const uint32_t* step_counter;
    const PolicyStates* policies;
    float* observations;
    int64_t num_inputs;
    int32_t time_left;      // where an observation has steps_remaining; -1: nowhere
    float time_left_scale;
    int32_t* actions;
};

DS_INLINE void prepare_row(const PlayedRows& call, int64_t row) {
    DS_ASSERT(row >= 0 && row < call.num_rows && call.time_left < call.num_inputs);
    const PlayedRow played = call.rows[row];
    const ds_sampling_key key = call.keys[row];
    const uint32_t length = key.step + *call.step_counter;
    if (played.shown_steps > 0 && call.time_left >= 0) {
        const int32_t left = played.shown_steps - static_cast<int32_t>(length);
        const float part = static_cast<float>(left) / static_cast<float>(played.shown_steps);
        call.observations[row * call.num_inputs + call.time_left] = call.time_left_scale * part;
    }
    int32_t* const action = call.actions + row * DS_ACTION_COMPONENT_COUNT;
    if (played.chooser == RowChooser::kRandom) choose_randomly(key, *call.step_counter, action);
    if (played.chooser == RowChooser::kIdle) choose_neutrally(action);
    if (played.chooser != RowChooser::kNetwork || length != 0) return;
    DS_ASSERT(played.policy >= 0);
    const PolicyStates of = call.policies[played.policy];
    DS_ASSERT(of.size == 0 || of.states);
    for (int64_t k = 0; k < of.size; k++) of.states[row * of.size + k] = 0;
}

}  // namespace doorstep
