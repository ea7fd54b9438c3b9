// Requests from their submission to their result.
#pragma once

#include <stdint.h>

#include <memory>

#include "doorstep.h"
#include "exec/saved_state.h"
#include "math/threefry.h"
#include "rollouts/recorders.h"
#include "runtime/fork_mutex.h"
#include "runtime/reference.h"
#include "runtime/signal.h"

namespace doorstep {

// A level that any number of requests play.
class SharedLevel : public LiveObject<DS_LIVE_ROLLOUT> {
public:
    SharedLevel(const ds_level& level, int64_t num_agents) : level(level), num_agents(num_agents) {}

    const ds_level level;
    const int64_t num_agents;  // that it was checked for
};

// What a request refers to.
struct RequestParts {
    Ref<SharedLevel> level;
    Ref<SavedState> state;
};

class RequestQueue;
struct InterruptedEpisode;

// What a request is called: the table that has it, its place there, and how often that has been used before, so that
// neither another table nor an old id finds it.
namespace request_id {

constexpr int32_t kIndexBits = 25, kUseBits = 27, kTableBits = 12;
static_assert(kIndexBits + kUseBits + kTableBits == 64);
static_assert(int64_t{1} << kIndexBits == 2 * int64_t{DS_MAX_QUEUE_CAPACITY});

constexpr uint64_t make(uint32_t table, uint32_t index) { return uint64_t{table} << (64 - kTableBits) | index; }
constexpr uint32_t table_of(uint64_t id) { return static_cast<uint32_t>(id >> (64 - kTableBits)); }
constexpr uint32_t index_of(uint64_t id) { return static_cast<uint32_t>(id & ((uint64_t{1} << kIndexBits) - 1)); }
// Of the next request in the same place.
constexpr uint64_t next(uint64_t id) {
    constexpr uint64_t kUses = ((uint64_t{1} << kUseBits) - 1) << kIndexBits;
    return (id & ~kUses) | ((id + (uint64_t{1} << kIndexBits)) & kUses);
}

}  // namespace request_id

// A request that has been accepted. It waits in a queue, or is over there; or a replica plays it. Its result gives it
// back to the table.
struct Request {
    Request();
    ~Request();

    ds_episode_request asked{};
    RequestParts parts;
    std::unique_ptr<InterruptedEpisode> interrupted;  // null: it begins, or is being played
    int64_t submitted_ns = 0;
    uint64_t sequence = 0;          // in the order of submission
    int64_t key = 0;                // the scheduler's; smaller is earlier
    RequestQueue* queue = nullptr;  // where it waits; null: it does not
    Request* next = nullptr;        // in a list
    Request* previous = nullptr;    // in a RequestList
    int64_t place = 0;              // in the heap of its queue's order
    int64_t deadline_place = 0;     // in that of deadlines
    int64_t streamed = 0;           // steps that have been output
    uint64_t id = 0;
    int32_t lane = 0;               // of its queue
    int32_t branch = 0;             // that it was moved to
    int32_t reason = 0;             // ds_episode_reason, of one that is over
    bool in_use = false, cancelled = false;
    bool answered = false;          // its result will be pushed, or has been

    // How its world begins, as long as what it refers to lives.
    EpisodeStart start() const;
    // Of the actions of its policies. Counters of actions have agents in place of the last number.
    RandomKey sampling_key() const {
        const RandomKey key = base_key(static_cast<uint32_t>(asked.sampling_seed));
        return asked.continuation ? split(key, static_cast<uint32_t>(asked.continuation), UINT32_MAX) : key;
    }
    bool has_expired(int64_t now_ns) const { return asked.deadline_ns != 0 && asked.deadline_ns <= now_ns; }
    bool is_over(int64_t now_ns) const { return cancelled || has_expired(now_ns); }
};

// The memory of the requests of queues between which requests move, and their lock.
class RequestTable : public RefCounted {
public:
    RequestTable();
    ~RequestTable();

    // By which its ids are known from those of other tables; at least 1.
    const uint32_t number;

    // Guards all requests that no replica plays, their `cancelled` and `answered`, and their queues.
    ForkMutex mutex;

    // With the mutex held:
    Request* take_free();  // null if memory ran out
    void give_back(Request* request);
    Request* find(uint64_t id);
    // Requests that are taken from now on have policy `by` in place of `index`.
    void replace_policy(int64_t index, int64_t by) { replaced_by_[index] = static_cast<int16_t>(by - index); }
    int32_t replacement_of(int32_t index) const { return index + replaced_by_[index]; }
    // The next number of a submission.
    uint64_t next_sequence() { return sequence_++; }
    // Requests in use.
    int64_t unanswered() const { return in_use_; }

    // Changes whenever a request that is being played is cancelled.
    uint32_t cancellations() const { return cancellations_.load(std::memory_order_acquire); }
    void count_cancellation() { cancellations_.fetch_add(1, std::memory_order_release); }

    Signal room;      // in any queue
    Signal answered;  // all requests
    // Null: nothing is recorded. Set before there are requests, and used with the mutex held.
    std::unique_ptr<QueueRecorder> recorder;

private:
    static constexpr uint32_t kChunk = 4096;  // requests
    static constexpr uint32_t kChunks = 2 * DS_MAX_QUEUE_CAPACITY / kChunk;

    bool grow();

    Request* chunks_[kChunks] = {};  // requests never move
    uint32_t num_chunks_ = 0;
    int64_t in_use_ = 0;
    Request* free_ = nullptr;
    uint64_t sequence_ = 0;
    int16_t replaced_by_[DS_MAX_POLICIES] = {};  // by policy; less its own number
    std::atomic<uint32_t> cancellations_{0};
};

}  // namespace doorstep
