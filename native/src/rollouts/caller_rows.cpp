#include "rollouts/caller_rows.h"

#include <algorithm>
#include <new>
#include <utility>

#include "runtime/status.h"

namespace doorstep {

// ---- The desk ----

// The link to the first rows of at least this id, or to none.
Ref<AskedRows>* RowDesk::find(uint64_t id) {
    Ref<AskedRows>* link = &first_;
    while (*link && (*link)->fields.id < id) link = &(*link)->next;
    return link;
}

void RowDesk::ask(const Ref<AskedRows>& asked) {
    {
        MutexGuard guard(mutex_);
        DS_ASSERT(asked->fields.id == 0 && !asked->next && !asked->have_returned());
        asked->fields.id = ++last_asked_;
        *find(last_asked_) = asked;
    }
    changes_.tell();
}

void RowDesk::withdraw(const Ref<AskedRows>& asked) {
    MutexGuard guard(mutex_);
    Ref<AskedRows>* const link = find(asked->fields.id);
    if (link->get() == asked.get()) *link = std::exchange(asked->next, {});
}

ds_status RowDesk::take(int64_t timeout_ns, Ref<AskedRows>* asked) {
    const TimeLimit limit(timeout_ns);
    for (;;) {
        const uint32_t before = changes_.now();
        {
            MutexGuard guard(mutex_);
            *asked = *find(last_taken_ + 1);
            if (*asked) {
                DS_ASSERT(!(*asked)->have_returned());
                last_taken_ = (*asked)->fields.id;
                return DS_STATUS_OK;
            }
        }
        if (closed_.load()) return fail(DS_STATUS_CLOSED, "engine", "make a new engine", "the engine has ended");
        const int64_t left = limit.left_ns();
        if (left == 0) return DS_STATUS_PENDING;
        changes_.wait(before, left);
    }
}

ds_status RowDesk::give_back(uint64_t id, const int32_t* actions, int64_t cause, Signal* arrivals) {
    Ref<AskedRows> asked;
    {
        MutexGuard guard(mutex_);
        Ref<AskedRows>* const link = find(id);
        if (id > last_taken_ || !*link || (*link)->fields.id != id) {
            return fail(DS_STATUS_CLOSED, "id", "return rows once, and before the engine has ended",
                        "rows %lu are not awaited", id);
        }
        asked = *link;
        *link = std::exchange(asked->next, {});
        DS_ASSERT(!asked->have_returned() && !asked->next);
    }
    if (cause == 0) std::copy_n(actions, asked->fields.num_rows * kActionComponents, asked->actions);
    asked->cause.store(cause, std::memory_order_release);
    arrivals->tell();
    return DS_STATUS_OK;
}

// ---- Questions of a replica ----

void CallerRows::add(int64_t policy, int32_t series, const int32_t* rows, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        DS_ASSERT(waits_[rows[i]] == Wait::kNothing && episodes_.policy_of(rows[i]) == policy);
        waits_[rows[i]] = Wait::kAsking;
        episodes_.await_caller(rows[i]);
    }
    slots_[policy].series = series;
    slots_[policy].num_to_ask += count;
    num_to_ask_ += count;
}

ds_status CallerRows::ask() {
    for (int64_t policy = 0; num_to_ask_ > 0 && policy < slots_.size(); ++policy) {
        Slot& slot = slots_[policy];
        DS_ASSERT(slot.num_to_ask >= 0 && slot.num_to_ask <= num_to_ask_);
        if (slot.num_to_ask == 0 || slot.asked) continue;
        slot.asked = rows_to_ask(static_cast<int32_t>(policy));
        if (!slot.asked) return fail_worlds_memory("rows that await actions");
        slot.asked_ns = recorder_ ? monotonic_ns() : 0;
        num_to_ask_ -= std::exchange(slot.num_to_ask, 0);
        ++num_asked_;
        desk_->ask(slot.asked);
    }
    DS_ASSERT(num_to_ask_ >= 0 && num_asked_ <= slots_.size());
    return DS_STATUS_OK;
}

