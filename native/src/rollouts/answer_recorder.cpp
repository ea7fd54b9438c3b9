#include "rollouts/answer_recorder.h"

#include <stdio.h>

namespace doorstep {
namespace {

constexpr const char* kReasonNames[] = {"goal", "time", "cancelled", "expired", "failed"};
constexpr const char* kCauseNames[] = {"memory", "simulation", "logits", "caller"};

int32_t place_of_cause(int64_t cause) {
    return cause == DS_CAUSE_MEMORY ? 0 : cause == DS_CAUSE_SIMULATION ? 1 : cause <= DS_CAUSE_LOGITS ? 2 : 3;
}

}  // namespace

ds_status AnswerRecorder::open(MetricsStore& store, const RolloutLabels& labels, ds_episode_reason first_reason) {
    char own[64];
    for (int32_t reason = first_reason; reason < kReasons; ++reason) {
        snprintf(own, sizeof own, "reason=\"%s\"", kReasonNames[reason]);
        if (const ds_status status = open_writer(store, RolloutSeries::latency_seconds, labels, own, &latencies_[reason])) {
            return status;
        }
        if (reason == DS_EPISODE_FAILED) break;
        if (const ds_status status = open_writer(store, RolloutSeries::requests_answered, labels, own, &answered_[reason])) {
            return status;
        }
    }
    for (int32_t cause = 0; cause < kCauses; ++cause) {
        snprintf(own, sizeof own, "cause=\"%s\",reason=\"failed\"", kCauseNames[cause]);
        if (const ds_status status = open_writer(store, RolloutSeries::requests_answered, labels, own, &failed_[cause])) {
            return status;
        }
    }
    return DS_STATUS_OK;
}

void AnswerRecorder::record(const ds_episode_output& result) {
    const bool failed = result.reason == DS_EPISODE_FAILED;
    (failed ? failed_[place_of_cause(result.cause)] : answered_[result.reason])->add(1);
    latencies_[result.reason]->add(static_cast<double>(result.ended_ns - result.submitted_ns) * 1e-9, result.ended_ns);
}

}  // namespace doorstep
