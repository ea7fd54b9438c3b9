// How the rows of a replica get their actions, and their worlds step: on the host, or on the simulator's device.
//
// Both list the rows that are to act by policy, and prepare them with prepare_row(): the part of the episode that is
// left, states of new episodes, and actions that need no network. Networks on the CPU act on the host in either case,
// and callers are asked.
#pragma once

#include "policy/played_rows.h"
#include "policy/policy.h"
#include "rollouts/caller_rows.h"
#include "rollouts/pause.h"
#include "rollouts/policy_table.h"
#include "rollouts/trajectories.h"
#include "sim/observation_layout.h"

namespace doorstep {

// What actors use of their replica, and live no longer than.
struct ActorParts {
    Ref<Simulator> simulator;
    Episodes* episodes;
    HostTensors* tensors;
    ActedRows* acted;
    CallerRows* callers;
    Pause* pause;
    ReplicaRecorder* recorder;  // null: nothing is recorded
    int64_t num_policies;
};

class Actors {
public:
    // Those of the simulator's device. OUT_OF_MEMORY.
    static ds_status create(const ActorParts& parts, std::unique_ptr<Actors>* actors);
    virtual ~Actors() = default;

    // Takes over the policies that were given since the last call. Rows of one that cannot act here fail.
    void adopt(PolicyTable& table);
    // The episodes that are to act do. Rows of callers are asked for.
    virtual ds_status act() = 0;
    // The worlds that are ready step. The tensors then have their ends, and rewards if they are needed.
    virtual ds_status step() = 0;
    // Gets what the episodes that are marked record behind their last step, of these bits: their observations, as their
    // policies would see them, in the tensors, and the states of their networks.
    virtual ds_status read_ends(int32_t recorded) = 0;

    // The most floats of a state of the policies of a world, on the host.
    int64_t state_size(int64_t world) const;
    // Notes the states with which the rows of a world would act.
    void note_states(int64_t world);

    // Of the latest step: whether some network could choose no action, and whether that of a row could not.
    bool has_nonfinite() const { return some_nonfinite_ || device_nonfinite_; }
    bool is_nonfinite(int64_t row) const {
        const PolicySlot& slot = policies_[episodes_.policy_of(row)];
        if (slot.kind != DS_POLICY_NATIVE) return false;
        return slot.on_device ? device_nonfinite_ && device_nonfinite_[row] : nonfinite_[row];
    }
    // The flags have been read.
    void forget_nonfinite() {
        some_nonfinite_ &= episodes_.num_to_act() < episodes_.num_active();  // rows of those that wait may have flags
        device_nonfinite_ = nullptr;
    }

protected:
    // How the rows with one of the policies act.
    struct PolicySlot : GivenPolicy {
        Pages states{};  // of a recurrent policy: a row of state_size floats per row of all worlds; of one that is on
                         // the device a copy, for recording
        int64_t state_size = 0;
        bool on_device = false;
        RowChooser chooser = RowChooser::kNone;  // where prepare_row() runs
    };

    static bool is_built_in(ds_policy_kind kind) { return kind == DS_POLICY_RANDOM || kind == DS_POLICY_IDLE; }
    static RowChooser chooser_of(ds_policy_kind kind) {
        return kind == DS_POLICY_NATIVE   ? RowChooser::kNetwork
               : kind == DS_POLICY_RANDOM ? RowChooser::kRandom
               : kind == DS_POLICY_IDLE   ? RowChooser::kIdle
                                          : RowChooser::kNone;
    }

    explicit Actors(const ActorParts& parts);
    virtual ds_status open() = 0;
    bool take_memory();
    static ds_status fail_rows_memory() { return fail_worlds_memory("rows that act"); }

    // Says where a policy acts. NONE, or why it cannot.
    virtual ds_failure_cause place(int64_t index, PolicySlot* slot) = 0;

    // Lists the rows that are to act. False if they are those that are listed already.
    bool list_rows();
    int64_t num_listed() const { return first_row_[num_policies_]; }
    int64_t num_listed(int64_t policy) const { return first_row_[policy + 1] - first_row_[policy]; }

    PlayedRows played_rows() const;
    // Of the rows at some places of the list.
    void prepare_rows(int64_t first, int64_t count);
    // Notes what is known of all rows. Those whose policies are not on the device choose, or callers are asked.
    ds_status act_on_host();
    // Times of policies that acted together since then: the share of each is that of its rows, of all these rows.
    template <class Matches>
    void record_shares(int64_t start_ns, int64_t rows, const Matches& matches);
    void show_last_time_left();

    const Ref<Simulator> simulator_;
    Episodes& episodes_;
    CallerRows& callers_;
    Pause& pause_;
    ReplicaRecorder* const recorder_;
    const int64_t num_policies_, num_inputs_;
    const PartPlace time_left_;
    HostTensors& tensors_;
    ActedRows& acted_;
    Array<PolicySlot> policies_;
    Array<int32_t> order_;         // rows that are to act, by policy, ascending in each
    Array<int64_t> first_row_;     // by policy: its place in order_; then the end
    Array<PlayedRow> played_;      // by row, of all worlds
    int32_t recorded_ = 0;         // bits of what episodes record, when the rows were listed
    const uint8_t* device_nonfinite_ = nullptr;  // by row: its network on the device chose no action; null: all did

private:
    ds_failure_cause adopt(int64_t index, const GivenPolicy& given);
    bool take_states(const PolicySlot& before, PolicySlot* slot);
    bool take_scratch(const Policy& policy);
    void note_rows(const PolicySlot& slot, int64_t first, int64_t count);
    void note_state(const PolicySlot& slot, int64_t row);
    ActCall native_call(const PolicySlot& slot, int64_t first, int64_t rows) const;
    void act_natively(int64_t num_calls);
    void fail_rows(int64_t first, int64_t count, int64_t cause);
    bool describe_rows(int64_t world);
    void sort_rows();
    PlayedRow played_row(const PlayedEpisode& episode, int16_t policy) const;

    uint32_t policies_version_ = 0;  // of the table, that was adopted
    static constexpr int16_t kNoPolicy = -1;
    Array<int16_t> row_policies_;    // by row, of all worlds; kNoPolicy: it is not played
    bool lists_all_ = false;         // episodes that were active; false also where the list is outdated
    Array<PolicyStates> states_;     // by policy, on the host
    Array<uint8_t> nonfinite_;       // by row: its network on the host could choose no action
    bool some_nonfinite_ = false;    // of those that have acted and not stepped
    Array<PolicyCall> native_calls_;  // by policy
    Pages scratch_;                  // of networks, per worker
    int64_t scratch_bytes_ = 0;      // of each worker
};

// On CUDA, where all worlds step together, also if some of their rows act on the host. Null if memory ran out.
Actors* make_device_actors(const ActorParts& parts);

}  // namespace doorstep
