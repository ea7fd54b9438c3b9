#include "rollouts/recorders.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <new>
#include <utility>

#include "metrics/series.h"
#include "rollouts/request.h"
#include "runtime/futex.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

// ---- Series ----

struct SeriesRow {
    const char* name;
    ds_series_kind kind;
    const char* sentence;
};

constexpr SeriesRow kRows[] = {
#define DS_ROLLOUT_SERIES_ROW(name, kind, sentence) {#name, DS_SERIES_##kind, sentence},
    DS_ROLLOUT_SERIES_TABLE(DS_ROLLOUT_SERIES_ROW)
#undef DS_ROLLOUT_SERIES_ROW
};

constexpr const char* kSchedulers[] = {"fixed_chunk",       "dynamic_chunk",         "priority",
                                       "earliest_deadline", "least_remaining_steps", "fair_share", "caller"};

constexpr const char* kReasonNames[] = {"goal", "time", "cancelled", "expired", "failed"};
constexpr const char* kCauseNames[] = {"memory", "simulation", "logits", "caller"};
constexpr const char* kPolicyKindNames[] = {"caller", "random", "idle", "native"};

int32_t place_of_cause(int64_t cause) {
    DS_ASSERT(cause != DS_CAUSE_NONE);
    return cause == DS_CAUSE_MEMORY ? 0 : cause == DS_CAUSE_SIMULATION ? 1 : cause <= DS_CAUSE_LOGITS ? 2 : 3;
}

double seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

ds_status fail_recorder_memory() {
    return fail(DS_STATUS_OUT_OF_MEMORY, "", "raise the memory limit", "no memory is left for metrics");
}

// Opens writers of series that have some labels in common. OUT_OF_MEMORY, INVALID_ARGUMENT: further ones do nothing.
struct Opener {
    MetricsStore& store;
    const RolloutLabels labels;
    ds_status status = DS_STATUS_OK;

    // own: the labels before `replica` in the order of names, as cause="x",reason="y", or "".
    template <class Kind>
    void open(RolloutSeries which, Writer<Kind>* writer, const char* own = "") {
        if (status) return;
        const SeriesRow& row = kRows[static_cast<int>(which)];
        char replica[32] = "", all[sizeof ds_series_info::labels];
        if (labels.replica >= 0) snprintf(replica, sizeof replica, "replica=\"%d\",", labels.replica);
        const int length = snprintf(all, sizeof all, "%s%s%sscheduler=\"%s\"", own, *own ? "," : "", replica,
                                    kSchedulers[labels.scheduler]);
        if (length >= static_cast<int>(sizeof all)) {
            status = fail(DS_STATUS_INVALID_ARGUMENT, "labels", "use shorter ones",
                          "labels of %s are too long", row.name);
            return;
        }
        Ref<Series> series;
        status = store.open(row.kind, row.name, all, row.sentence, &series);
        if (!status) status = writer->open(series);
    }
};

}  // namespace

// ---- Results ----

ds_status AnswerRecorder::open(MetricsStore& store, const RolloutLabels& labels, ds_episode_reason first_reason) {
    Opener opener = {store, labels};
    char own[64];
    for (int32_t reason = first_reason; reason < kReasons; ++reason) {
        snprintf(own, sizeof own, "reason=\"%s\"", kReasonNames[reason]);
        opener.open(RolloutSeries::latency_seconds, &latencies_[reason], own);
        if (reason != DS_EPISODE_FAILED) opener.open(RolloutSeries::requests_answered, &answered_[reason], own);
    }
    for (int32_t cause = 0; cause < kCauses; ++cause) {
        snprintf(own, sizeof own, "cause=\"%s\",reason=\"failed\"", kCauseNames[cause]);
        opener.open(RolloutSeries::requests_answered, &failed_[cause], own);
    }
    return opener.status;
}

void AnswerRecorder::record(const ds_episode_output& result) {
    DS_ASSERT(result.reason >= 0 && result.reason < kReasons && result.ended_ns >= result.submitted_ns);
    const bool failed = result.reason == DS_EPISODE_FAILED;
    (failed ? failed_[place_of_cause(result.cause)] : answered_[result.reason])->add(1);
    latencies_[result.reason]->add(seconds(result.ended_ns - result.submitted_ns), result.ended_ns);
}

