// Requests that wait, in the order in which a scheduler wants them. Any number of threads submit and take.
#pragma once

#include "rollouts/output_queue.h"
#include "rollouts/request_heap.h"
#include "rollouts/request_list.h"

namespace doorstep {

// A request that a replica has played, and for how many steps.
struct PlayedRequest {
    Request* request;
    int64_t steps;
};

// What its configuration says about a queue.
struct QueueRules {
    ds_scheduler_config scheduler;
    bool plays_levels;
    int64_t num_agents, num_policies;
    int64_t capacity;  // requests that wait
};

class RequestQueue : public RefCounted {
public:
    // source: the queue whose requests are moved here, or null.
    RequestQueue(const QueueRules& rules, const Ref<RequestQueue>& source, Ref<RequestTable> table);
    ~RequestQueue();

    const QueueRules& rules() const { return rules_; }
    const Ref<RequestQueue>& source() const { return source_; }
    RequestTable& table() const { return *table_; }
    // Null: nothing is recorded.
    Ref<MetricsStore> metrics() const { return table_->recorder ? table_->recorder->store() : Ref<MetricsStore>(); }

    // ---- As the functions of the C API
    // levels: one per request, or null ones; null: no request has one.
    ds_status submit(const ds_episode_request* requests, Ref<SharedLevel>* levels, uint64_t count, int64_t timeout_ns,
                     uint64_t* ids, uint64_t* accepted);
    ds_status move(const Ref<RequestQueue>* targets, uint64_t num_targets, uint64_t first, uint64_t most,
                   int64_t timeout_ns, uint64_t* moved);
    bool cancel(uint64_t id);
    void read(ds_request_queue_info* info);
    ds_status drain(int64_t timeout_ns);
    void close();

    // ---- For replicas
    // Takes the scheduler's first requests, and all that are over, whose number is not limited; both lists are linked
    // by `next`. Returns how many are to be played.
    int64_t take(int64_t most, int64_t now_ns, Request** to_play, Request** over);
    // The results of requests that were taken are known: their ids end.
    void finish(const PlayedRequest* played, int64_t count);
    // Those of a list of requests that are over.
    void finish_over(Request* first);
    // A request that was taken waits again, whatever the capacity.
    void take_back(Request* request);
    // A list of requests that are over has not been answered.
    void take_back_over(Request* first);

    // The results of requests will be pushed: they can be cancelled no more.
    void begin_answers(const PlayedRequest* answered, int64_t count);
    // Likewise, and records the results, of requests that no replica played.
    void record_answers(const PlayedRequest* answered, const Output* outputs, int64_t count);

    // Sleeps until something may be there to take, or the queue is closed, at most timeout_ns.
    void wait(int64_t timeout_ns);
    bool is_closed_and_empty();
    int64_t waiting();
    // For a thread that waits in wait(), when it shall look at other things.
    void wake() { arrivals_.tell(); }

private:
    static constexpr int64_t kUnlimitedSteps = 200;         // assumed of requests without a limit, until their end
    static constexpr uint64_t kSubmittedAtOnce = 1024;      // with the lock held

    bool has_heap() const {
        const int32_t type = rules_.scheduler.type;
        return type == DS_SCHEDULER_PRIORITY || type == DS_SCHEDULER_EARLIEST_DEADLINE ||
               type == DS_SCHEDULER_LEAST_REMAINING_STEPS;
    }
    int64_t num_lanes() const { return rules_.scheduler.type == DS_SCHEDULER_FAIR_SHARE ? rules_.num_policies : 1; }
    static int64_t steps_of(const Request& request) {
        return request.asked.max_steps > 0 ? request.asked.max_steps : kUnlimitedSteps;
    }

    // All with the mutex held.
    uint64_t submit_some(const ds_episode_request* requests, Ref<SharedLevel>* levels, uint64_t count, uint64_t* ids);
    uint64_t move_some(const Ref<RequestQueue>* targets, uint64_t num_targets, uint64_t first, uint64_t most,
                       bool* all_closed);
    void order(Request* request) const;
    bool reserve(bool has_deadline);
    bool insert(Request* request);
    void remove(Request* request);
    Request* first() const;
    Request* first_by_share() const;
    Request* take_first();
    void start_share(int32_t lane);
    void set_aside_expired(int64_t now_ns);
    void end_without_play(Request* request, int32_t reason);
    void return_to_source();
    template <class Function>
    void remove_if(const Function& function);

    const QueueRules rules_;
    const Ref<RequestQueue> source_;
    const Ref<RequestTable> table_;  // its mutex guards everything below

    RequestHeap<&Request::place> heap_;                // of the schedulers with keys
    RequestHeap<&Request::deadline_place> deadlines_;  // of those that have one
    RequestList lanes_[DS_MAX_POLICIES];         // of the others
    int64_t given_steps_[DS_MAX_POLICIES] = {};  // FAIR_SHARE: per lane
    int64_t served_steps_ = 0;                   // given_steps_ of the lane that was last served
    int64_t waiting_ = 0, playing_ = 0;          // playing_: taken, without a result
    int64_t submitted_ = 0, taken_ = 0;
    Request* over_ = nullptr;                    // to be answered without being played
    bool closed_ = false;
    Signal arrivals_;                            // something to take, or the end
};

}  // namespace doorstep
