// What queues between which requests move record: submissions, and results of requests that no replica played. The
// recording thread holds the lock of their requests.
#pragma once

#include "rollouts/answer_recorder.h"

namespace doorstep {

class QueueRecorder {
public:
    static ds_status create(const Ref<MetricsStore>& store, int32_t scheduler, std::unique_ptr<QueueRecorder>* recorder);

    const Ref<MetricsStore>& store() const { return store_; }

    // start_ns: when it began.
    void submitted(const ds_episode_request* requests, const uint64_t* ids, uint64_t count, int64_t start_ns);
    void answered(const ds_episode_output& result, bool traced, int64_t start_ns);
    void answered_some(int64_t start_ns, int64_t count);

private:
    explicit QueueRecorder(const Ref<MetricsStore>& store) : store_(store) {}

    const Ref<MetricsStore> store_;
    Writer<Counter> submitted_;
    AnswerRecorder answers_;
    Ref<TraceTrack> track_;
};

}  // namespace doorstep
