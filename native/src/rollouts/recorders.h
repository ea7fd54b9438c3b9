// What queues and replicas record: series by name and labels, and events of a trace.
//
// Labels: scheduler, and of a replica its number; others are told with the series. Operations that end a span of time
// are given its start, and take the time themselves.
#pragma once

#include "metrics/sketch.h"
#include "metrics/store.h"
#include "metrics/time_series.h"
#include "runtime/array.h"

namespace doorstep {

struct Request;

// X(name, kind, sentence)
#define DS_ROLLOUT_SERIES_TABLE(X)                                                                                        \
    X(requests_submitted, COUNTER, "Requests that were accepted.")                                                       \
    X(requests_answered, COUNTER, "Requests that got their result, by its reason, and the cause of those that failed.")  \
    X(episodes_begun, COUNTER, "Episodes that began; again those that were interrupted, or whose replica was closed.")   \
    X(steps, COUNTER, "Steps of the simulator.")                                                                         \
    X(episode_steps, COUNTER, "Steps of episodes: the worlds that played one, summed over the steps.")                   \
    X(world_steps, COUNTER, "Steps of all worlds, summed likewise.")                                                     \
    X(nonfinite_actions, COUNTER, "Actions that a network could not choose: of logits that are NaN or infinite.")        \
    X(dropped_series, COUNTER, "Series of policies that are not recorded, because there was no room or no memory.")      \
    X(queue_wait_seconds, SKETCH, "From the submission of a request until its episode begins.")                          \
    X(first_step_seconds, SKETCH, "From the submission of a request until the first step of its episode is done.")       \
    X(latency_seconds, SKETCH, "From the submission of a request until its result, by the reason.")                      \
    X(batch_fill, SKETCH, "The part of the worlds that play, of each step.")                                             \
    X(begin_seconds, SKETCH, "Time to begin the episodes of a pass.")                                                    \
    X(policy_seconds, SKETCH, "Time to choose the actions of a policy in a step, by its name and its kind.")             \
    X(step_seconds, SKETCH, "Time of a step of the simulator.")                                                          \
    X(active_worlds, TIME_SERIES, "Worlds that play, at each pass.")                                                     \
    X(waiting_requests, TIME_SERIES, "Requests that wait in the replica's queue, at each pass.")

enum class RolloutSeries {
#define DS_ROLLOUT_SERIES_ENUM(name, kind, sentence) name,
    DS_ROLLOUT_SERIES_TABLE(DS_ROLLOUT_SERIES_ENUM)
#undef DS_ROLLOUT_SERIES_ENUM
};

// The labels that all series of a queue, or of a replica, have in common.
struct RolloutLabels {
    int32_t scheduler;  // ds_scheduler
    int32_t replica;    // -1: none
};

// The results of requests by reason and cause, and how long they took.
class AnswerRecorder {
public:
    // first_reason: the first ds_episode_reason that results can have.
    ds_status open(MetricsStore& store, const RolloutLabels& labels, ds_episode_reason first_reason);
    void record(const ds_episode_output& result);

private:
    static constexpr int32_t kReasons = DS_EPISODE_FAILED + 1;
    static constexpr int32_t kCauses = 4;  // of failures: memory, simulation, logits, a caller's

    Writer<Counter> answered_[kReasons];  // the last one is not used
    Writer<Counter> failed_[kCauses];
    Writer<Sketch> latencies_[kReasons];
};

// Of queues between which requests move: submissions, and results of requests that no replica played. The recording
// thread holds the lock of their requests.
class QueueRecorder {
public:
    static ds_status create(const Ref<MetricsStore>& store, int32_t scheduler,
                            std::unique_ptr<QueueRecorder>* recorder);

    const Ref<MetricsStore>& store() const { return store_; }

    void submitted(const ds_episode_request* requests, const uint64_t* ids, uint64_t count, int64_t start_ns);
    void answered(const ds_episode_output& result, bool traced, int64_t start_ns);
    void answered_some(int64_t start_ns, int64_t count);

private:
    explicit QueueRecorder(const Ref<MetricsStore>& store) : store_(store) {}

    const Ref<MetricsStore> store_;
    Writer<Counter> submitted_;
    AnswerRecorder answers_;
    Ref<TraceTrack> track_;
};

// Of a replica: its passes and episodes. The recording thread holds its simulator's turn.
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
    void made_first_step(const Request& request, int64_t now_ns);
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
    Array<PolicyTimes> policies_;
    Ref<TraceTrack> track_;
};

}  // namespace doorstep
