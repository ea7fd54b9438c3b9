// Requests that wait, in the order in which a scheduler wants them. Any number of threads submit and take.
//
// A queue may have branches, one for each replica. Its requests go there by themselves, as far as there is room: in turn,
// or where each request says. The thread that submits or takes moves them on, with the lock that all these queues share.
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
    WorldKind worlds;
    int64_t episode_length;
    int64_t num_policies;
    int64_t capacity;      // requests that wait
    bool requests_choose;  // their branches
};

// Of a queue and its branches together; requests since its creation.
struct QueueCounts {
    int64_t submitted, waiting, unanswered;
};

class RequestQueue : public LiveObject<DS_LIVE_ROLLOUT> {
public:
    RequestQueue(const QueueRules& rules, Ref<RequestTable> table);
    // A branch of a queue, which lives as long as the queue is used. It gets requests after open_branch().
    RequestQueue(const Ref<RequestQueue>& source, int64_t capacity);
    ~RequestQueue();

    const QueueRules& rules() const { return rules_; }
    RequestTable& table() const { return *table_; }
    // Null: nothing is recorded.
    Ref<MetricsStore> metrics() const { return table_->recorder ? table_->recorder->store() : Ref<MetricsStore>(); }

    void open_branch();

    // ---- As the functions of the C API
    // parts: one per request; null: no request has any.
    ds_status submit(const ds_episode_request* requests, RequestParts* parts, uint64_t count, int64_t timeout_ns,
                     uint64_t* ids, uint64_t* accepted);
    bool cancel(uint64_t id);
    void replace_policy(int64_t index, int64_t by);
    QueueCounts counts();
    ds_status drain(int64_t timeout_ns);
    // Refuses further requests. Those that wait can still be taken; those of a branch wait in its source again.
    void close();

    // ---- For replicas
    // Takes the scheduler's first requests, and all that are over, whose number is not limited; both lists are linked
    // by `next`. Returns how many are to be played.
    int64_t take(int64_t most, int64_t now_ns, Request** to_play, Request** over);
    // The scheduler's first request, if it is earlier than one that is played; else null.
    Request* take_before(const Request& played);
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

    int64_t waiting();
    // There is something to take.
    bool has_some();
    // A replica sleeps until one of these comes, or wake() is called. Takes no lock.
    Signal& arrivals() { return arrivals_; }
    void wake() { arrivals_.tell(); }

private:
    static constexpr int64_t kUnlimitedSteps = 200;         // assumed of requests without a limit, until their end
    static constexpr uint64_t kSubmittedAtOnce = 1024;      // with the lock held

    bool has_heap() const {
        const int32_t type = rules_.scheduler.type;
        return type == DS_SCHEDULER_PRIORITY || type == DS_SCHEDULER_EARLIEST_DEADLINE ||
               type == DS_SCHEDULER_LEAST_REMAINING_STEPS || type == DS_SCHEDULER_CALLER;
    }
    int64_t num_lanes() const { return rules_.scheduler.type == DS_SCHEDULER_FAIR_SHARE ? rules_.num_policies : 1; }
    static int64_t steps_of(const Request& request) {
        return request.asked.max_steps > 0 ? request.asked.max_steps : kUnlimitedSteps;
    }

    // All with the mutex held.
    uint64_t submit_some(const ds_episode_request* requests, RequestParts* parts, uint64_t count, uint64_t* ids);
    void order(Request* request) const;
    bool reserve(bool has_deadline);
    bool insert(Request* request);
    void remove(Request* request);
    bool counts_agree() const;
    Request* first() const;
    Request* first_by_share() const;
    Request* take_first();
    void replace_policies(Request* request) const;
    void start_share(int32_t lane);
    void set_aside_expired(int64_t now_ns);
    void end_without_play(Request* request, int32_t reason);
    void distribute(int64_t now_ns);
    RequestQueue* branch_for(Request* request);
    bool has_room(bool has_deadline);
    void return_to_source();
    void collect_over(Request** over);
    void wake_all();
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
    int64_t submitted_ = 0;
    RequestQueue* branches_[DS_MAX_REPLICAS] = {};
    int64_t num_branches_ = 0;                   // fixed before requests are submitted
    int64_t turn_ = 0;                           // the branch that gets the next request
    Request* over_ = nullptr;                    // to be answered without being played
    bool closed_ = false;
    Signal arrivals_;                            // something to take, or the end
};

}  // namespace doorstep