// Null if memory ran out.
Ref<AskedRows> CallerRows::rows_to_ask(int32_t policy) {
    const int64_t num_rows = slots_[policy].num_to_ask, num_inputs = tensors_.num_inputs;
    const Ref<AskedRows> asked = Ref<AskedRows>::adopt(new (std::nothrow) AskedRows);
    // A step and a tag of eight bytes, and of four the row, two of a key, a reward, the action and the observation.
    const Ref<OutputMemory> memory = OutputMemory::make(num_rows * (2 * 8 + (4 + kActionComponents + num_inputs) * 4));
    if (!asked || !memory) return {};
    int64_t* const steps = reinterpret_cast<int64_t*>(memory->data());  // the wide ones first: all are aligned
    uint64_t* const tags = reinterpret_cast<uint64_t*>(steps + num_rows);
    int32_t* const rows = reinterpret_cast<int32_t*>(tags + num_rows);
    uint32_t* const keys = reinterpret_cast<uint32_t*>(rows + num_rows);
    float* const rewards = reinterpret_cast<float*>(keys + 2 * num_rows);
    float* const observations = rewards + num_rows;
    asked->actions = reinterpret_cast<int32_t*>(observations + num_rows * num_inputs);
    DS_ASSERT(memory->contains(asked->actions, num_rows * kActionComponents * 4));
    asked->memory = memory;
    asked->fields = {sizeof(ds_rows), replica_, policy, 0, 0, 0, num_rows, num_inputs, episodes_.num_rows(),
                     rows, steps, keys, tags, rewards, observations};
    int64_t place = 0;
    for (int64_t row = 0; row < episodes_.num_rows(); ++row) {
        if (waits_[row] != Wait::kAsking || episodes_.policy_of(row) != policy) continue;
        DS_ASSERT(place < num_rows);
        waits_[row] = Wait::kCaller;
        const ds_sampling_key& key = episodes_.keys()[row];
        const uint32_t step = key.step + *episodes_.steps();
        const RandomKey own = split({key.key[0], key.key[1]}, step, key.agent);
        rows[place] = static_cast<int32_t>(row);
        steps[place] = step;
        keys[2 * place] = own.a;
        keys[2 * place + 1] = own.b;
        tags[place] = episodes_.of_row(row).request->asked.tag;
        rewards[place] = tensors_.rewards[row];
        std::copy_n(tensors_.observations_of(row), num_inputs, observations + place++ * num_inputs);
    }
    DS_ASSERT(place == num_rows);
    return asked;
}

// ---- Their answers ----

bool CallerRows::take_answers() {
    const int64_t before = num_asked_;
    for (int64_t policy = 0; num_asked_ > 0 && policy < slots_.size(); ++policy) {
        if (slots_[policy].asked && slots_[policy].asked->have_returned()) take_answer(policy);
    }
    return num_asked_ < before;
}

// Rows of episodes that have ended meanwhile do not wait for it any more.
void CallerRows::take_answer(int64_t policy) {
    const Ref<AskedRows> asked = std::move(slots_[policy].asked);
    --num_asked_;
    const ds_rows& fields = asked->fields;
    DS_ASSERT(fields.policy == policy && fields.replica == replica_ && num_asked_ >= 0);
    const int64_t cause = asked->cause.load(std::memory_order_relaxed);
    for (int64_t i = 0; i < fields.num_rows; ++i) {
        const int64_t row = fields.rows[i];
        if (row < 0 || row >= episodes_.num_rows()) continue;  // callers may write there
        if (waits_[row] != Wait::kCaller || episodes_.policy_of(row) != policy) continue;
        DS_ASSERT(episodes_.of_row(row).request);
        waits_[row] = Wait::kNothing;
        episodes_.answered(row);
        if (cause) episodes_.mark(row / episodes_.num_agents(), DS_EPISODE_FAILED, cause);
        else std::copy_n(asked->actions + i * kActionComponents, kActionComponents, tensors_.actions_of(row));
    }
    if (recorder_) {
        const Slot& slot = slots_[policy];
        recorder_->acted(policy, slot.series, DS_POLICY_CALLER, slot.asked_ns, monotonic_ns(), fields.num_rows);
    }
}

// ---- Their ends ----

void CallerRows::forget(int64_t world) {
    DS_ASSERT(episodes_[world].request);
    episodes_.for_each_row(world, [this](int64_t row) {
        if (waits_[row] == Wait::kAsking) {
            Slot& slot = slots_[episodes_.policy_of(row)];
            DS_ASSERT(slot.num_to_ask > 0 && num_to_ask_ > 0);
            --slot.num_to_ask;
            --num_to_ask_;
        }
        waits_[row] = Wait::kNothing;
    });
}

void CallerRows::withdraw() {
    for (Slot& slot : slots_) {
        if (!slot.asked) continue;
        desk_->withdraw(std::exchange(slot.asked, {}));
        --num_asked_;
    }
    DS_ASSERT(num_asked_ == 0);
}

}  // namespace doorstep