// ---- Queues ----

ds_status QueueRecorder::create(const Ref<MetricsStore>& store, int32_t scheduler,
                                std::unique_ptr<QueueRecorder>* recorder) {
    std::unique_ptr<QueueRecorder> made(new (std::nothrow) QueueRecorder(store));
    if (!made) return fail_recorder_memory();
    Opener opener = {*store, {scheduler, -1}};
    opener.open(RolloutSeries::requests_submitted, &made->submitted_);
    if (opener.status) return opener.status;
    if (const ds_status status = made->answers_.open(*store, opener.labels, DS_EPISODE_CANCELLED)) return status;
    if (const ds_status status = store->open_track(-1, &made->track_)) return status;
    *recorder = std::move(made);
    return DS_STATUS_OK;
}

void QueueRecorder::submitted(const ds_episode_request* requests, const uint64_t* ids, uint64_t count,
                              int64_t start_ns) {
    submitted_->add(static_cast<int64_t>(count));
    if (!track_) return;
    for (uint64_t i = 0; i < count; ++i) {
        if (requests[i].record & DS_RECORD_TRACE) track_->record_request(DS_TRACE_REQUEST_SUBMITTED, start_ns, ids[i]);
    }
    track_->record_span(DS_TRACE_SUBMIT, start_ns, monotonic_ns(), static_cast<int64_t>(count));
}

void QueueRecorder::answered(const ds_episode_output& result, bool traced, int64_t start_ns) {
    answers_.record(result);
    if (track_ && traced) track_->record_request(DS_TRACE_REQUEST_ENDED, start_ns, result.id, result.reason);
}

void QueueRecorder::answered_some(int64_t start_ns, int64_t count) {
    if (track_) track_->record_span(DS_TRACE_ANSWER, start_ns, monotonic_ns(), count);
}

// ---- Replicas ----

ds_status ReplicaRecorder::create(const Ref<MetricsStore>& store, const RolloutLabels& labels, int64_t num_worlds,
                                  int64_t num_policies, std::unique_ptr<ReplicaRecorder>* recorder) {
    std::unique_ptr<ReplicaRecorder> made(new (std::nothrow) ReplicaRecorder(store, labels, num_worlds));
    if (!made || !made->policies_.take(num_policies)) return fail_recorder_memory();
    if (const ds_status status = made->open()) return status;
    *recorder = std::move(made);
    return DS_STATUS_OK;
}

ds_status ReplicaRecorder::open() {
    Opener opener = {*store_, labels_};
    opener.open(RolloutSeries::episodes_begun, &episodes_begun_);
    opener.open(RolloutSeries::steps, &steps_);
    opener.open(RolloutSeries::episode_steps, &episode_steps_);
    opener.open(RolloutSeries::world_steps, &world_steps_);
    opener.open(RolloutSeries::nonfinite_actions, &nonfinite_actions_);
    opener.open(RolloutSeries::dropped_series, &dropped_series_);
    opener.open(RolloutSeries::queue_wait_seconds, &queue_wait_);
    opener.open(RolloutSeries::first_step_seconds, &first_step_);
    opener.open(RolloutSeries::batch_fill, &batch_fill_);
    opener.open(RolloutSeries::begin_seconds, &begin_);
    opener.open(RolloutSeries::step_seconds, &step_);
    opener.open(RolloutSeries::active_worlds, &active_worlds_);
    opener.open(RolloutSeries::waiting_requests, &waiting_requests_);
    if (opener.status) return opener.status;
    if (const ds_status status = answers_.open(*store_, labels_, DS_EPISODE_GOAL)) return status;
    return store_->open_track(labels_.replica, &track_);
}

void ReplicaRecorder::label_policy(int64_t policy, const char* labels) {
    PolicyTimes& of = policies_[policy];
    if (strcmp(of.labels, labels) == 0) return;
    strcpy(of.labels, labels);
    for (Writer<Sketch>& times : of.times) times.close();
    std::fill_n(of.is_opened, kPolicyKinds, false);
}

