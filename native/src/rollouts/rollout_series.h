// The series that queues and replicas record. Their labels: scheduler, and of a replica its number; others are told here.
#pragma once

#include "metrics/store.h"

namespace doorstep {

// X(name, kind, sentence)
#define DS_ROLLOUT_SERIES_TABLE(X)                                                                                        \
    X(requests_submitted, COUNTER, "Requests that were accepted.")                                                       \
    X(requests_answered, COUNTER, "Requests that got their result, by its reason, and the cause of those that failed.")  \
    X(episodes_begun, COUNTER, "Episodes that began; those of a replica that was closed begin again in another.")        \
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

// The labels that a queue, or a replica, has in common.
struct RolloutLabels {
    int32_t scheduler;  // ds_scheduler
    int32_t replica;    // -1: none
};

// The series; first_labels: those before `replica` in the order of names, as cause="x",reason="y", or "".
ds_status open_rollout_series(MetricsStore& store, RolloutSeries which, const RolloutLabels& labels,
                              const char* first_labels, Ref<Series>* series);

// Opens a writer of that series. OUT_OF_MEMORY, INVALID_ARGUMENT.
template <class Kind>
ds_status open_writer(MetricsStore& store, RolloutSeries which, const RolloutLabels& labels, const char* first_labels,
                      Writer<Kind>* writer) {
    Ref<Series> series;
    if (const ds_status status = open_rollout_series(store, which, labels, first_labels, &series)) return status;
    return writer->open(series);
}

}  // namespace doorstep
