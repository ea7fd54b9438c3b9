// Outputs of the episodes that a replica plays, on their way to the output queue: streamed steps, and results.
//
// They are collected over a pass and pushed together. A request ends when its result is in the queue: until then it can
// be taken back, and none is answered twice.
#pragma once

#include "rollouts/answers.h"
#include "rollouts/recorders.h"
#include "rollouts/recordings.h"

namespace doorstep {

class EpisodeOutputs {
public:
    // recorder: null: nothing is recorded.
    EpisodeOutputs(Episodes* episodes, Recordings* recordings, const Ref<RequestQueue>& requests,
                   const Ref<OutputQueue>& queue, int32_t replica, ReplicaRecorder* recorder)
        : episodes_(*episodes),
          recordings_(*recordings),
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
    // steps again. The episode is marked if memory ran out.
    void add_step(int64_t world);
    // OUT_OF_MEMORY: the request of none of them has been told a step.
    ds_status push_steps();

    // Of an episode that is marked.
    void add_result(int64_t world, const EpisodeSummary& summary, bool is_strict);
    // Ends their requests. start_ns: of the end of these episodes, for metrics. OUT_OF_MEMORY: no request has ended.
    ds_status push_results(int64_t start_ns);

private:
    Output& add(int64_t world, ds_output_kind kind, Ref<OutputMemory> data);
    void record_results(int64_t start_ns);
    void drop();

    Episodes& episodes_;
    Recordings& recordings_;
    RequestQueue& requests_;
    const Ref<OutputQueue> queue_;
    const int32_t replica_;
    ReplicaRecorder* const recorder_;
    Array<Output> outputs_;
    Array<PlayedRequest> played_;  // of the outputs
    int64_t size_ = 0;
};

}  // namespace doorstep
