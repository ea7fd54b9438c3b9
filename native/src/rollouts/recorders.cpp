#include "rollouts/recorders.h"

#include <algorithm>
#include <new>
#include <utility>

#include "rollouts/request.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

constexpr int32_t kCauseVariants[] = {DS_CAUSE_MEMORY, DS_CAUSE_SIMULATION, DS_CAUSE_LOGITS, 1};

int32_t place_of_cause(int64_t cause) {
    DS_ASSERT(cause != DS_CAUSE_NONE);
    int32_t place = 0;
    while (place < 3 && kCauseVariants[place] != cause) ++place;
    return place;
}

double seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

ds_status fail_recorder_memory() {
    return fail(DS_STATUS_OUT_OF_MEMORY, "", "raise the memory limit", "no memory is left for metrics");
}

}  // namespace

// ---- All writers ----

Recorder::Recorder(const Ref<MetricsStore>& store, const RolloutLabels& labels, ds_episode_reason first_reason)
    : store_(store), labels_(labels) {
    for (int32_t reason = first_reason; reason < kReasons; ++reason) {
        need(DS_METRIC_LATENCY_SECONDS, &latencies_[reason], reason);
        if (reason != DS_EPISODE_FAILED) need(DS_METRIC_REQUESTS_ANSWERED, &answered_[reason], reason);
    }
    for (int32_t cause = 0; cause < kCauses; ++cause) {
        need(DS_METRIC_REQUESTS_ANSWERED, &failed_[cause], DS_EPISODE_FAILED, kCauseVariants[cause]);
    }
    if (store->trace_capacity()) need(DS_METRIC_TRACE, &track_);
}

void Recorder::count(const ds_episode_output& result) {
    DS_ASSERT(result.reason >= 0 && result.reason < kReasons && result.ended_ns >= result.submitted_ns);
    const bool failed = result.reason == DS_EPISODE_FAILED;
    (failed ? failed_[place_of_cause(result.cause)] : answered_[result.reason])->add(1);
    latencies_[result.reason]->add(seconds(result.ended_ns - result.submitted_ns), result.ended_ns);
    if (!track_ || !(result.record & DS_RECORD_TRACE)) return;
    track_->record_request(DS_TRACE_REQUEST_ENDED, result.ended_ns, result.id, result.reason);
}

// ---- Queues ----

QueueRecorder::QueueRecorder(const Ref<MetricsStore>& store, int32_t scheduler)
    : Recorder(store, {scheduler, -1}, DS_EPISODE_CANCELLED) {
    need(DS_METRIC_REQUESTS_SUBMITTED, &submitted_);
}

ds_status QueueRecorder::create(const Ref<MetricsStore>& store, int32_t scheduler,
                                std::unique_ptr<QueueRecorder>* recorder) {
    recorder->reset(new (std::nothrow) QueueRecorder(store, scheduler));
    return *recorder ? (*recorder)->status_ : fail_recorder_memory();
}

void QueueRecorder::submitted(const ds_episode_request* requests, const uint64_t* ids, uint64_t count,
                              int64_t start_ns) {
    int64_t episodes = 0;
    for (uint64_t i = 0; i < count; ++i) episodes += std::max(requests[i].n, 1);
    submitted_->add(episodes);
    for (uint64_t i = 0; track_ && i < count; ++i) {
        if (requests[i].record & DS_RECORD_TRACE) track_->record_request(DS_TRACE_REQUEST_SUBMITTED, start_ns, ids[i]);
    }
    record_span_until_now(DS_TRACE_SUBMIT, start_ns, static_cast<int64_t>(count));
}

void QueueRecorder::answered(const ds_episode_output& result, int32_t episodes) {
    for (int32_t i = 0; i < episodes; ++i) count(result);
    record_span_until_now(DS_TRACE_ANSWER, result.ended_ns, episodes);
}

// ---- Replicas ----

