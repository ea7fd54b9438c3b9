// A simulator whose worlds play requests: a world that ends an episode begins the next one before the next step.
#pragma once

#include "exec/simulator.h"
#include "math/threefry.h"
#include "policy/policy_batch.h"
#include "rollouts/answers.h"
#include "rollouts/device_rows.h"
#include "rollouts/policy_table.h"
#include "rollouts/replica_recorder.h"
#include "rollouts/row_desk.h"
#include "rollouts/step_records.h"
#include "sim/observation_layout.h"

namespace doorstep {

// The episode that a world plays: what every step reads, side by side. Requests are anywhere in memory.
struct PlayedEpisode {
    Request* request;     // null: none
    int64_t started_ns;
    int64_t cause;        // ds_failure_cause
    int32_t length;       // steps so far
    int32_t shown_steps;  // that policies shall see as its length; 0: what they see is right
    int32_t recorded;     // bits of ds_episode_record
    bool has_acted;       // in this step: its native policies; callers are asked for the other ones
    int16_t num_awaited;  // its rows whose actions callers have not returned
    int16_t policies[DS_MAX_AGENTS];

    bool records(int32_t bits) const { return (recorded & bits) != 0; }
};

// How the rows with one of the policies get their actions here.
struct PolicySlot {
    ds_policy_kind kind;
    Ref<Policy> native;
    int64_t cause;         // of the kind FAILING
    Pages states;          // of a recurrent policy on the host: a row of state_size floats per agent of all worlds
    int64_t state_size;
    int32_t version;
    bool on_device;        // in DeviceRows
    Ref<AskedRows> asked;  // that a caller has; others wait until they are back
    int64_t asked_ns;      // when that was
    int64_t num_to_ask;    // rows
};

// What a replica shares with the engine and its other replicas.
struct ReplicaParts {
    Ref<RequestQueue> requests;  // that it takes from
    Ref<OutputQueue> outputs;
    Ref<PolicyTable> policies;
    Ref<RowDesk> desk;
};

class Replica : public RefCounted {
public:
    // OUT_OF_MEMORY. The simulator has flat observations and no automatic reset, and no other object uses it.
    static ds_status create(const Ref<Simulator>& simulator, const ReplicaParts& parts, int32_t number,
                            Ref<Replica>* replica);
    ~Replica();

    RequestQueue& requests() const { return *requests_; }

    // Plays requests on the calling thread and the simulator's, until it is closed or fails. Holds the simulator's turn
    // but for short times between two passes and while it sleeps. Its episodes wait in the queue again in the end.
    ds_status play();
    // play() returns soon. Takes no lock.
    void close();
    // Frees what is large, once play() has returned or was never called.
    void end();
    void read(ds_replica_info* info) const;
    // Rows of policies that callers are asked for already.
    int64_t num_unasked() const { return unasked_.load(std::memory_order_relaxed); }

private:
    // What a row's actions wait for.
    enum class RowWait : uint8_t { kNothing, kAsking, kCaller };

    Replica(const Ref<Simulator>& simulator, const ReplicaParts& parts, int32_t number);
    bool take_memory();
    ds_status open_recorder();
    bool take_staging();
    bool take_scratch(const Policy& policy);

    // ---- Policies
    int64_t num_policies() const { return given_->size(); }
    void adopt_policies();
    ds_failure_cause adopt(int64_t index, const GivenPolicy& given);

    // ---- One pass: step the worlds that have acted, begin, act
    ds_status play_on();
    ds_status step();
    ds_status begin();
    ds_status act();
    template <class IsDone>
    void sleep_until(const IsDone& is_done);
    void give_up_turn();

    // ---- Begin
    bool mark_over(int64_t now_ns);
    int64_t chunk() const;
    ds_status start(Request* first);
    void start_in(int64_t world, Request* request, int64_t now_ns);
    int32_t steps_to_show(const ds_episode_request& asked) const;
    void set_sampling(int64_t world);
    void reset_states(int64_t world);
    ds_status prepare_rows();
    void list_rows();
    ds_status upload_rows();
    void show_time_left();
    void show_time_left(int64_t world);

    // ---- Act
    ActCall native_call(const PolicySlot& slot, int64_t first, int64_t rows) const;
    void act_natively();
    void act_randomly(int64_t first, int64_t count);
    void act_idly(int64_t first, int64_t count);
    ds_status act_on_device();
    void note_to_ask(int64_t first, int64_t count);
    ds_status ask_callers();
    Ref<AskedRows> rows_to_ask(int64_t policy);
    bool some_have_returned() const;
    void take_answers();
    void take_answer(int64_t policy);
    void fail_rows(int64_t first, int64_t count, int64_t cause);
    void withdraw_questions();
    RandomKey key_of(int64_t row) const;

