// Counts the results of requests by reason and cause, and measures how long they took.
#pragma once

#include "metrics/sketch.h"
#include "rollouts/rollout_series.h"

namespace doorstep {

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

}  // namespace doorstep