ReplicaRecorder::ReplicaRecorder(const Ref<MetricsStore>& store, const RolloutLabels& labels, int64_t num_worlds)
    : Recorder(store, labels, DS_EPISODE_GOAL), num_worlds_(num_worlds) {
    need(DS_METRIC_EPISODES_BEGUN, &episodes_begun_);
    need(DS_METRIC_STEPS, &steps_);
    need(DS_METRIC_EPISODE_STEPS, &episode_steps_);
    need(DS_METRIC_WORLD_STEPS, &world_steps_);
    need(DS_METRIC_NONFINITE_ACTIONS, &nonfinite_actions_);
    need(DS_METRIC_DROPPED_SERIES, &dropped_series_);
    need(DS_METRIC_QUEUE_WAIT_SECONDS, &queue_wait_);
    need(DS_METRIC_FIRST_STEP_SECONDS, &first_step_);
    need(DS_METRIC_BATCH_FILL, &batch_fill_);
    need(DS_METRIC_BEGIN_SECONDS, &begin_);
    need(DS_METRIC_STEP_SECONDS, &step_);
    need(DS_METRIC_ACTIVE_WORLDS, &active_worlds_);
    need(DS_METRIC_WAITING_REQUESTS, &waiting_requests_);
}

ds_status ReplicaRecorder::create(const Ref<MetricsStore>& store, const RolloutLabels& labels, int64_t num_worlds,
                                  std::unique_ptr<ReplicaRecorder>* recorder) {
    std::unique_ptr<ReplicaRecorder> made(new (std::nothrow) ReplicaRecorder(store, labels, num_worlds));
    if (!made || !made->policies_.take(DS_MAX_POLICY_SERIES * kPolicyKinds)) return fail_recorder_memory();
    *recorder = std::move(made);
    return (*recorder)->status_;
}

// Null: a replica plays on without a series that cannot be opened.
Sketch* ReplicaRecorder::times_of(int32_t series, ds_policy_kind kind) {
    DS_ASSERT(series >= 0 && series < DS_MAX_POLICY_SERIES && kind >= 0 && kind < kPolicyKinds);
    PolicyTimes& of = policies_[series * kPolicyKinds + kind];
    if (!std::exchange(of.is_opened, true) && open(DS_METRIC_POLICY_SECONDS, &of.times, series, kind)) {
        dropped_series_->add(1);
    }
    return of.times;
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
    record_span(DS_TRACE_BEGIN, start_ns, now, count);
}

void ReplicaRecorder::passed(int64_t waiting_requests, int64_t active_worlds) {
    const int64_t now = monotonic_ns();
    waiting_requests_->add(static_cast<double>(waiting_requests), now);
    active_worlds_->add(static_cast<double>(active_worlds), now);
}

void ReplicaRecorder::acted(int64_t policy, int32_t series, ds_policy_kind kind, int64_t start_ns, int64_t end_ns,
                            int64_t rows) {
    DS_ASSERT(start_ns <= end_ns && rows > 0);
    if (Sketch* times = times_of(series, kind)) times->add(seconds(end_ns - start_ns), end_ns);
    record_span(DS_TRACE_ACT, start_ns, end_ns, rows, static_cast<int32_t>(policy));
}

void ReplicaRecorder::stepped(int64_t start_ns, int64_t active_worlds) {
    const int64_t now = monotonic_ns();
    DS_ASSERT(start_ns <= now && active_worlds > 0 && active_worlds <= num_worlds_);
    steps_->add(1);
    episode_steps_->add(active_worlds);
    world_steps_->add(num_worlds_);
    step_->add(seconds(now - start_ns), now);
    batch_fill_->add(static_cast<double>(active_worlds) / static_cast<double>(num_worlds_), now);
    record_span(DS_TRACE_STEP, start_ns, now, active_worlds);
}

void ReplicaRecorder::made_first_step(const Request& request, int64_t now_ns) {
    first_step_->add(seconds(now_ns - request.submitted_ns), now_ns);
}

}  // namespace doorstep
