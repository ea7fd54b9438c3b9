#include "rollouts/queue_recorder.h"

#include <new>

#include "runtime/futex.h"
#include "runtime/status.h"

namespace doorstep {

ds_status QueueRecorder::create(const Ref<MetricsStore>& store, int32_t scheduler,
                                std::unique_ptr<QueueRecorder>* recorder) {
    std::unique_ptr<QueueRecorder> made(new (std::nothrow) QueueRecorder(store));
    if (!made) return fail(DS_STATUS_OUT_OF_MEMORY, "", "raise the memory limit", "no memory is left for metrics");
    const RolloutLabels labels = {scheduler, -1};
    if (const ds_status status = open_writer(*store, RolloutSeries::requests_submitted, labels, "", &made->submitted_)) {
        return status;
    }
    if (const ds_status status = made->answers_.open(*store, labels, DS_EPISODE_CANCELLED)) return status;
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

}  // namespace doorstep
