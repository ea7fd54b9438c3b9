// What queues and replicas record: series of their numbers, and events of a trace. Operations that end a span of time
// are given its start, and take the time themselves.
#pragma once

#include "metrics/sketch.h"
#include "metrics/store.h"
#include "metrics/time_series.h"
#include "metrics/trace.h"
#include "runtime/array.h"
#include "runtime/futex.h"

namespace doorstep {

struct Request;

// What all series of a queue, or of a replica, have in common.
struct RolloutLabels {
    int32_t scheduler;  // ds_scheduler
    int32_t replica;    // -1: none
};

// A writer of a store: its series, its track if there is a trace, and the results of requests by reason and cause.
class Recorder {
public:
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    const Ref<MetricsStore>& store() const { return store_; }
    void record_span_until_now(ds_trace_kind kind, int64_t start_ns, int64_t count) {
        if (track_) track_->record_span(kind, start_ns, monotonic_ns(), count, 0);
    }
    // A result will be pushed.
    void count(const ds_episode_output& result);

protected:
    // first_reason: the first ds_episode_reason that results can have.
    Recorder(const Ref<MetricsStore>& store, const RolloutLabels& labels, ds_episode_reason first_reason);
    ~Recorder() { store_->close(this); }

    template <class Kind>
    ds_status open(ds_metric metric, Kind** series, int32_t detail = 0, int32_t variant = 0) {
        return store_->open({metric, labels_.scheduler, labels_.replica, detail, variant}, this, series);
    }
    // Series without which nothing is recorded: the first failure is kept.
    template <class Kind>
    void need(ds_metric metric, Kind** series, int32_t detail = 0, int32_t variant = 0) {
        if (!status_) status_ = open(metric, series, detail, variant);
    }
    void record_span(ds_trace_kind kind, int64_t start_ns, int64_t end_ns, int64_t count, int32_t detail = 0) {
        if (track_) track_->record_span(kind, start_ns, end_ns, count, detail);
    }

    ds_status status_ = DS_STATUS_OK;
    TraceTrack* track_ = nullptr;  // null: there is no trace

private:
    static constexpr int32_t kReasons = DS_EPISODE_FAILED + 1;
    static constexpr int32_t kCauses = 4;

    const Ref<MetricsStore> store_;
    const RolloutLabels labels_;
    Counter* answered_[kReasons] = {};  // the last one is not used
    Counter* failed_[kCauses] = {};
    Sketch* latencies_[kReasons] = {};
};

// Of queues between which requests move: submissions, and results of requests that no replica played. The recording
// thread holds the lock of their requests.
class QueueRecorder : public Recorder {
public:
    static ds_status create(const Ref<MetricsStore>& store, int32_t scheduler,
                            std::unique_ptr<QueueRecorder>* recorder);

    // A request of several episodes is one.
    void submitted(const ds_episode_request* requests, const uint64_t* ids, uint64_t count, int64_t start_ns);
    // Episodes of a request, which have the same result.
    void answered(const ds_episode_output& result, int32_t episodes);

private:
    QueueRecorder(const Ref<MetricsStore>& store, int32_t scheduler);

    Counter* submitted_ = nullptr;
};

// Of a replica: its passes and episodes. The recording thread holds its simulator's turn.
class ReplicaRecorder : public Recorder {
public:
    static ds_status create(const Ref<MetricsStore>& store, const RolloutLabels& labels, int64_t num_worlds,
                            std::unique_ptr<ReplicaRecorder>* recorder);

    void episode_begun(const Request& request, int64_t now_ns);
    void begun(int64_t start_ns, int64_t count);
    void passed(int64_t waiting_requests, int64_t active_worlds);
    // The actions of a policy's rows are chosen. policy: its index. series: 0 .. DS_MAX_POLICY_SERIES - 1.
    void acted(int64_t policy, int32_t series, ds_policy_kind kind, int64_t start_ns, int64_t end_ns, int64_t rows);
    void met_nonfinite(int64_t actions) { nonfinite_actions_->add(actions); }
    void stepped(int64_t start_ns, int64_t active_worlds);
    void made_first_step(const Request& request, int64_t now_ns);

private:
    static constexpr int64_t kPolicyKinds = DS_POLICY_NATIVE + 1;  // FAILING ones choose nothing

    ReplicaRecorder(const Ref<MetricsStore>& store, const RolloutLabels& labels, int64_t num_worlds);

    // Opened when it is first needed.
    struct PolicyTimes {
        bool is_opened;  // or dropped: then there are none
        Sketch* times;
    };
    Sketch* times_of(int32_t series, ds_policy_kind kind);

    const int64_t num_worlds_;
    Counter *episodes_begun_, *steps_, *episode_steps_, *world_steps_, *nonfinite_actions_, *dropped_series_;
    Sketch *queue_wait_, *first_step_, *batch_fill_, *begin_, *step_;
    TimeSeries *active_worlds_, *waiting_requests_;
    Array<PolicyTimes> policies_;  // [DS_MAX_POLICY_SERIES, kPolicyKinds]
};

}  // namespace doorstep
