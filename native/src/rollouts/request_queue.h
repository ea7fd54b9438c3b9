// Requests that wait, in the order in which a scheduler wants them. Any number of threads submit and take.
//
// A request waits in the lane of the replica that is to play it, or in that of all. What is cancelled or has expired is
// answered where it is found.
#pragma once

#include "rollouts/outputs.h"
#include "rollouts/request_heap.h"

namespace doorstep {

// What its configuration says about a queue.
struct QueueRules {
    ds_scheduler_config scheduler;
    ds_controller controller;
    WorldKind worlds;
    int64_t episode_length;
    int64_t num_policies;
    int64_t capacity;  // requests that wait
    OutputLimits outputs;
};

// Since its creation.
struct QueueCounts {
    int64_t submitted, waiting, unanswered;
};

class RequestQueue : public LiveObject<DS_LIVE_ROLLOUT> {
public:
    RequestQueue(const QueueRules& rules, Ref<RequestTable> table) : rules_(rules), table_(std::move(table)) {}
    ~RequestQueue();

    const QueueRules& rules() const { return rules_; }
    RequestTable& table() const { return *table_; }
    // Null: nothing is recorded.
    Ref<MetricsStore> metrics() const { return table_->recorder ? table_->recorder->store() : Ref<MetricsStore>(); }

    // ---- As the functions of the C API
    Ref<OutputQueue> open_outputs(bool is_limited) const;
    // parts: one per request; null: no request has any.
    ds_status submit(const Ref<OutputQueue>& outputs, const ds_episode_request* requests, RequestParts* parts,
                     uint64_t count, int64_t timeout_ns, uint64_t* ids, uint64_t* accepted);
    bool cancel(uint64_t id);
    void replace_policy(int64_t index, int64_t by);
    QueueCounts counts();
    uint64_t read_tags(uint64_t most, uint64_t* tags);
    // Refuses further requests. Those that wait can still be taken.
    void close();

    // ---- For replicas, by their numbers
    void open_lane(int64_t replica);
    // Others play its requests.
    void close_lane(int64_t replica);
    // The scheduler's first requests, each for one episode, linked by `next_taken`. Returns how many there are.
    int64_t take(int64_t replica, int64_t most, int64_t now_ns, Request** first);
    bool has_some(int64_t replica);
    int64_t waiting();
    // A step of an episode that is streamed has been recorded.
    void output_step(Request* request);
    // The results of requests that were taken are known, and in them.
    void answer(Request* const* requests, int64_t count);
    // A request that was taken waits again, whatever the capacity.
    void take_back(Request* request);
    // Answers all requests that wait: the engine has ended, and no other call answers any.
    void end(ds_failure_cause cause);

private:
    static constexpr uint64_t kSubmittedAtOnce = 1024;  // with the lock held
    static constexpr int kKinds = 2;                    // of output queues: limited, and not
    using Lane = RequestHeap<&Request::place>;

    // All with the mutex held. Lane 0 is that of all replicas.
    uint64_t submit_some(const Ref<OutputQueue>& outputs, const ds_episode_request* requests, RequestParts* parts,
                         uint64_t count, uint64_t* ids);
    bool reserve(int64_t lane, bool is_limited, bool has_deadline);
    void set_key(Request* request);
    int64_t lane_of(const ds_episode_request& request);
    Lane& lane_with(const Request& request) { return lanes_[request.lane][request.outputs->is_limited()]; }
    void insert(Request* request);
    void remove(Request* request);
    Request* first(int64_t replica) const;
    Request* begin_episode(Request* request);
    void replace_policies(Request* request) const;
    void answer_expired(int64_t now_ns);
    void answer_unplayed(Request* request, ds_episode_reason reason, int64_t now_ns,
                         ds_failure_cause cause = DS_CAUSE_NONE);

    const QueueRules rules_;
    const Ref<RequestTable> table_;  // its mutex guards everything below

    Lane lanes_[1 + DS_MAX_REPLICAS][kKinds];
    RequestHeap<&Request::deadline_place> deadlines_;  // of those that have one
    bool is_open_[DS_MAX_REPLICAS] = {};               // by replica
    int64_t num_replicas_ = 0;                         // whose lanes have ever been open
    int64_t turn_ = 0;                                 // ROUND_ROBIN: the replica that gets the next request
    // FAIR_SHARE: tags of start-time fair queuing, in steps
    int64_t shares_[DS_MAX_POLICIES] = {}, served_share_ = 0;
    int64_t waiting_ = 0, playing_ = 0, submitted_ = 0;
    bool closed_ = false;
};

}  // namespace doorstep