    // ---- Step
    void find_ready();
    void record_steps();
    void note_rows(int64_t policy, const int32_t* rows, int64_t count);
    int64_t largest_state(int64_t world) const;
    void mark_ends();
    ds_status mark_nonfinite();
    void record_first_steps();
    ds_status stream_steps();

    // ---- Ends
    void mark(int64_t world, ds_episode_reason reason, int64_t cause = DS_CAUSE_NONE);
    ds_status end_marked();
    ds_status push_results(int64_t start_ns);
    ds_status record_ends();
    Output make_result(int64_t world, const EpisodeSummary& summary);
    ds_status push_outputs();
    void drop_outputs();
    void free_world(int64_t world);
    void give_back_all();

    // ---- Tensors, on the host
    ds_status step_worlds();
    ds_status write_actions();
    ds_status read_ends();
    template <class Value>
    ds_status read_tensor(int tensor, Value* host);

    int64_t num_rows() const { return num_worlds_ * num_agents_; }

    Ref<Simulator> simulator_;  // null: it has ended
    const Ref<RequestQueue> requests_;
    const Ref<OutputQueue> outputs_;
    const Ref<PolicyTable> given_;
    const Ref<RowDesk> desk_;
    const int32_t number_;
    const int64_t num_worlds_, num_agents_, num_inputs_;
    const PartPlace time_left_;  // of a request with a length of its own, which policies see
    const bool on_host_;

    PolicySlot policies_[DS_MAX_POLICIES] = {};
    uint32_t policies_version_ = 0;        // of given_, that was adopted
    int64_t num_asked_ = 0;                // policies_ that callers are asked for
    std::unique_ptr<PlayedEpisode[]> played_;  // per world
    int64_t active_ = 0;                   // worlds that play
    std::unique_ptr<int64_t[]> free_worlds_;  // a stack of num_worlds_ - active_
    std::unique_ptr<EpisodeStart[]> starts_;  // per world
    std::unique_ptr<uint8_t[]> ended_;  // per world: 1 + ds_episode_reason; 0: plays on
    std::unique_ptr<uint8_t[]> nonfinite_;  // by row: its native policy on the host could choose no action
    bool some_nonfinite_ = false;          // in this step
    int64_t num_ended_ = 0;                // that are marked in ended_
    std::unique_ptr<EpisodeSummary[]> summaries_;  // per world
    std::unique_ptr<uint8_t[]> ready_;     // per world: it has all actions of its next step, or has just made it
    int64_t num_ready_ = 0;
    std::unique_ptr<int32_t[]> rows_;  // of worlds that have not acted, by policy, ascending in each
    std::unique_ptr<RowWait[]> waits_;  // by row
    int64_t first_row_[DS_MAX_POLICIES + 1] = {};
    std::unique_ptr<ds_sampling[]> sampling_;  // by row
    std::unique_ptr<ds_sampling_key[]> keys_;  // by row
    std::unique_ptr<Output[]> new_outputs_;  // of num_worlds_
    int64_t num_new_outputs_ = 0;
    std::unique_ptr<PlayedRequest[]> finished_;  // of num_worlds_
    std::unique_ptr<PolicyCall[]> native_calls_;  // of num_policies()
    int64_t num_native_calls_ = 0;         // that are to be made
    char* scratch_ = nullptr;              // of native policies, per worker
    int64_t scratch_bytes_ = 0;            // of each worker

    // The simulator's tensors, or copies of them on the host.
    float* observations_ = nullptr;
    const float* rewards_ = nullptr;
    const uint8_t *terminations_ = nullptr, *truncations_ = nullptr;
    int32_t* actions_ = nullptr;
    Pages staging_;                        // the copies
    Ref<DeviceRows> device_;               // null on the CPU
    bool rows_changed_ = true;             // since they were uploaded to it
    bool some_record_ = false;             // episodes: their steps are needed on the host
    bool some_act_on_host_ = false;        // rows of a replica on CUDA

    StepRecords records_;
    std::unique_ptr<ReplicaRecorder> recorder_;  // null: nothing is recorded

    uint32_t cancellations_ = 0;           // of the table, when they were last looked at
    int64_t next_deadline_ns_ = INT64_MAX; // no episode that is played has an earlier one
    double step_ns_ = 0, begin_ns_ = 0;    // smoothed: of a step, of the begin of one episode
    std::atomic<bool> closed_{false};
    std::atomic<int64_t> steps_{0}, world_steps_{0}, episodes_{0}, unasked_{0};
};

}  // namespace doorstep
