// The rows of episodes that are played, on any device, before their policies act: the part of the episode that is left,
// the states of new episodes, and actions that need no network.
#pragma once

#include "doorstep/policies_and_rollouts.h"
#include "math/threefry.h"
#include "sim/action_table.h"

namespace doorstep {

// ---- Actions without a network

// The logarithm of the probability of each action that is drawn: 1 / 320.
constexpr float kRandomLogProb = -5.76832100f;
static_assert(kActionSizes[0] * kActionSizes[1] * kActionSizes[2] * kActionSizes[3] == 320);

// The next digit of a fraction of 64 bits, to the base `size`, which is taken off.
DS_INLINE int32_t take_digit(uint32_t& high, uint32_t& low, int size) {
    const uint64_t from_low = uint64_t{low} * static_cast<uint32_t>(size);
    const uint64_t scaled = uint64_t{high} * static_cast<uint32_t>(size) + (from_low >> 32);
    high = static_cast<uint32_t>(scaled), low = static_cast<uint32_t>(from_low);
    return static_cast<int32_t>(scaled >> 32);
}

// The digits of a random fraction, each to the base of its component. step: added to the key's.
DS_INLINE void choose_randomly(const ds_sampling_key& key, uint32_t step, int32_t* action) {
    RandomKey random = split({key.key[0], key.key[1]}, key.step + step, key.agent);
    for (int k = 0; k < kActionComponents; k++) action[k] = take_digit(random.a, random.b, kActionSizes[k]);
}

DS_INLINE void choose_neutrally(int32_t* action) {
    for (int k = 0; k < kActionComponents; k++) action[k] = kNeutralAction[k];
}

// ---- Rows

enum class RowChooser : int16_t { kNone, kNetwork, kRandom, kIdle };  // none: does not play, or acts elsewhere

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

// The one parameter of the kernel, by value. All addresses are those of the device, or of the host.
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

// length: of the episode so far.
DS_INLINE void show_time_left(const PlayedRows& call, int64_t row, int32_t length) {
    const int32_t shown = call.rows[row].shown_steps;
    if (shown <= 0 || call.time_left < 0) return;
    const float part = static_cast<float>(shown - length) / static_cast<float>(shown);
    call.observations[row * call.num_inputs + call.time_left] = call.time_left_scale * part;
}

// What a policy sees of a row, and remembers.
DS_INLINE void prepare_inputs(const PlayedRows& call, int64_t row) {
    DS_ASSERT(row >= 0 && row < call.num_rows && call.time_left < call.num_inputs);
    const uint32_t length = call.keys[row].step + *call.step_counter;
    show_time_left(call, row, static_cast<int32_t>(length));
    if (length != 0) return;
    const PolicyStates of = call.policies[call.rows[row].policy];
    DS_ASSERT(of.size == 0 || of.states);
    for (int64_t k = 0; k < of.size; k++) of.states[row * of.size + k] = 0;
}

DS_INLINE void prepare_row(const PlayedRows& call, int64_t row) {
    prepare_inputs(call, row);
    int32_t* const action = call.actions + row * DS_ACTION_COMPONENT_COUNT;
    const RowChooser chooser = call.rows[row].chooser;
    if (chooser == RowChooser::kRandom) choose_randomly(call.keys[row], *call.step_counter, action);
    if (chooser == RowChooser::kIdle) choose_neutrally(action);
}

// prepare_row() of all rows of a list, on the CPU, with the vectors of its instruction set.
void prepare_with_avx2(const PlayedRows& call, const int32_t* rows, int64_t count);
void prepare_with_avx512(const PlayedRows& call, const int32_t* rows, int64_t count);

}  // namespace doorstep
