// The worlds of a replica as slots, each with the episode of a request.
//
//              begin()          await_caller()                   answered(), for its last row
//     kFree  ----------> kToAct ----------------> kAwaitsCallers -----------------------------> kReady
//                          ^  \_______________________________________________________________/   |
//                          |                       acted(), all that are left                     |
//                          +----------------------- stepped(), all -------------------------------+
//
// mark() says that an episode has ended, whatever its state; free() then makes its slot kFree.
#pragma once

#include <algorithm>
#include <numeric>

#include "exec/simulator.h"
#include "math/threefry.h"
#include "rollouts/request.h"
#include "runtime/array.h"
#include "sim/action_table.h"

namespace doorstep {

// The tensors of a replica's simulator as its thread reads and writes them: those of the CPU, or copies of a device's.
struct HostTensors {
    float* observations;
    const float* rewards;
    const uint8_t *terminations, *truncations;
    int32_t* actions;
    int64_t num_inputs;  // floats of an observation

    float* observations_of(int64_t row) const { return observations + row * num_inputs; }
    int32_t* actions_of(int64_t row) const { return actions + row * kActionComponents; }
};

// Of what replicas have for each world. what: that there is no memory for.
ds_status fail_worlds_memory(const char* what);

enum class SlotState : uint8_t { kFree, kToAct, kAwaitsCallers, kReady };
constexpr int kSlotStates = 4;

// What is read of an episode, side by side. Requests are anywhere in memory.
struct PlayedEpisode {
    Request* request;  // null: the slot is free
    int32_t shown_steps;  // that policies shall see as its length; 0: what they see is right
    int32_t most_steps;   // after which it ends, where its world does not know it; 0: no such limit
    int32_t recorded;     // bits of ds_episode_record
    int16_t num_awaited;  // its rows whose actions callers have not returned
    int16_t policies[DS_MAX_AGENTS];

    bool records(int32_t bits) const { return (recorded & bits) != 0; }
};

class Episodes {
public:
    Episodes(int64_t num_worlds, int64_t num_agents)
        : num_worlds_(num_worlds), num_agents_(num_agents), counts_{num_worlds} {}
    bool take_memory();

    int64_t num_worlds() const { return num_worlds_; }
    int64_t num_agents() const { return num_agents_; }
    int64_t num_rows() const { return num_worlds_ * num_agents_; }
    const PlayedEpisode& operator[](int64_t world) const { return episodes_[world]; }
    const PlayedEpisode& of_row(int64_t row) const { return episodes_[row / num_agents_]; }
    int16_t policy_of(int64_t row) const { return of_row(row).policies[row % num_agents_]; }
    template <class Function>
    void for_each_row(int64_t world, const Function& function) const {
        for (int64_t row = world * num_agents_; row < (world + 1) * num_agents_; ++row) function(row);
    }
    // Calls function(world) where something is recorded.
    template <class Function>
    void for_each_recorded(const Function& function) const {
        for (int64_t world = 0; num_recorded_ > 0 && world < num_worlds_; ++world) {
            if (episodes_[world].recorded) function(world);
        }
    }

    // ---- How many: worlds that play; of those, to act, and ready; marked as ended; with something recorded
    int64_t num_active() const { return num_worlds_ - count_of(SlotState::kFree); }
    int64_t num_to_act() const { return count_of(SlotState::kToAct); }
    int64_t num_ready() const { return count_of(SlotState::kReady); }
    int64_t num_ended() const { return num_ended_; }
    int64_t num_recorded() const { return num_recorded_; }
    // With most_steps.
    int64_t num_limited() const { return num_limited_; }

    // ---- By world: the state, and how many steps the episode has made; masks for the simulator
    SlotState state(int64_t world) const { return states_[world]; }
    int32_t length(int64_t world) const { return static_cast<int32_t>(keys_[world * num_agents_].step + steps_); }
    const uint8_t* ready() const { return ready_.data(); }
    const uint8_t* ended() const { return ended_.data(); }
    bool has_ended(int64_t world) const { return ended_[world] != 0; }

    // ---- By row: how networks sample, and keys of random numbers, to whose step steps() adds: the sum is the episode's
    // length. So a step that all make changes no key.
    const ds_sampling* sampling() const { return sampling_.data(); }
    const ds_sampling_key* keys() const { return keys_.data(); }
    const uint32_t* steps() const { return &steps_; }

    // ---- Transitions
    // Returns the world, a free one.
    int64_t begin(Request* request, int32_t shown_steps);
    // A row will get its action from a caller. Before acted().
    void await_caller(int64_t row);
    void answered(int64_t row);
    // All episodes that are to act have.
    void acted();
    // All episodes that are ready have.
    void stepped();
    // The episode is to end, with this in its result, in place of what was marked before. cause: why it has FAILED, a
    // ds_failure_cause or a caller's; step, agent: where, with DS_CAUSE_LOGITS.
    void mark(int64_t world, ds_episode_reason reason, int64_t cause = DS_CAUSE_NONE, int32_t step = 0,
              int32_t agent = 0);
    void free(int64_t world);

    // By world: nonzero where an episode has begun or ended. Cleared by the one reader, who keeps lists of rows.
    uint8_t* changed() const { return changed_.data(); }
    // By world: nonzero where an episode has begun. Cleared by the one reader, once it has made a step.
    uint8_t* begun() const { return begun_.data(); }

private:
    void hold_back_waiting();
    void change_all(SlotState before, SlotState after);
    void change(int64_t world, SlotState before, SlotState after) {
        DS_ASSERT(states_[world] == before && before != after);
        states_[world] = after;
        --counts_[static_cast<int>(before)];
        ++counts_[static_cast<int>(after)];
        ready_[world] = after == SlotState::kReady;
        DS_ASSERT(counts_agree());
    }
    int64_t count_of(SlotState state) const { return counts_[static_cast<int>(state)]; }
    bool counts_agree() const {
        return *std::min_element(counts_, counts_ + kSlotStates) >= 0 && num_ended_ <= num_active() &&
               num_recorded_ <= num_active() && std::reduce(counts_, counts_ + kSlotStates) == num_worlds_;
    }

    const int64_t num_worlds_, num_agents_;
    int64_t counts_[kSlotStates];  // of worlds, by state
    int64_t num_ended_ = 0, num_recorded_ = 0, num_limited_ = 0;
    Array<PlayedEpisode> episodes_;
    Array<int64_t> free_worlds_;  // a stack of as many as are free
    Array<SlotState> states_;
    Array<uint8_t> ready_, ended_, changed_, begun_;
    Array<ds_sampling> sampling_;
    Array<ds_sampling_key> keys_;
    uint32_t steps_ = 0;  // of the replica so far
};

}  // namespace doorstep
