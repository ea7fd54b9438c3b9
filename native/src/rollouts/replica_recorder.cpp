#include "rollouts/replica_recorder.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <new>
#include <utility>

#include "metrics/labels.h"
#include "runtime/futex.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

constexpr const char* kPolicyKindNames[] = {"caller", "random", "idle", "native"};

double seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

}  // namespace

// ---- Creation ----

ds_status ReplicaRecorder::create(const Ref<MetricsStore>& store, const RolloutLabels& labels, int64_t num_worlds,
                                  int64_t num_policies, std::unique_ptr<ReplicaRecorder>* recorder) {
    std::unique_ptr<ReplicaRecorder> made(new (std::nothrow) ReplicaRecorder(store, labels, num_worlds));
    if (made) {
        made->policies_.reset(new (std::nothrow) PolicyTimes[static_cast<size_t>(num_policies)]());
    }
    if (!made || !made->policies_) {
        return fail(DS_STATUS_OUT_OF_MEMORY, "", "raise the memory limit", "no memory is left for metrics");
    }
    if (const ds_status status = made->open()) return status;
    *recorder = std::move(made);
    return DS_STATUS_OK;
}

ds_status ReplicaRecorder::open() {
    ds_status status = DS_STATUS_OK;
    const auto open_one = [&](RolloutSeries which, auto* writer) {
        if (!status) status = open_writer(*store_, which, labels_, "", writer);
    };
    open_one(RolloutSeries::episodes_begun, &episodes_begun_);
    open_one(RolloutSeries::steps, &steps_);
    open_one(RolloutSeries::episode_steps, &episode_steps_);
    open_one(RolloutSeries::world_steps, &world_steps_);
    open_one(RolloutSeries::nonfinite_actions, &nonfinite_actions_);
    open_one(RolloutSeries::dropped_series, &dropped_series_);
    open_one(RolloutSeries::queue_wait_seconds, &queue_wait_);
    open_one(RolloutSeries::first_step_seconds, &first_step_);
    open_one(RolloutSeries::batch_fill, &batch_fill_);
    open_one(RolloutSeries::begin_seconds, &begin_);
    open_one(RolloutSeries::step_seconds, &step_);
    open_one(RolloutSeries::active_worlds, &active_worlds_);
    open_one(RolloutSeries::waiting_requests, &waiting_requests_);
    if (!status) status = answers_.open(*store_, labels_, DS_EPISODE_GOAL);
    if (!status) status = store_->open_track(labels_.replica, &track_);
    return status;
}

// ---- Policies ----

void ReplicaRecorder::label_policy(int64_t policy, const char* labels) {
    PolicyTimes& of = policies_[static_cast<size_t>(policy)];
    if (strcmp(of.labels, labels) == 0) return;
    strcpy(of.labels, labels);
    for (Writer<Sketch>& times : of.times) times.close();
    std::fill_n(of.is_opened, kPolicyKinds, false);
}

ds_status ReplicaRecorder::open_times(int64_t policy, ds_policy_kind kind, Writer<Sketch>* times) {
    const char* labels = policies_[static_cast<size_t>(policy)].labels;
    char own[64], all[sizeof ds_series_info::labels];
    snprintf(own, sizeof own, "kind=\"%s\"", kPolicyKindNames[kind]);
    if (!*labels) snprintf(own, sizeof own, "kind=\"%s\",policy=\"%lld\"", kPolicyKindNames[kind], static_cast<long long>(policy));
    if (const ds_status status = merge_labels(own, labels, all)) return status;
    return open_writer(*store_, RolloutSeries::policy_seconds, labels_, all, times);
}

// A replica plays on without a series that cannot be opened.
Writer<Sketch>& ReplicaRecorder::times_of(int64_t policy, ds_policy_kind kind) {
    PolicyTimes& of = policies_[static_cast<size_t>(policy)];
    if (!std::exchange(of.is_opened[kind], true) && open_times(policy, kind, &of.times[kind])) dropped_series_->add(1);
    return of.times[kind];
}

// ---- A pass ----

void ReplicaRecorder::took(int64_t start_ns, int64_t count) {
    if (track_ && count > 0) track_->record_span(DS_TRACE_TAKE, start_ns, monotonic_ns(), count);
}

void ReplicaRecorder::episode_begun(const Request& request, int64_t now_ns) {
    queue_wait_->add(seconds(now_ns - request.submitted_ns), now_ns);
    awaits_first_steps_ = true;
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
    if (times) times->add(seconds(end_ns - start_ns), end_ns);
    if (track_) track_->record_span(DS_TRACE_ACT, start_ns, end_ns, rows, static_cast<int32_t>(policy));
}

void ReplicaRecorder::stepped(int64_t start_ns, int64_t active_worlds) {
    const int64_t now = monotonic_ns();
    steps_->add(1);
    episode_steps_->add(active_worlds);
    world_steps_->add(num_worlds_);
    step_->add(seconds(now - start_ns), now);
    batch_fill_->add(static_cast<double>(active_worlds) / static_cast<double>(num_worlds_), now);
    if (track_) track_->record_span(DS_TRACE_STEP, start_ns, now, active_worlds);
}

void ReplicaRecorder::made_first_step(const Request& request, int64_t now_ns) {
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