ds_status ReplicaRecorder::open_times(int64_t policy, ds_policy_kind kind, Writer<Sketch>* times) {
    const char* labels = policies_[policy].labels;
    char own[64], all[sizeof ds_series_info::labels];
    const char* name = kPolicyKindNames[kind];
    if (*labels) snprintf(own, sizeof own, "kind=\"%s\"", name);
    else snprintf(own, sizeof own, "kind=\"%s\",policy=\"%ld\"", name, policy);
    if (const ds_status status = merge_labels(own, labels, all)) return status;
    Opener opener = {*store_, labels_};
    opener.open(RolloutSeries::policy_seconds, times, all);
    return opener.status;
}

// A replica plays on without a series that cannot be opened.
Writer<Sketch>& ReplicaRecorder::times_of(int64_t policy, ds_policy_kind kind) {
    DS_ASSERT(kind >= 0 && kind < kPolicyKinds);
    PolicyTimes& of = policies_[policy];
    if (!std::exchange(of.is_opened[kind], true) && open_times(policy, kind, &of.times[kind])) dropped_series_->add(1);
    return of.times[kind];
}

void ReplicaRecorder::took(int64_t start_ns, int64_t count) {
    if (track_ && count > 0) track_->record_span(DS_TRACE_TAKE, start_ns, monotonic_ns(), count);
}

void ReplicaRecorder::episode_begun(const Request& request, int64_t now_ns) {
    queue_wait_->add(seconds(now_ns - request.submitted_ns), now_ns);
    const bool traced = request.asked.record & DS_RECORD_TRACE;
    if (track_ && traced) track_->record_request(DS_TRACE_REQUEST_BEGUN, now_ns, request.id);
}

void ReplicaRecorder::begun(int64_t start_ns, int64_t count) {
    const int64_t now = monotonic_ns();
    episodes_begun_->add(count);
    begin_->add(seconds(now - start_ns), now);
    if (track_) track_->record_span(DS_TRACE_BEGIN, start_ns, now, count);
}

void ReplicaRecorder::passed(int64_t waiting_requests, int64_t active_worlds) {
    const int64_t now = monotonic_ns();
    waiting_requests_->add(static_cast<double>(waiting_requests), now);
    active_worlds_->add(static_cast<double>(active_worlds), now);
}

void ReplicaRecorder::acted(int64_t policy, ds_policy_kind kind, int64_t start_ns, int64_t end_ns, int64_t rows) {
    Writer<Sketch>& times = times_of(policy, kind);
    DS_ASSERT(start_ns <= end_ns && rows > 0);
    if (times) times->add(seconds(end_ns - start_ns), end_ns);
    if (track_) track_->record_span(DS_TRACE_ACT, start_ns, end_ns, rows, static_cast<int32_t>(policy));
}

void ReplicaRecorder::stepped(int64_t start_ns, int64_t active_worlds) {
    const int64_t now = monotonic_ns();
    DS_ASSERT(start_ns <= now && active_worlds > 0 && active_worlds <= num_worlds_);
    steps_->add(1);
    episode_steps_->add(active_worlds);
    world_steps_->add(num_worlds_);
    step_->add(seconds(now - start_ns), now);
    batch_fill_->add(static_cast<double>(active_worlds) / static_cast<double>(num_worlds_), now);
    if (track_) track_->record_span(DS_TRACE_STEP, start_ns, now, active_worlds);
}

void ReplicaRecorder::made_first_step(const Request& request, int64_t now_ns) {
    DS_ASSERT(request.in_use);
    first_step_->add(seconds(now_ns - request.submitted_ns), now_ns);
}

void ReplicaRecorder::answered(const ds_episode_output& result, bool traced) {
    answers_.record(result);
    if (track_ && traced) track_->record_request(DS_TRACE_REQUEST_ENDED, result.ended_ns, result.id, result.reason);
}

void ReplicaRecorder::ended(int64_t start_ns, int64_t count) {
    if (track_) track_->record_span(DS_TRACE_END, start_ns, monotonic_ns(), count);
}

void ReplicaRecorder::waited(int64_t start_ns) {
    if (track_) track_->record_span(DS_TRACE_WAIT, start_ns, monotonic_ns(), 0);
}

}  // namespace doorstep
