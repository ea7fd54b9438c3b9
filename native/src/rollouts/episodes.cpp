#include "rollouts/episodes.h"

#include <utility>

#include "runtime/status.h"

namespace doorstep {

ds_status fail_worlds_memory(const char* what) {
    return fail(DS_STATUS_OUT_OF_MEMORY, "num_worlds", "use fewer worlds, or raise the memory limit",
                "no memory is left for %s", what);
}

bool Episodes::take_memory() {
    if (!episodes_.take(num_worlds_) || !free_worlds_.take(num_worlds_) || !states_.take(num_worlds_) ||
        !ready_.take(num_worlds_) || !ended_.take(num_worlds_) || !changed_.take(num_worlds_) ||
        !begun_.take(num_worlds_) || !sampling_.take(num_rows()) || !keys_.take(num_rows())) {
        return false;
    }
    for (int64_t world = 0; world < num_worlds_; ++world) free_worlds_[world] = num_worlds_ - 1 - world;
    return true;
}

// ---- Begin ----

int64_t Episodes::begin(Request* request, int32_t shown_steps) {
    DS_ASSERT(request && request->state == RequestState::kPlaying && num_active() < num_worlds_);
    const int64_t world = free_worlds_[count_of(SlotState::kFree) - 1];
    DS_ASSERT(!episodes_[world].request && !ready_[world] && !ended_[world]);
    PlayedEpisode& episode = episodes_[world];
    episode.request = request;
    episode.shown_steps = shown_steps;
    episode.most_steps = request->parts.state ? static_cast<int32_t>(request->asked.max_steps) : 0;
    episode.recorded = request->asked.record & ~DS_RECORD_TRACE;
    std::copy_n(request->asked.policies, num_agents_, episode.policies);
    DS_ASSERT(shown_steps >= 0);
    num_recorded_ += episode.recorded != 0;
    num_limited_ += episode.most_steps != 0;
    changed_[world] = begun_[world] = 1;
    change(world, SlotState::kFree, SlotState::kToAct);
    const RandomKey key = request->sampling_key();
    for_each_row(world, [&](int64_t row) {
        sampling_[row] = request->asked.sampling;
        keys_[row] = {{key.a, key.b}, 0 - steps_, static_cast<uint32_t>(row % num_agents_)};
    });
    return world;
}

// ---- Act and step ----

void Episodes::await_caller(int64_t row) {
    const int64_t world = row / num_agents_;
    if (episodes_[world].num_awaited++ == 0) change(world, SlotState::kToAct, SlotState::kAwaitsCallers);
    DS_ASSERT(states_[world] == SlotState::kAwaitsCallers && episodes_[world].num_awaited <= num_agents_);
}

void Episodes::answered(int64_t row) {
    const int64_t world = row / num_agents_;
    PlayedEpisode& episode = episodes_[world];
    DS_ASSERT(states_[world] == SlotState::kAwaitsCallers && episode.num_awaited > 0);
    if (--episode.num_awaited == 0) change(world, SlotState::kAwaitsCallers, SlotState::kReady);
}

void Episodes::acted() { change_all(SlotState::kToAct, SlotState::kReady); }

void Episodes::stepped() {
    DS_ASSERT(num_ended_ == 0 && num_to_act() == 0);
    ++steps_;
    if (num_ready() < num_active()) hold_back_waiting();
    change_all(SlotState::kReady, SlotState::kToAct);
}

// Episodes that wait have not made the step.
void Episodes::hold_back_waiting() {
    for (int64_t world = 0; world < num_worlds_; ++world) {
        if (states_[world] != SlotState::kAwaitsCallers) continue;
        for (int64_t agent = 0; agent < num_agents_; ++agent) --keys_[world * num_agents_ + agent].step;
    }
}

// As change(), of all worlds in a state: a pass over bytes.
void Episodes::change_all(SlotState before, SlotState after) {
    for (SlotState& state : states_) state = state == before ? after : state;
    for (int64_t world = 0; world < num_worlds_; ++world) ready_[world] = states_[world] == SlotState::kReady;
    counts_[static_cast<int>(after)] += std::exchange(counts_[static_cast<int>(before)], 0);
    DS_ASSERT(counts_agree());
}

// ---- Ends ----

void Episodes::mark(int64_t world, ds_episode_reason reason, int64_t cause, int32_t step, int32_t agent) {
    DS_ASSERT(episodes_[world].request && reason >= DS_EPISODE_GOAL && reason <= DS_EPISODE_FAILED);
    DS_ASSERT((reason == DS_EPISODE_FAILED) == (cause != DS_CAUSE_NONE));
    num_ended_ += ended_[world] == 0;
    ended_[world] = 1;
    ds_episode_output& result = episodes_[world].request->result;
    result.reason = reason;
    result.cause = cause;
    result.failed_step = step;
    result.failed_agent = agent;
    DS_ASSERT(counts_agree());
}

void Episodes::free(int64_t world) {
    PlayedEpisode& episode = episodes_[world];
    DS_ASSERT(episode.request && num_active() > 0);
    num_ended_ -= ended_[world] != 0;
    ended_[world] = 0;
    num_recorded_ -= episode.recorded != 0;
    num_limited_ -= episode.most_steps != 0;
    episode = {};
    free_worlds_[count_of(SlotState::kFree)] = world;
    DS_ASSERT(num_ended_ >= 0 && num_recorded_ >= 0 && num_limited_ >= 0);
    changed_[world] = 1;
    begun_[world] = 0;
    change(world, states_[world], SlotState::kFree);
}

}  // namespace doorstep
