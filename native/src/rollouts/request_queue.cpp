#include "rollouts/request_queue.h"

#include <algorithm>
#include <bit>

#include "runtime/status.h"

namespace doorstep {
namespace {

ds_status fail_closed_queue() {
    return fail(DS_STATUS_CLOSED, "engine", "make a new engine", "the engine was closed");
}

ds_status fail_queue_memory() {
    return fail(DS_STATUS_OUT_OF_MEMORY, "requests", "submit fewer requests at a time, or raise the memory limit",
                "no memory is left for requests that wait");
}

// Integers that are in the order of the numbers.
int64_t in_order(double key) {
    const int64_t bits = std::bit_cast<int64_t>(key + 0.);  // of -0 those of 0
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

}  // namespace

RequestQueue::RequestQueue(const QueueRules& rules, Ref<RequestTable> table) : rules_(rules), table_(std::move(table)) {}

RequestQueue::RequestQueue(const Ref<RequestQueue>& source, int64_t capacity)
    : rules_([&] {
          QueueRules rules = source->rules_;
          rules.capacity = capacity;
          return rules;
      }()),
      source_(source),
      table_(Ref<RequestTable>::share(&source->table())) {
    DS_ASSERT(!source->source_);
}

RequestQueue::~RequestQueue() {
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

// ---- Order ----

void RequestQueue::order(Request* request) const {
    const ds_episode_request& asked = request->asked;
    request->lane = 0;
    request->key = 0;
    switch (rules_.scheduler.type) {
    case DS_SCHEDULER_PRIORITY: request->key = -asked.priority; break;
    case DS_SCHEDULER_EARLIEST_DEADLINE: request->key = asked.deadline_ns ? asked.deadline_ns : INT64_MAX; break;
    case DS_SCHEDULER_LEAST_REMAINING_STEPS: request->key = asked.max_steps ? asked.max_steps : INT64_MAX; break;
    case DS_SCHEDULER_CALLER: request->key = in_order(asked.key); break;
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
    DS_ASSERT(request->in_use && !request->queue && !request->answered);
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
    DS_ASSERT(counts_agree());
    return true;
}

void RequestQueue::remove(Request* request) {
    DS_ASSERT(request->queue == this && waiting_ > 0);
    if (has_heap()) heap_.remove(request);
    else lanes_[request->lane].remove(request);
    if (request->asked.deadline_ns) deadlines_.remove(request);
    request->queue = nullptr;
    --waiting_;
    DS_ASSERT(counts_agree());
}

bool RequestQueue::counts_agree() const {
    int64_t listed = heap_.size();
    for (int64_t lane = 0; lane < num_lanes(); ++lane) listed += lanes_[lane].size();
    return listed == waiting_ && deadlines_.size() <= waiting_ && playing_ >= 0;
}

template <class Function>
void RequestQueue::remove_if(const Function& function) {
    struct {
        RequestQueue* self;
        const Function& function;
        bool matches(Request* request) const { return function.matches(request); }
        void removed(Request* request) const {
            DS_ASSERT(request->queue == self && self->waiting_ > 0);
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
    DS_ASSERT(!request->cancelled && !request->answered);
    remove(request);
    served_steps_ = given_steps_[request->lane];
    given_steps_[request->lane] += steps_of(*request);
    if (!request->interrupted) replace_policies(request);
    return request;
}

void RequestQueue::replace_policies(Request* request) const {
    for (int64_t agent = 0; agent < rules_.worlds.num_agents; ++agent) {
        int32_t& policy = request->asked.policies[agent];
        policy = table_->replacement_of(policy);
    }
}

// ---- Requests that are over without being played ----

void RequestQueue::end_without_play(Request* request, int32_t reason) {
    DS_ASSERT(request->in_use && !request->queue && !request->answered);
    DS_ASSERT(reason == DS_EPISODE_CANCELLED || reason == DS_EPISODE_EXPIRED || reason == DS_EPISODE_FAILED);
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

ds_status RequestQueue::submit(const ds_episode_request* requests, RequestParts* parts, uint64_t count,
                               int64_t timeout_ns, uint64_t* ids, uint64_t* accepted) {
    const TimeLimit limit(timeout_ns);
    *accepted = 0;
    for (;;) {
        const uint32_t before = table_->room.now();
        uint64_t some;
        bool full, was_full;
        {
            MutexGuard guard(table_->mutex);
            if (closed_) return fail_closed_queue();
            some = submit_some(requests + *accepted, parts ? parts + *accepted : nullptr,
                               std::min(count - *accepted, kSubmittedAtOnce), ids + *accepted);
            was_full = waiting_ >= rules_.capacity;
            distribute(monotonic_ns());
            full = waiting_ >= rules_.capacity;
        }
        *accepted += some;
        if (some > 0) wake();
        if (*accepted == count) return DS_STATUS_OK;
        if (some == 0 && !was_full) return fail_queue_memory();
        if (!full) continue;
        const int64_t left = limit.left_ns();
        if (left == 0) return DS_STATUS_PENDING;
        table_->room.wait(before, left);
    }
}

// As many as there is room and memory for.
uint64_t RequestQueue::submit_some(const ds_episode_request* requests, RequestParts* parts, uint64_t count,
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
        if (parts) request->parts = std::move(parts[done]);
        DS_ASSERT(request_id::table_of(request->id) == table_->number && waiting_ <= rules_.capacity);
        ids[done] = request->id;
        ++submitted_;
    }
    if (table_->recorder) table_->recorder->submitted(requests, ids, done, now);
    return done;
}

// ---- Branches ----

void RequestQueue::open_branch() {
    {
        MutexGuard guard(table_->mutex);
        DS_ASSERT(source_ && source_->num_branches_ < DS_MAX_REPLICAS);
        source_->branches_[source_->num_branches_++] = this;
        source_->distribute(monotonic_ns());
    }
    table_->room.tell();
}

// Moves requests on, in the scheduler's order, as far as there is room for the next one.
void RequestQueue::distribute(int64_t now_ns) {
    if (num_branches_ == 0) return;
    set_aside_expired(now_ns);
    bool got_some[DS_MAX_REPLICAS] = {};
    while (Request* request = first()) {
        RequestQueue* branch = branch_for(request);
        if (!branch) break;
        take_first();
        const bool inserted = branch->insert(request);
        DS_ASSERT(inserted);
        (void)inserted;
        got_some[request->branch] = true;
    }
    for (int64_t i = 0; i < num_branches_; ++i) {
        if (got_some[i]) branches_[i]->wake();
    }
}

// The branch that the request goes to, in whose turn it is or as it says; null if there is no room.
RequestQueue* RequestQueue::branch_for(Request* request) {
    const int64_t chosen = rules_.requests_choose ? request->asked.replica : -1;
    const bool may_choose = chosen >= 0 && chosen < num_branches_ && !branches_[chosen]->closed_;
    for (int64_t i = 0; i < num_branches_; ++i) {
        const int64_t place = may_choose ? chosen : (turn_ + i) % num_branches_;
        RequestQueue* branch = branches_[place];
        if (!branch->has_room(request->asked.deadline_ns != 0)) {
            if (may_choose) return nullptr;
            continue;
        }
        if (!may_choose) turn_ = place + 1;
        request->branch = static_cast<int32_t>(place);
        return branch;
    }
    return nullptr;
}

// Room and memory.
bool RequestQueue::has_room(bool has_deadline) {
    return !closed_ && waiting_ < rules_.capacity && reserve(has_deadline);
}

// Hands over the requests that are over.
void RequestQueue::collect_over(Request** over) {
    while (over_) {
        Request* request = over_;
        over_ = request->next;
        request->next = *over;
        *over = request;
    }
}

// All replicas that may take what is here.
void RequestQueue::wake_all() {
    wake();
    for (int64_t i = 0; i < num_branches_; ++i) branches_[i]->wake();
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
    source_->distribute(monotonic_ns());
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
    queue->wake_all();
    table_->room.tell();
    return true;
}

void RequestQueue::replace_policy(int64_t index, int64_t by) {
    DS_ASSERT(index >= 0 && index < rules_.num_policies && by >= 0 && by < rules_.num_policies);
    MutexGuard guard(table_->mutex);
    table_->replace_policy(index, by);
}

QueueCounts RequestQueue::counts() {
    MutexGuard guard(table_->mutex);
    QueueCounts counts = {submitted_, waiting_, table_->unanswered()};
    for (int64_t i = 0; i < num_branches_; ++i) counts.waiting += branches_[i]->waiting_;
    return counts;
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
    (source_ ? source_.get() : this)->wake_all();
}

// ---- Replicas ----

int64_t RequestQueue::take(int64_t most, int64_t now_ns, Request** to_play, Request** over) {
    int64_t count = 0;
    Request** last = to_play;
    *over = nullptr;
    {
        MutexGuard guard(table_->mutex);
        set_aside_expired(now_ns);
        for (; count < most; ++count) {
            Request* request = take_first();
            if (!request && source_) {
                source_->distribute(now_ns);
                request = take_first();
            }
            if (!request) break;
            DS_ASSERT(!request->queue && !request->next && !request->previous);
            *last = request;
            last = &request->next;
        }
        *last = nullptr;
        if (source_) {
            source_->distribute(now_ns);
            source_->collect_over(over);
        }
        collect_over(over);
        playing_ += count;
    }
    if (count > 0 || *over) table_->room.tell();
    return count;
}

Request* RequestQueue::take_before(const Request& played) {
    Request* taken;
    {
        MutexGuard guard(table_->mutex);
        const Request* waiting = first();
        DS_ASSERT(played.in_use && !played.queue && !played.answered);
        if (!waiting || waiting->key >= played.key) return nullptr;
        taken = take_first();
        DS_ASSERT(taken == waiting && !taken->queue && !taken->next && !taken->previous);
        ++playing_;
    }
    table_->room.tell();
    return taken;
}

void RequestQueue::finish(const PlayedRequest* played, int64_t count) {
    MutexGuard guard(table_->mutex);
    playing_ -= count;
    DS_ASSERT(playing_ >= 0);
    for (int64_t i = 0; i < count; ++i) {
        Request* request = played[i].request;
        DS_ASSERT(request->answered && played[i].steps >= 0);
        given_steps_[request->lane] += played[i].steps - steps_of(*request);
        table_->give_back(request);
    }
}

void RequestQueue::finish_over(Request* first) {
    MutexGuard guard(table_->mutex);
    for (Request* request = first; request;) {
        Request* next = request->next;
        DS_ASSERT(request->answered);
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
        DS_ASSERT(!request->answered && playing_ > 0);
        given_steps_[request->lane] -= steps_of(*request);
        --playing_;
        request->next = request->previous = nullptr;
        if (request->cancelled) home->end_without_play(request, DS_EPISODE_CANCELLED);
        else if (!home->insert(request)) home->end_without_play(request, DS_EPISODE_FAILED);
        home->distribute(monotonic_ns());
    }
    home->wake_all();
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
    for (int64_t i = 0; i < count; ++i) {
        DS_ASSERT(answered[i].request->in_use && !answered[i].request->queue && !answered[i].request->answered);
        answered[i].request->answered = true;
    }
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

int64_t RequestQueue::waiting() {
    MutexGuard guard(table_->mutex);
    return waiting_;
}

bool RequestQueue::has_some() {
    MutexGuard guard(table_->mutex);
    return waiting_ > 0 || over_ || (source_ && source_->over_);
}

}  // namespace doorstep
