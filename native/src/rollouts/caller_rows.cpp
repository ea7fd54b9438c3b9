#include "rollouts/caller_rows.h"

#include <string.h>

#include <algorithm>
#include <utility>

#include "policy/played_rows.h"
#include "runtime/status.h"

namespace doorstep {

bool CallerRows::take_memory(int64_t num_policies) {
    return slots_.take(num_policies) && waits_.take(episodes_.num_rows());
}

// ---- Questions ----

void CallerRows::add(const int32_t* rows, int64_t count, int32_t series) {
    for (int64_t i = 0; i < count; ++i) {
        DS_ASSERT(waits_[rows[i]] == Wait::kNothing);
        waits_[rows[i]] = Wait::kAsking;
        episodes_.await_caller(rows[i]);
        Slot& slot = slots_[episodes_.policy_of(rows[i])];
        slot.series = series;
        ++slot.num_to_ask;
    }
    num_to_ask_ += count;
}

ds_status CallerRows::ask() {
    for (int64_t policy = 0; num_to_ask_ > 0 && policy < slots_.size(); ++policy) {
        Slot& slot = slots_[policy];
        DS_ASSERT(slot.num_to_ask >= 0 && slot.num_to_ask <= num_to_ask_);
        if (slot.num_to_ask == 0 || slot.asked) continue;
        slot.asked = rows_to_ask(policy);
        if (!slot.asked) {
            return fail(DS_STATUS_OUT_OF_MEMORY, "num_worlds", "use fewer worlds, or raise the memory limit",
                        "no memory is left for rows that await actions");
        }
        slot.asked_ns = recorder_ ? monotonic_ns() : 0;
        num_to_ask_ -= std::exchange(slot.num_to_ask, 0);
        ++num_asked_;
        desk_->ask(slot.asked);
    }
    DS_ASSERT(num_to_ask_ >= 0 && num_asked_ <= slots_.size());
    return DS_STATUS_OK;
}

Ref<AskedRows> CallerRows::rows_to_ask(int64_t policy) {
    const Ref<AskedRows> asked = AskedRows::create(table_, slots_[policy].num_to_ask, tensors_.num_inputs);
    if (!asked) return {};
    asked->replica = replica_;
    asked->policy = static_cast<int32_t>(policy);
    asked->num_replica_rows = episodes_.num_rows();
    int64_t place = 0;
    for (int64_t row = 0; row < episodes_.num_rows(); ++row) {
        if (waits_[row] == Wait::kAsking && episodes_.policy_of(row) == policy) ask_for(*asked, place++, row);
    }
    DS_ASSERT(place == asked->num_rows);
    return asked;
}

void CallerRows::ask_for(AskedRows& asked, int64_t place, int64_t row) {
    DS_ASSERT(place < asked.num_rows && waits_[row] == Wait::kAsking);
    const PlayedEpisode& episode = episodes_.of_row(row);
    const ds_sampling_key& key = episodes_.keys()[row];
    const uint32_t step = key.step + *episodes_.steps();
    const RandomKey own = split({key.key[0], key.key[1]}, step, key.agent);
    waits_[row] = Wait::kCaller;
    asked.rows[place] = static_cast<int32_t>(row);
    asked.steps[place] = step;
    asked.keys[2 * place] = own.a;
    asked.keys[2 * place + 1] = own.b;
    asked.tags[place] = episode.request->asked.tag;
    asked.rewards[place] = tensors_.rewards[row];
    std::copy_n(tensors_.observations_of(row), tensors_.num_inputs, asked.observations + place * tensors_.num_inputs);
}

// ---- Answers ----

bool CallerRows::some_have_returned() const {
    return num_asked_ > 0 && std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) {
               return slot.asked && slot.asked->have_returned();
           });
}

void CallerRows::take_answers() {
    for (int64_t policy = 0; num_asked_ > 0 && policy < slots_.size(); ++policy) {
        if (slots_[policy].asked && slots_[policy].asked->have_returned()) take_answer(policy);
    }
}

// Rows of episodes that have ended meanwhile do not wait for it any more.
void CallerRows::take_answer(int64_t policy) {
    const Ref<AskedRows> asked = std::move(slots_[policy].asked);
    --num_asked_;
    DS_ASSERT(asked->policy == policy && asked->replica == replica_ && num_asked_ >= 0);
    for (int64_t i = 0; i < asked->num_rows; ++i) {
        const int64_t row = asked->rows[i];
        if (row < 0 || row >= episodes_.num_rows()) continue;  // callers may write there
        if (waits_[row] != Wait::kCaller || episodes_.policy_of(row) != policy) continue;
        DS_ASSERT(episodes_.of_row(row).request);
        waits_[row] = Wait::kNothing;
        episodes_.answered(row);
        if (asked->cause()) episodes_.mark(row / episodes_.num_agents(), DS_EPISODE_FAILED, {asked->cause()});
        else std::copy_n(asked->actions() + i * kActionComponents, kActionComponents, tensors_.actions_of(row));
    }
    if (recorder_) {
        const Slot& slot = slots_[policy];
        recorder_->acted(policy, slot.series, DS_POLICY_CALLER, slot.asked_ns, monotonic_ns(), asked->num_rows);
    }
}

// ---- Ends ----

void CallerRows::forget(int64_t world) {
    DS_ASSERT(episodes_[world].request);
    const int64_t first = world * episodes_.num_agents();
    for (int64_t row = first; row < first + episodes_.num_agents(); ++row) {
        if (waits_[row] == Wait::kAsking) {
            Slot& slot = slots_[episodes_.policy_of(row)];
            DS_ASSERT(slot.num_to_ask > 0 && num_to_ask_ > 0);
            --slot.num_to_ask;
            --num_to_ask_;
        }
        waits_[row] = Wait::kNothing;
    }
}

void CallerRows::withdraw() {
    for (Slot& slot : slots_) {
        if (!slot.asked) continue;
        desk_->withdraw(slot.asked);
        slot.asked = {};
        --num_asked_;
    }
    DS_ASSERT(num_asked_ == 0);
}

}  // namespace doorstep
