// What a replica records of its passes and episodes. The recording thread holds its simulator's turn.
#pragma once

#include "metrics/time_series.h"
#include "rollouts/answer_recorder.h"
#include "rollouts/request.h"

namespace doorstep {

// Operations that end a span of time are given its start, and take the time themselves.
class ReplicaRecorder {
public:
    static ds_status create(const Ref<MetricsStore>& store, const RolloutLabels& labels, int64_t num_worlds,
                            int64_t num_policies, std::unique_ptr<ReplicaRecorder>* recorder);

    // Requests were taken, and their episodes have begun.
    void took(int64_t start_ns, int64_t count);
    void episode_begun(const Request& request, int64_t now_ns);
    void begun(int64_t start_ns, int64_t count);
    void passed(int64_t waiting_requests, int64_t active_worlds);
    void waited(int64_t start_ns);
    // Labels of a policy's series instead of its number, from its next actions on; checked, as policy="a".
    void label_policy(int64_t policy, const char* labels);
    // The actions of a policy's rows are chosen.
    void acted(int64_t policy, ds_policy_kind kind, int64_t start_ns, int64_t end_ns, int64_t rows);
    void met_nonfinite(int64_t actions) { nonfinite_actions_->add(actions); }
    void stepped(int64_t start_ns, int64_t active_worlds);
    // Episodes began before the latest step: told one by one which.
    bool awaits_first_steps() const { return awaits_first_steps_; }
    void made_first_step(const Request& request, int64_t now_ns);
    void made_first_steps() { awaits_first_steps_ = false; }
    // Results will be pushed.
    void answered(const ds_episode_output& result, bool traced);
    void ended(int64_t start_ns, int64_t count);

private:
    static constexpr int64_t kPolicyKinds = DS_POLICY_NATIVE + 1;  // FAILING ones choose nothing

    ReplicaRecorder(const Ref<MetricsStore>& store, const RolloutLabels& labels, int64_t num_worlds)
        : store_(store), labels_(labels), num_worlds_(num_worlds) {}
    ds_status open();

    // What is recorded of a policy. Its series are opened when they are first needed.
    struct PolicyTimes {
        char labels[sizeof ds_series_info::labels];  // "": its number
        bool is_opened[kPolicyKinds];                // or dropped
        Writer<Sketch> times[kPolicyKinds];
    };
    Writer<Sketch>& times_of(int64_t policy, ds_policy_kind kind);
    ds_status open_times(int64_t policy, ds_policy_kind kind, Writer<Sketch>* times);

    const Ref<MetricsStore> store_;
    const RolloutLabels labels_;
    const int64_t num_worlds_;

    Writer<Counter> episodes_begun_, steps_, episode_steps_, world_steps_, nonfinite_actions_, dropped_series_;
    Writer<Sketch> queue_wait_, first_step_, batch_fill_, begin_, step_;
    Writer<TimeSeries> active_worlds_, waiting_requests_;
    AnswerRecorder answers_;
    std::unique_ptr<PolicyTimes[]> policies_;
    Ref<TraceTrack> track_;
    bool awaits_first_steps_ = false;
};

}  // namespace doorstep
