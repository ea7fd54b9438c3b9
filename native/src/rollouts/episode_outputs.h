// Outputs of the episodes that a replica plays, on their way to the output queue: streamed steps, and results.
//
// They are collected over a pass and pushed together. A request ends when its result is in the queue: until then it can
// be taken back, and none is answered twice. Where the queue has no room for the next one, those before it are pushed, and
// the replica sleeps.
#pragma once

#include "rollouts/answers.h"
#include "rollouts/caller_rows.h"
#include "rollouts/pause.h"
#include "rollouts/recorders.h"
#include "rollouts/recordings.h"

namespace doorstep {

class EpisodeOutputs {
public:
    // recorder: null: nothing is recorded.
    EpisodeOutputs(Episodes* episodes, CallerRows* callers, Recordings* recordings, Pause* pause,
                   const Ref<RequestQueue>& requests, const Ref<OutputQueue>& queue, int32_t replica,
                   ReplicaRecorder* recorder)
        : episodes_(*episodes),
          callers_(*callers),
          recordings_(*recordings),
          pause_(*pause),
          requests_(*requests),
          queue_(queue),
          replica_(replica),
          recorder_(recorder) {}
    OutputQueue& queue() const { return *queue_; }
    // Room for an output of each world.
    bool take_memory() {
        return outputs_.take(episodes_.num_worlds()) && played_.take(episodes_.num_worlds());
    }

    // The latest step of an episode. One that is played again, because another replica gave it back, does not tell its
    // steps again. The episode is marked if memory ran out for its row. OUT_OF_MEMORY: for the queue.
    ds_status add_step(int64_t world);
    // Before results: start_ns: when these episodes were found to end, for metrics.
    void begin_results(int64_t start_ns) { start_ns_ = start_ns; }
    // Of an episode that is marked. OUT_OF_MEMORY.
    ds_status add_result(int64_t world, const EpisodeSummary& summary, bool is_strict);
    // Steps, or results: their requests end, and their worlds are free.
    void push();
    // There was no room when the replica was closed, and no output is added any more.
    bool has_stopped() const { return has_stopped_; }

private:
    Output make(int64_t world, ds_output_kind kind, Ref<OutputMemory> data) const;
    ds_status add(int64_t world, Output output);
    ds_status keep_room(const Output& output);
    void push_steps();
    void push_results();

    Episodes& episodes_;
    CallerRows& callers_;
    Recordings& recordings_;
    Pause& pause_;
    RequestQueue& requests_;
    const Ref<OutputQueue> queue_;
    const int32_t replica_;
    ReplicaRecorder* const recorder_;
    Array<Output> outputs_;
    Array<PlayedRequest> played_;  // of the outputs
    int64_t size_ = 0;
    int64_t start_ns_ = 0;
    bool has_stopped_ = false;
};

}  // namespace doorstep
