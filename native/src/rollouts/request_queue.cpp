#include "rollouts/request_queue.h"

#include <algorithm>

#include "runtime/status.h"

namespace doorstep {
namespace {

ds_status fail_closed_queue(const char* argument) {
    return fail(DS_STATUS_CLOSED, argument, "make a new engine", "the queue is closed");
}

ds_status fail_queue_memory() {
    return fail(DS_STATUS_OUT_OF_MEMORY, "requests", "submit fewer requests at a time, or raise the memory limit",
                "no memory is left for requests that wait");
}

}  // namespace

RequestQueue::RequestQueue(const QueueRules& rules, const Ref<RequestQueue>& source, Ref<RequestTable> table)
    : rules_(rules), source_(source), table_(std::move(table)) {
    live_counts.rollouts.fetch_add(1, std::memory_order_relaxed);
}

RequestQueue::~RequestQueue() {
    {
        MutexGuard guard(table_->mutex);
        struct {
            RequestQueue* self;
            bool matches(Request*) const { return true; }
            void removed(Request* request) const { self->end_without_play(request, DS_EPISODE_CANCELLED); }
        } all{this};
        remove_if(all);
        while (over_) {
            Request* request = over_;
            over_ = request->next;
            table_->give_back(request);
        }
    }
    live_counts.rollouts.fetch_sub(1, std::memory_order_relaxed);
}

// ---- Order ----

void RequestQueue::order(Request* request) const {
    const ds_episode_request& asked = request->asked;
    request->lane = 0;
    request->key = 0;
    switch (rules_.scheduler.type) {
    case DS_SCHEDULER_PRIORITY: request->key = -asked.priority; break;
    case DS_SCHEDULER_EARLIEST_DEADLINE: request->key = asked.deadline_ns ? asked.deadline_ns : INT64_MAX; break;
    case DS_SCHEDULER_LEAST_REMAINING_STEPS: request->key = asked.max_steps ? asked.max_steps : INT64_MAX; break;
    case DS_SCHEDULER_FAIR_SHARE: request->lane = asked.policies[0]; break;
    default: break;
    }
}

// Room for one more, and for those that are played, which may be taken back. False if memory ran out.
bool RequestQueue::reserve(bool has_deadline) {
    const int64_t most = waiting_ + playing_ + 1;
    return (!has_heap() || heap_.reserve(most)) && (!has_deadline || deadlines_.reserve(most));
}

// False if memory ran out.
bool RequestQueue::insert(Request* request) {
    const int64_t deadline = request->asked.deadline_ns;
    if (!reserve(deadline != 0)) return false;
    order(request);
    if (deadline) deadlines_.insert(request, deadline);
    if (has_heap()) {
        heap_.insert(request, request->key);
    } else {
        if (lanes_[request->lane].size() == 0) start_share(request->lane);
        lanes_[request->lane].insert(request);
    }
    request->queue = this;
    ++waiting_;
    return true;
}

void RequestQueue::remove(Request* request) {
    DS_ASSERT(request->queue == this);
    if (has_heap()) heap_.remove(request);
    else lanes_[request->lane].remove(request);
    if (request->asked.deadline_ns) deadlines_.remove(request);
    request->queue = nullptr;
    --waiting_;
}

template <class Function>
void RequestQueue::remove_if(const Function& function) {
    struct {
        RequestQueue* self;
        const Function& function;
        bool matches(Request* request) const { return function.matches(request); }
        void removed(Request* request) const {
            if (request->asked.deadline_ns) self->deadlines_.remove(request);
            request->queue = nullptr;
            --self->waiting_;
            function.removed(request);
        }
    } counted{this, function};
    if (has_heap()) return heap_.remove_if(counted);
    for (int64_t lane = 0; lane < num_lanes(); ++lane) lanes_[lane].remove_if(counted);
}

Request* RequestQueue::first() const {
    if (has_heap()) return heap_.first();
    return num_lanes() == 1 ? lanes_[0].first() : first_by_share();
}

Request* RequestQueue::first_by_share() const {
    Request* best = nullptr;
    for (int64_t lane = 0; lane < num_lanes(); ++lane) {
        Request* candidate = lanes_[lane].first();
        if (!candidate) continue;
        const int64_t more = best ? given_steps_[lane] - given_steps_[best->lane] : -1;
        if (more < 0 || (more == 0 && candidate->sequence < best->sequence)) best = candidate;
    }
    return best;
}

// What a lane did not ask for while it was empty gives it no claim now.
void RequestQueue::start_share(int32_t lane) { given_steps_[lane] = std::max(given_steps_[lane], served_steps_); }

// The first request that is to be played, after set_aside_expired().
Request* RequestQueue::take_first() {
    Request* request = first();
    if (!request) return nullptr;
    remove(request);
    served_steps_ = given_steps_[request->lane];
    given_steps_[request->lane] += steps_of(*request);
    ++taken_;
    return request;
}

// ---- Requests that are over without being played ----

void RequestQueue::end_without_play(Request* request, int32_t reason) {
    DS_ASSERT(!request->queue);
    request->reason = reason;
    request->next = over_;
    over_ = request;
}

void RequestQueue::set_aside_expired(int64_t now_ns) {
    while (Request* request = deadlines_.first()) {
        if (!request->has_expired(now_ns)) return;
        remove(request);
        end_without_play(request, DS_EPISODE_EXPIRED);
    }
}

// ---- Submission ----

ds_status RequestQueue::submit(const ds_episode_request* requests, Ref<SharedLevel>* levels, uint64_t count,
                               int64_t timeout_ns, uint64_t* ids, uint64_t* accepted) {
    const TimeLimit limit(timeout_ns);
    *accepted = 0;
    for (;;) {
        const uint32_t before = table_->room.now();
        uint64_t some;
        bool full;
        {
            MutexGuard guard(table_->mutex);
            if (closed_) return fail_closed_queue("queue");
            some = submit_some(requests + *accepted, levels ? levels + *accepted : nullptr,
                               std::min(count - *accepted, kSubmittedAtOnce), ids + *accepted);
            full = waiting_ >= rules_.capacity;
        }
        *accepted += some;
        if (some > 0) wake();
        if (*accepted == count) return DS_STATUS_OK;
        if (!full) {
            if (some == 0) return fail_queue_memory();
            continue;
        }
        const int64_t left = limit.left_ns();
        if (left == 0) return DS_STATUS_PENDING;
        table_->room.wait(before, left);
    }
}

// As many as there is room and memory for.
uint64_t RequestQueue::submit_some(const ds_episode_request* requests, Ref<SharedLevel>* levels, uint64_t count,
                                   uint64_t* ids) {
    const int64_t now = monotonic_ns();
    uint64_t done = 0;
    for (; done < count && waiting_ < rules_.capacity; ++done) {
        Request* request = table_->take_free();
        if (!request) break;
        request->asked = requests[done];
        request->submitted_ns = now;
        request->sequence = table_->next_sequence();
        if (!insert(request)) {
            table_->give_back(request);
            break;
        }
        if (levels) request->level = std::move(levels[done]);
        ids[done] = request->id;
        ++submitted_;
    }
    if (table_->recorder) table_->recorder->submitted(requests, ids, done, now);
    return done;
}

// ---- Movement ----

ds_status RequestQueue::move(const Ref<RequestQueue>* targets, uint64_t num_targets, uint64_t first, uint64_t most,
                             int64_t timeout_ns, uint64_t* moved) {
    const TimeLimit limit(timeout_ns);
    *moved = 0;
    for (;;) {
        const uint32_t arrivals = arrivals_.now(), room = table_->room.now();
        bool all_closed = false, is_empty;
        {
            MutexGuard guard(table_->mutex);
            *moved = move_some(targets, num_targets, first, most, &all_closed);
            is_empty = waiting_ == 0;
            if (*moved == 0 && is_empty && closed_) return fail_closed_queue("queue");
        }
        if (all_closed) return fail_closed_queue("targets");
        for (uint64_t i = 0; i < num_targets; ++i) targets[i]->wake();
        if (*moved > 0) {
            table_->room.tell();
            return DS_STATUS_OK;
        }
        const int64_t left = limit.left_ns();
        if (left == 0) return DS_STATUS_PENDING;
        if (is_empty) arrivals_.wait(arrivals, left);
        else table_->room.wait(room, left);
    }
}

// Requests that are over go with the others, to whichever queue is open.
uint64_t RequestQueue::move_some(const Ref<RequestQueue>* targets, uint64_t num_targets, uint64_t first, uint64_t most,
                                 bool* all_closed) {
    const int64_t now = monotonic_ns();
    set_aside_expired(now);
    const bool any_deadlines = deadlines_.first() != nullptr;
    uint64_t moved = 0, passed_over = 0, num_closed = 0;
    RequestQueue* open = nullptr;
    for (uint64_t turn = first; passed_over < num_targets; ++turn) {
        RequestQueue& to = *targets[turn % num_targets];
        num_closed = to.closed_ ? num_closed + 1 : 0;
        if (!to.closed_) open = &to;
        const bool has_room = !to.closed_ && to.waiting_ < to.rules_.capacity &&
                              to.reserve(any_deadlines);
        Request* request = has_room && moved < most ? take_first() : nullptr;
        if (!request) {
            ++passed_over;
            continue;
        }
        const bool inserted = to.insert(request);
        DS_ASSERT(inserted);
        (void)inserted;
        passed_over = 0;
        ++moved;
        ++to.submitted_;
    }
    *all_closed = num_closed >= num_targets;
    while (open && over_) {
        Request* request = over_;
        over_ = request->next;
        open->end_without_play(request, request->reason);
    }
    return moved;
}

// Those that find no memory here are over.
void RequestQueue::return_to_source() {
    struct {
        RequestQueue* source;
        bool matches(Request*) const { return true; }
        void removed(Request* request) const {
            if (!source->insert(request)) source->end_without_play(request, DS_EPISODE_FAILED);
        }
    } back{source_.get()};
    remove_if(back);
    while (over_) {
        Request* request = over_;
        over_ = request->next;
        source_->end_without_play(request, request->reason);
    }
}

// ---- Other operations ----

bool RequestQueue::cancel(uint64_t id) {
    MutexGuard guard(table_->mutex);
    Request* request = table_->find(id);
    if (!request || request->answered) return false;
    if (request->cancelled) return true;
    request->cancelled = true;
    RequestQueue* queue = request->queue;
    if (!queue) {
        table_->count_cancellation();  // for the replica that plays it
        return true;
    }
    queue->remove(request);
    queue->end_without_play(request, DS_EPISODE_CANCELLED);
    queue->wake();
    table_->room.tell();
    return true;
}

void RequestQueue::read(ds_request_queue_info* info) {
    MutexGuard guard(table_->mutex);
    info->closed = closed_;
    info->capacity = rules_.capacity;
    info->waiting = waiting_;
    info->submitted = submitted_;
    info->taken = taken_;
    info->unanswered = table_->unanswered();
}

ds_status RequestQueue::drain(int64_t timeout_ns) {
    const TimeLimit limit(timeout_ns);
    for (;;) {
        const uint32_t before = table_->answered.now();
        {
            MutexGuard guard(table_->mutex);
            if (table_->unanswered() == 0) return DS_STATUS_OK;
        }
        const int64_t left = limit.left_ns();
        if (left == 0) return DS_STATUS_PENDING;
        table_->answered.wait(before, left);
    }
}

void RequestQueue::close() {
    {
        MutexGuard guard(table_->mutex);
        closed_ = true;
        if (source_) return_to_source();
    }
    table_->room.tell();
    wake();
    if (source_) source_->wake();
}

// ---- Replicas ----

int64_t RequestQueue::take(int64_t most, int64_t now_ns, Request** to_play, Request** over) {
    int64_t count = 0;
    Request** last = to_play;
    {
        MutexGuard guard(table_->mutex);
        set_aside_expired(now_ns);
        for (; count < most; ++count) {
            Request* request = take_first();
            if (!request) break;
            *last = request;
            last = &request->next;
        }
        *last = nullptr;
        *over = over_;
        over_ = nullptr;
        playing_ += count;
    }
    if (count > 0 || *over) table_->room.tell();
    return count;
}

void RequestQueue::finish(const PlayedRequest* played, int64_t count) {
    MutexGuard guard(table_->mutex);
    playing_ -= count;
    for (int64_t i = 0; i < count; ++i) {
        Request* request = played[i].request;
        given_steps_[request->lane] += played[i].steps - steps_of(*request);
        table_->give_back(request);
    }
}

void RequestQueue::finish_over(Request* first) {
    MutexGuard guard(table_->mutex);
    for (Request* request = first; request;) {
        Request* next = request->next;
        table_->give_back(request);
        request = next;
    }
}

// A closed queue's requests wait in its source, which may have no memory for more of them.
void RequestQueue::take_back(Request* request) {
    RequestQueue* home = this;
    {
        MutexGuard guard(table_->mutex);
        if (closed_ && source_) home = source_.get();
        given_steps_[request->lane] -= steps_of(*request);
        --taken_;
        --playing_;
        if (request->cancelled) home->end_without_play(request, DS_EPISODE_CANCELLED);
        else if (!home->insert(request)) home->end_without_play(request, DS_EPISODE_FAILED);
    }
    home->wake();
}

void RequestQueue::take_back_over(Request* first) {
    {
        MutexGuard guard(table_->mutex);
        for (Request* request = first; request;) {
            Request* next = request->next;
            end_without_play(request, request->reason);
            request = next;
        }
    }
    wake();
}

void RequestQueue::begin_answers(const PlayedRequest* answered, int64_t count) {
    MutexGuard guard(table_->mutex);
    for (int64_t i = 0; i < count; ++i) answered[i].request->answered = true;
}

void RequestQueue::record_answers(const PlayedRequest* answered, const Output* outputs, int64_t count) {
    begin_answers(answered, count);
    MutexGuard guard(table_->mutex);
    if (!table_->recorder) return;
    const int64_t start = monotonic_ns();
    for (int64_t i = 0; i < count; ++i) {
        const bool traced = answered[i].request->asked.record & DS_RECORD_TRACE;
        table_->recorder->answered(outputs[i].told, traced, start);
    }
    table_->recorder->answered_some(start, count);
}

void RequestQueue::wait(int64_t timeout_ns) {
    const uint32_t before = arrivals_.now();
    {
        MutexGuard guard(table_->mutex);
        if (waiting_ > 0 || over_ || closed_) return;
    }
    arrivals_.wait(before, timeout_ns);
}

int64_t RequestQueue::waiting() {
    MutexGuard guard(table_->mutex);
    return waiting_;
}

bool RequestQueue::is_closed_and_empty() {
    MutexGuard guard(table_->mutex);
    return closed_ && waiting_ == 0 && !over_;
}

}  // namespace doorstep
