#include "rollouts/actors.h"

#include <algorithm>
#include <new>
#include <utility>

#include "exec/cpu/cpu_simulator.h"
#include "math/exponential.h"
#include "runtime/machine.h"
#include "runtime/marks.h"

namespace doorstep {
namespace {

// Rows that a thread prepares at a time.
constexpr int64_t kPreparedRows = 256;

// On the host all policies act, and the worlds whose actions callers choose sit out while the others step.
class HostActors final : public Actors {
public:
    explicit HostActors(const ActorParts& parts) : Actors(parts) {}

    ds_status act() override {
        list_rows();
        const int64_t start = recorder_ ? monotonic_ns() : 0, rows = num_listed();
        prepare_rows(0, rows);
        if (recorder_) record_shares(start, rows, [](const PolicySlot& slot) { return is_built_in(slot.kind); });
        return act_on_host();
    }
    ds_status step() override {
        const bool all_step = episodes_.num_ready() == episodes_.num_worlds();
        return all_step ? simulator_->step() : static_cast<CpuSimulator&>(*simulator_).step_some(episodes_.ready());
    }
    ds_status read_ends(int32_t recorded) override {
        if (recorded & DS_RECORD_OBSERVATIONS) show_last_time_left();
        return DS_STATUS_OK;
    }

private:
    ds_status open() override {
        if (!take_memory()) return fail_rows_memory();
        const TensorPointers& tensors = simulator_->simulation().tensors;
        tensors_ = {tensors.observations, tensors.rewards, tensors.terminations, tensors.truncations, tensors.actions,
                    num_inputs_};
        return DS_STATUS_OK;
    }
    ds_failure_cause place(int64_t, PolicySlot* slot) override {
        if (slot->native && slot->native->device_kind() != DS_DEVICE_CPU) return DS_CAUSE_DEVICE;
        slot->chooser = chooser_of(slot->kind);
        return DS_CAUSE_NONE;
    }
};

}  // namespace

// ---- Creation ----

Actors::Actors(const ActorParts& parts)
    : simulator_(parts.simulator),
      episodes_(*parts.episodes),
      callers_(*parts.callers),
      pause_(*parts.pause),
      recorder_(parts.recorder),
      num_policies_(parts.num_policies),
      num_inputs_(parts.simulator->simulation().flat.size),
      time_left_(place_of(DS_OBSERVATION_PART_steps_remaining, parts.simulator->simulation().flat.parts,
                          static_cast<int>(parts.episodes->num_agents()))),
      tensors_(*parts.tensors),
      acted_(*parts.acted) {
    DS_ASSERT(num_inputs_ > 0 && num_policies_ > 0 && num_policies_ <= DS_MAX_POLICIES);
}

ds_status Actors::create(const ActorParts& parts, std::unique_ptr<Actors>* actors) {
    const bool on_host = parts.simulator->config().device_kind == DS_DEVICE_CPU;
    actors->reset(on_host ? new (std::nothrow) HostActors(parts) : make_device_actors(parts));
    return *actors ? (*actors)->open() : fail_rows_memory();
}

bool Actors::take_memory() {
    const int64_t rows = episodes_.num_rows();
    const bool is_taken = policies_.take(num_policies_) && order_.take(rows) && first_row_.take(num_policies_ + 1) &&
                          played_.take(rows) && row_policies_.take(rows) && states_.take(num_policies_) &&
                          nonfinite_.take(rows) && native_calls_.take(num_policies_);
    std::fill(row_policies_.begin(), row_policies_.end(), kNoPolicy);
    return is_taken;
}

// ---- Policies ----

void Actors::adopt(PolicyTable& table) {
    const uint32_t version = table.version();
    if (version == policies_version_) return;
    for (int64_t index = 0; index < num_policies_; ++index) {
        GivenPolicy given;
        if (!table.was_given_since(policies_version_, index, &given)) continue;
        const ds_failure_cause cause = adopt(index, given);
        if (cause) adopt(index, {DS_POLICY_FAILING, {}, cause, 0, given.series});
    }
    policies_version_ = version;
    // The rows that have such a policy may be played otherwise
    for (int64_t world = 0; world < episodes_.num_worlds(); ++world) describe_rows(world);
    lists_all_ = false;
}

// NONE, or why the policy cannot act here.
ds_failure_cause Actors::adopt(int64_t index, const GivenPolicy& given) {
    PolicySlot& before = policies_[index];
    PolicySlot slot{given};
    DS_ASSERT((slot.kind == DS_POLICY_NATIVE) == static_cast<bool>(slot.native));
    DS_ASSERT((slot.kind == DS_POLICY_FAILING) == (slot.cause != DS_CAUSE_NONE));
    if (const ds_failure_cause cause = place(index, &slot)) return cause;
    if (slot.native && !take_states(before, &slot)) return DS_CAUSE_MEMORY;
    if (slot.native && !slot.on_device && !take_scratch(*slot.native)) return DS_CAUSE_MEMORY;
    if (!slot.states && before.states) {  // a policy may be renewed: its episodes go on
        slot.states = std::move(before.states);
        slot.state_size = before.state_size;
    }
    states_[index] = {reinterpret_cast<float*>(slot.states.data()), slot.state_size};
    before = std::move(slot);
    return DS_CAUSE_NONE;
}

// New ones, unless those before have the same size. False if memory ran out.
bool Actors::take_states(const PolicySlot& before, PolicySlot* slot) {
    const int64_t size = slot->native->state_size();
    if (size == 0 || size == before.state_size) return true;
    slot->states = map_pages(episodes_.num_rows() * size * 4, "policy");
    slot->state_size = size;
    return static_cast<bool>(slot->states);
}

bool Actors::take_scratch(const Policy& policy) {
    const int64_t alignment = Policy::kScratchAlignment;
    const int64_t bytes = (policy.scratch_bytes() + alignment - 1) / alignment * alignment;
    if (bytes <= scratch_bytes_) return true;
    Pages scratch = map_pages(bytes * simulator_->num_workers(), "policy");
    if (!scratch) return false;
    scratch_ = std::move(scratch);
    scratch_bytes_ = bytes;
    return true;
}

// ---- Rows ----

bool Actors::list_rows() {
    const bool lists_all = episodes_.num_to_act() == episodes_.num_active();
    bool is_in_order = lists_all && lists_all_, has_changed = !is_in_order;
    for_each_marked(episodes_.changed(), episodes_.num_worlds(), [&](int64_t world) {
        episodes_.changed()[world] = 0;
        is_in_order &= describe_rows(world);
        has_changed = true;
    });
    lists_all_ = lists_all;
    if (has_changed) {
        recorded_ = 0;
        episodes_.for_each_recorded([this](int64_t world) { recorded_ |= episodes_[world].recorded; });
    }
    if (!is_in_order) sort_rows();
    DS_ASSERT(first_row_[0] == 0 && num_listed() == episodes_.num_to_act() * episodes_.num_agents());
    return has_changed;
}

// Says how the rows of a world are played. Returns whether they have the policies that they had.
bool Actors::describe_rows(int64_t world) {
    const PlayedEpisode& episode = episodes_[world];
    const bool is_played = episodes_.state(world) != SlotState::kFree;
    bool has_same = true;
    episodes_.for_each_row(world, [&](int64_t row) {
        const int16_t policy = is_played ? episodes_.policy_of(row) : kNoPolicy;
        DS_ASSERT(policy >= kNoPolicy && policy < num_policies_);
        has_same &= std::exchange(row_policies_[row], policy) == policy;
        played_[row] = is_played ? played_row(episode, policy) : PlayedRow{};
    });
    return has_same;
}

// A counting sort by policy, of the rows that are to act.
void Actors::sort_rows() {
    const auto for_each_row_to_act = [this](const auto& function) {
        for (int64_t world = 0; world < episodes_.num_worlds(); ++world) {
            if (episodes_.state(world) != SlotState::kToAct) continue;
            episodes_.for_each_row(world, [&](int64_t row) { function(row, row_policies_[row]); });
        }
    };
    std::fill(first_row_.begin(), first_row_.end(), 0);
    for_each_row_to_act([this](int64_t, int16_t policy) { ++first_row_[policy + 1]; });
    for (int64_t policy = 0; policy < num_policies_; ++policy) first_row_[policy + 1] += first_row_[policy];
    int64_t places[DS_MAX_POLICIES];
    std::copy_n(first_row_.data(), num_policies_, places);
    for_each_row_to_act([&](int64_t row, int16_t policy) { order_[places[policy]++] = static_cast<int32_t>(row); });
}

// What nothing sees is not written.
PlayedRow Actors::played_row(const PlayedEpisode& episode, int16_t policy) const {
    const PolicySlot& slot = policies_[policy];
    const bool is_seen = !is_built_in(slot.kind) || episode.records(DS_RECORD_OBSERVATIONS);
    return {slot.chooser, policy, is_seen ? episode.shown_steps : 0};
}

PlayedRows Actors::played_rows() const {
    return {episodes_.num_rows(),   played_.data(), episodes_.keys(),  episodes_.steps(), states_.data(),
            tensors_.observations, num_inputs_,    time_left_.place, time_left_.scale,  tensors_.actions};
}

void Actors::prepare_rows(int64_t first, int64_t count) {
    DS_ASSERT(first >= 0 && count >= 0 && first + count <= num_listed());
    struct Job {
        const PlayedRows call;
        const int32_t* rows;
    } job = {played_rows(), order_.data() + first};
    simulator_->run_on_host(
        count, kPreparedRows,
        [](void* context, int64_t begin, int64_t rows, int32_t) {
            const Job& of = *static_cast<const Job*>(context);
            const auto prepare = cpu_features().avx512 ? prepare_with_avx512 : prepare_with_avx2;
            prepare(of.call, of.rows + begin, rows);
        },
        &job);
}

// Of the episodes that are marked and recorded, behind their last step.
void Actors::show_last_time_left() {
    const PlayedRows call = played_rows();
    episodes_.for_each_recorded([&](int64_t world) {
        if (!episodes_.has_ended(world)) return;
        episodes_.for_each_row(world, [&](int64_t row) { show_time_left(call, row, episodes_.length(world)); });
    });
}

// ---- Act on the host ----

ds_status Actors::act_on_host() {
    int64_t num_calls = 0;
    for (int64_t policy = 0; policy < num_policies_; ++policy) {
        const int64_t first = first_row_[policy], rows = num_listed(policy);
        const PolicySlot& slot = policies_[policy];
        if (rows > 0 && recorded_ & kActingRecords) note_rows(slot, first, rows);
        if (rows == 0 || slot.on_device) continue;
        switch (slot.kind) {
        case DS_POLICY_CALLER: callers_.add(policy, slot.series, order_.data() + first, rows); break;
        case DS_POLICY_FAILING: fail_rows(first, rows, slot.cause); break;
        case DS_POLICY_NATIVE:
            native_calls_[num_calls++] = {policy, slot.native.get(), native_call(slot, first, rows), 0};
            break;
        case DS_POLICY_RANDOM:
        case DS_POLICY_IDLE: break;  // prepare_row() chose
        }
    }
    if (num_calls > 0) act_natively(num_calls);
    episodes_.acted();
    return callers_.ask();
}

ActCall Actors::native_call(const PolicySlot& slot, int64_t first, int64_t rows) const {
    DS_ASSERT(slot.native->num_inputs() == num_inputs_ && slot.native->state_size() <= slot.state_size);
    ActCall call = {};
    call.num_rows = rows;
    call.rows = order_.data() + first;
    call.observations = tensors_.observations;
    call.observation_stride = num_inputs_;
    call.states = reinterpret_cast<float*>(slot.states.data());
    call.state_stride = slot.native->state_size();
    call.sampling = episodes_.sampling();
    call.keys = episodes_.keys();
    call.step_counter = episodes_.steps();
    call.actions = tensors_.actions;
    call.nonfinite = nonfinite_.data();
    if (recorded_ & DS_RECORD_LOG_PROBS) call.log_probs = acted_.log_probs.data();
    if (recorded_ & DS_RECORD_VALUES) call.values = acted_.values.data();
    return call;
}

// What is known before a network tells more.
void Actors::note_rows(const PolicySlot& slot, int64_t first, int64_t count) {
    const float unknown = not_a_number<float>();
    const float log_prob = slot.kind == DS_POLICY_RANDOM ? kRandomLogProb : slot.kind == DS_POLICY_IDLE ? 0 : unknown;
    for (int64_t place = first; place < first + count; ++place) {
        const int64_t row = order_[place];
        acted_.log_probs[row] = log_prob;
        acted_.values[row] = unknown;
        acted_.versions[row] = slot.version;
        if (episodes_.of_row(row).records(DS_RECORD_STATES)) note_state(slot, row);
    }
}

void Actors::note_state(const PolicySlot& slot, int64_t row) {
    const int64_t size = slot.native ? slot.native->state_size() : 0;
    acted_.set_state(row, reinterpret_cast<const float*>(slot.states.data()) + row * size, size);
}

void Actors::note_states(int64_t world) {
    if (!episodes_[world].records(DS_RECORD_STATES)) return;
    episodes_.for_each_row(world, [this](int64_t row) { note_state(policies_[episodes_.policy_of(row)], row); });
}

int64_t Actors::state_size(int64_t world) const {
    int64_t largest = 0;
    episodes_.for_each_row(world, [&](int64_t row) {
        const PolicySlot& slot = policies_[episodes_.policy_of(row)];
        if (slot.native) largest = std::max(largest, slot.native->state_size());
    });
    return largest;
}

void Actors::act_natively(int64_t num_calls) {
    const int64_t start = recorder_ ? monotonic_ns() : 0;
    const uint32_t trouble =
        act_together(*simulator_, native_calls_.data(), num_calls, scratch_.data(), scratch_bytes_);
    some_nonfinite_ |= trouble != kPolicyTroubleNone;
    if (!recorder_) return;
    int64_t rows = 0;
    for (int64_t i = 0; i < num_calls; ++i) rows += native_calls_[i].call.num_rows;
    record_shares(start, rows, [](const PolicySlot& slot) { return slot.kind == DS_POLICY_NATIVE; });
}

void Actors::fail_rows(int64_t first, int64_t count, int64_t cause) {
    for (int64_t place = first; place < first + count; ++place) {
        choose_neutrally(tensors_.actions_of(order_[place]));
        episodes_.mark(order_[place] / episodes_.num_agents(), DS_EPISODE_FAILED, cause);
    }
}

template <class Matches>
void Actors::record_shares(int64_t start_ns, int64_t rows, const Matches& matches) {
    const int64_t taken = monotonic_ns() - start_ns;
    int64_t done = 0;
    for (int64_t policy = 0; policy < num_policies_; ++policy) {
        const PolicySlot& slot = policies_[policy];
        const int64_t own = num_listed(policy);
        if (own == 0 || slot.on_device || !matches(slot)) continue;
        const int64_t begin = start_ns + taken * done / rows;
        done += own;
        DS_ASSERT(done <= rows);
        recorder_->acted(policy, slot.series, slot.kind, begin, start_ns + taken * done / rows, own);
    }
}

}  // namespace doorstep
