#include "rollouts/request_queue.h"

#include <algorithm>
#include <bit>
#include <new>

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

ds_status fail_unread_outputs() {
    return fail(DS_STATUS_INVALID_STATE, "requests",
                "take outputs and then go on, or in another thread while requests are submitted; or raise output_capacity "
                "and output_bytes",
                "this call would wait for ever: unread outputs leave no room for others, and for %ld s no thread has read any",
                OutputQueue::kPatienceNs / 1'000'000'000);
}

// Integers that are in the order of the numbers.
int64_t in_order(double key) {
    const int64_t bits = std::bit_cast<int64_t>(key + 0.);  // of -0 those of 0
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

}  // namespace

// Nobody takes their results: their output queues have ended, or drop what they have.
RequestQueue::~RequestQueue() {
    MutexGuard guard(table_->mutex);
    table_->for_each([&](Request& request) {
        if (request.state != RequestState::kWaiting) return;
        remove(&request);
        request.state = RequestState::kAnswered;
        if (!request.is_listed) table_->free(&request);
    });
}

Ref<OutputQueue> RequestQueue::open_outputs(bool is_limited) const {
    return Ref<OutputQueue>::adopt(new (std::nothrow) OutputQueue(table_, rules_.outputs, is_limited));
}

// ---- Order ----

void RequestQueue::set_key(Request* request) {
    const ds_episode_request& asked = request->asked;
    request->key = 0;
    switch (rules_.scheduler.type) {
    case DS_SCHEDULER_PRIORITY: request->key = -asked.priority; break;
    case DS_SCHEDULER_EARLIEST_DEADLINE: request->key = asked.deadline_ns ? asked.deadline_ns : INT64_MAX; break;
    case DS_SCHEDULER_LEAST_REMAINING_STEPS: request->key = asked.max_steps ? asked.max_steps : INT64_MAX; break;
    case DS_SCHEDULER_CALLER: request->key = in_order(asked.key); break;
    case DS_SCHEDULER_FAIR_SHARE: {
        int64_t& share = shares_[asked.policies[0]];
        request->key = std::max(share, served_share_);
        const int64_t steps = asked.max_steps > 0 ? asked.max_steps : rules_.episode_length;
        share = request->key + steps * request->num_episodes();
        break;
    }
    default: break;
    }
}

int64_t RequestQueue::lane_of(const ds_episode_request& request) {
    if (rules_.controller == DS_CONTROLLER_CALLER && request.replica >= 0 && is_open_[request.replica]) {
        return 1 + request.replica;
    }
    for (int64_t i = 0; rules_.controller == DS_CONTROLLER_ROUND_ROBIN && i < num_replicas_; ++i) {
        const int64_t replica = turn_;
        turn_ = (turn_ + 1) % num_replicas_;
        if (is_open_[replica]) return 1 + replica;
    }
    return 0;
}

// Room for one more, and for all in the lane of all replicas: those that are played may be taken back, and lanes close.
// False if memory ran out.
bool RequestQueue::reserve(int64_t lane, bool is_limited, bool has_deadline) {
    const int64_t most = waiting_ + playing_ + 1;
    Lane& heap = lanes_[lane][is_limited];
    return lanes_[0][is_limited].reserve(most) && heap.reserve(heap.size() + 1) && (!has_deadline || deadlines_.reserve(most));
}

void RequestQueue::insert(Request* request) {
    DS_ASSERT(request->state == RequestState::kWaiting);
    lane_with(*request).insert(request, request->key);
    if (request->asked.deadline_ns) deadlines_.insert(request, request->asked.deadline_ns);
    ++waiting_;
}

void RequestQueue::remove(Request* request) {
    DS_ASSERT(request->state == RequestState::kWaiting && waiting_ > 0);
    lane_with(*request).remove(request);
    if (request->asked.deadline_ns) deadlines_.remove(request);
    --waiting_;
}

// Of the lanes of a replica and of all, less those whose outputs wait to be read.
Request* RequestQueue::first(int64_t replica) const {
    Request* best = nullptr;
    for (const int64_t lane : {int64_t{0}, 1 + replica}) {
        for (const Lane& heap : lanes_[lane]) {
            Request* const candidate = heap.first();
            if (!candidate || candidate->outputs->is_full()) continue;
            const bool is_earlier = !best || candidate->key < best->key ||
                                    (candidate->key == best->key && candidate->sequence < best->sequence);
            if (is_earlier) best = candidate;
        }
    }
    return best;
}

// ---- Submission ----

ds_status RequestQueue::submit(const Ref<OutputQueue>& outputs, const ds_episode_request* requests, RequestParts* parts,
                               uint64_t count, int64_t timeout_ns, uint64_t* ids, uint64_t* accepted) {
    const TimeLimit limit(timeout_ns);
    *accepted = 0;
    for (;;) {
        const uint32_t before = table_->room.now();
        uint64_t some;
        bool is_full, is_stuck;
        {
            MutexGuard guard(table_->mutex);
            if (closed_) return fail_closed_queue();
            const bool was_full = waiting_ >= rules_.capacity;
            some = submit_some(outputs, requests + *accepted, parts ? parts + *accepted : nullptr,
                               std::min(count - *accepted, kSubmittedAtOnce), ids + *accepted);
            if (some == 0 && !was_full) return fail_queue_memory();
            is_full = waiting_ >= rules_.capacity;
            is_stuck = is_full && outputs->is_stuck(monotonic_ns());
        }
        *accepted += some;
        if (some > 0) table_->arrivals.tell();
        if (*accepted == count) return DS_STATUS_OK;
        if (!is_full) continue;
        const int64_t left = limit.left_ns();
        if (left == 0) return DS_STATUS_PENDING;
        if (is_stuck) return fail_unread_outputs();
        table_->room.wait(before, left < 0 ? OutputQueue::kPatienceNs : std::min(left, OutputQueue::kPatienceNs));
    }
}

// As many as there is room and memory for.
uint64_t RequestQueue::submit_some(const Ref<OutputQueue>& outputs, const ds_episode_request* requests,
                                   RequestParts* parts, uint64_t count, uint64_t* ids) {
    const int64_t now = monotonic_ns();
    uint64_t done = 0;
    int64_t episodes = 0;
    for (; done < count && waiting_ < rules_.capacity; ++done) {
        const ds_episode_request& asked = requests[done];
        const int64_t lane = lane_of(asked);
        Request* const request = reserve(lane, outputs->is_limited(), asked.deadline_ns != 0) ? table_->allocate() : nullptr;
        if (!request) break;
        request->asked = asked;
        if (parts) request->parts = std::move(parts[done]);
        request->outputs = outputs;
        request->submitted_ns = now;
        request->sequence = table_->sequence++;
        request->lane = static_cast<int32_t>(lane);
        request->num_agents = rules_.worlds.num_agents;
        set_key(request);
        insert(request);
        ids[done] = request->id;
        episodes += request->num_episodes();
    }
    submitted_ += static_cast<int64_t>(done);
    table_->unanswered += episodes;
    outputs->expect(episodes);
    if (table_->recorder) table_->recorder->submitted(requests, ids, done, now);
    return done;
}

// ---- Requests that are answered without being played ----

void RequestQueue::answer_expired(int64_t now_ns) {
    while (Request* request = deadlines_.first()) {
        if (!request->has_expired(now_ns)) return;
        remove(request);
        answer_unplayed(request, DS_EPISODE_EXPIRED, now_ns);
    }
}

// All its episodes that have not begun. It waits no longer.
void RequestQueue::answer_unplayed(Request* request, ds_episode_reason reason, int64_t now_ns, ds_failure_cause cause) {
    const int32_t episodes = request->num_episodes() - request->begun;
    if (!request->parent) request->continuation = request->begun;
    ds_episode_output& result = request->result;
    request->begin_output(DS_OUTPUT_RESULT, &result);
    result.ended_ns = std::max(now_ns, request->submitted_ns);  // the clock is read before the lock is taken
    result.reason = reason;
    result.cause = cause;
    if (table_->recorder) table_->recorder->answered(result, episodes);
    request->results_made = episodes;
    table_->unanswered -= episodes;
    request->state = RequestState::kAnswered;
    if (request->parent) --request->parent->num_playing;
    request->outputs->push(request, episodes);
}

bool RequestQueue::cancel(uint64_t id) {
    {
        MutexGuard guard(table_->mutex);
        Request* request = table_->find(id);
        if (!request) return false;
        const bool is_waiting = request->state == RequestState::kWaiting;
        const bool is_playing = request->state == RequestState::kPlaying || request->num_playing > 0;
        if (!is_waiting && !is_playing) return false;
        request->cancelled = true;
        if (is_playing) table_->cancellations.fetch_add(1, std::memory_order_release);
        if (is_waiting) {
            remove(request);
            answer_unplayed(request, DS_EPISODE_CANCELLED, monotonic_ns());
        }
    }
    table_->room.tell();
    return true;
}

void RequestQueue::end(ds_failure_cause cause) {
    {
        MutexGuard guard(table_->mutex);
        const int64_t now = monotonic_ns();
        for (auto& lane : lanes_) {
            for (Lane& heap : lane) {
                while (Request* request = heap.first()) {
                    remove(request);
                    if (request->is_cancelled()) answer_unplayed(request, DS_EPISODE_CANCELLED, now);
                    else if (request->has_expired(now)) answer_unplayed(request, DS_EPISODE_EXPIRED, now);
                    else answer_unplayed(request, DS_EPISODE_FAILED, now, cause);
                }
            }
        }
        table_->has_ended = true;
    }
    table_->room.tell();
}

// ---- Other operations ----

void RequestQueue::replace_policy(int64_t index, int64_t by) {
    DS_ASSERT(index >= 0 && index < rules_.num_policies && by >= 0 && by < rules_.num_policies);
    MutexGuard guard(table_->mutex);
    table_->replace_policy(index, by);
}

QueueCounts RequestQueue::counts() {
    MutexGuard guard(table_->mutex);
    return {submitted_, waiting_, table_->unanswered};
}

uint64_t RequestQueue::read_tags(uint64_t most, uint64_t* tags) {
    MutexGuard guard(table_->mutex);
    uint64_t count = 0;
    table_->for_each([&](const Request& request) {
        if (count < most) tags[count] = request.asked.tag;
        ++count;
    });
    return count;
}

void RequestQueue::close() {
    {
        MutexGuard guard(table_->mutex);
        closed_ = true;
    }
    table_->room.tell();
}

// ---- Replicas ----

void RequestQueue::open_lane(int64_t replica) {
    MutexGuard guard(table_->mutex);
    is_open_[replica] = true;
    num_replicas_ = std::max(num_replicas_, replica + 1);
}

void RequestQueue::close_lane(int64_t replica) {
    {
        MutexGuard guard(table_->mutex);
        is_open_[replica] = false;
        for (int kind = 0; kind < kKinds; ++kind) {
            while (Request* request = lanes_[1 + replica][kind].first()) {
                lanes_[1 + replica][kind].remove(request);
                request->lane = 0;
                lanes_[0][kind].insert(request, request->key);
            }
        }
    }
    table_->arrivals.tell();
}

int64_t RequestQueue::take(int64_t replica, int64_t most, int64_t now_ns, Request** first_taken) {
    int64_t count = 0;
    Request** last = first_taken;
    bool had_room;
    {
        MutexGuard guard(table_->mutex);
        had_room = waiting_ < rules_.capacity;
        answer_expired(now_ns);
        while (count < most) {
            Request* request = first(replica);
            if (!request) break;
            if (request->is_cancelled()) {
                remove(request);
                answer_unplayed(request, DS_EPISODE_CANCELLED, now_ns);
                continue;
            }
            request = begin_episode(request);
            if (!request) break;  // no memory is left: it waits
            *last = request;
            last = &request->next_taken;
            ++count;
        }
        *last = nullptr;
        playing_ += count;
    }
    if (!had_room) table_->room.tell();
    return count;
}

// The request of its next episode; null if memory ran out.
Request* RequestQueue::begin_episode(Request* request) {
    Request* played = request;
    served_share_ = request->key;
    if (request->num_episodes() > 1) {
        const bool has_room = reserve(0, request->outputs->is_limited(), request->asked.deadline_ns != 0);
        played = has_room ? table_->allocate() : nullptr;
        if (!played) return nullptr;
        played->asked = request->asked;
        played->asked.n = 1;
        played->parts = request->parts;
        played->outputs = request->outputs;
        played->submitted_ns = request->submitted_ns;
        played->sequence = request->sequence;
        played->key = request->key;
        played->parent = request;
        played->continuation = request->begun;
        played->num_agents = request->num_agents;
        ++request->holders;
        ++request->num_playing;
    }
    if (++request->begun == request->num_episodes()) {
        remove(request);
        if (played != request) {
            request->state = RequestState::kBegun;
            table_->free(request);
        }
    }
    played->begun = 0;
    played->state = RequestState::kPlaying;
    replace_policies(played);
    return played;
}

void RequestQueue::replace_policies(Request* request) const {
    for (int64_t agent = 0; agent < rules_.worlds.num_agents; ++agent) {
        int32_t& policy = request->asked.policies[agent];
        policy = table_->replacement_of(policy);
    }
}

bool RequestQueue::has_some(int64_t replica) {
    MutexGuard guard(table_->mutex);
    return first(replica) != nullptr;
}

int64_t RequestQueue::waiting() {
    MutexGuard guard(table_->mutex);
    return waiting_;
}

void RequestQueue::output_step(Request* request) {
    MutexGuard guard(table_->mutex);
    ++request->steps_made;
    request->outputs->push(request, 1);
}

void RequestQueue::answer(Request* const* requests, int64_t count) {
    MutexGuard guard(table_->mutex);
    playing_ -= count;
    DS_ASSERT(playing_ >= 0);
    table_->unanswered -= count;
    for (int64_t i = 0; i < count; ++i) {
        Request* const request = requests[i];
        DS_ASSERT(request->state == RequestState::kPlaying && request->results_made == 0);
        request->state = RequestState::kAnswered;
        request->results_made = 1;
        if (request->parent) --request->parent->num_playing;
        request->outputs->push(request, 1);
    }
}

void RequestQueue::take_back(Request* request) {
    {
        MutexGuard guard(table_->mutex);
        DS_ASSERT(request->state == RequestState::kPlaying && playing_ > 0);
        --playing_;
        request->state = RequestState::kWaiting;
        request->lane = 0;
        insert(request);
    }
    table_->arrivals.tell();
}

}  // namespace doorstep
