// Requests, from their submission until their results have been received. A request has its result in itself.
#pragma once

#include <stdint.h>

#include "doorstep.h"
#include "exec/saved_state.h"
#include "math/threefry.h"
#include "rollouts/recorders.h"
#include "runtime/fork_mutex.h"
#include "runtime/memory.h"
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

// Memory that goes with an output, or with rows that await actions, on the host.
class OutputMemory final : public Memory {
public:
    // Null if memory ran out.
    static Ref<OutputMemory> make(int64_t bytes);
    ~OutputMemory() override;

    ds_status read(const void* start, int64_t bytes, void* host) override;
    ds_status write(void* start, int64_t bytes, const void* host) override;
    ds_status order(uint64_t stream) override;

private:
    OutputMemory(char* data, int64_t bytes) : Memory(data, bytes, DS_DEVICE_CPU, 0) {}
};

// What is recorded of an episode; see ds_episode_output.
struct Trajectory {
    Ref<OutputMemory> memory;  // null: nothing
    int32_t capacity = 0;      // steps
    int32_t state_size = 0;    // floats of a state
};

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

class OutputQueue;

enum class RequestState : uint8_t {
    kFree,
    kWaiting,  // in the heaps of the request queue
    kPlaying,  // a replica has it
    kBegun,    // all of its n episodes have begun, each as a request of its own
    kAnswered  // all outputs are made
};

// A request that has been accepted. One with several episodes is copied when each of them begins.
struct Request {
    ds_episode_request asked{};
    RequestParts parts;
    Ref<OutputQueue> outputs;
    int64_t submitted_ns = 0;
    uint64_t id = 0;
    uint64_t sequence = 0;  // in the order of submission
    int64_t key = 0;        // the scheduler's; smaller is earlier
    int64_t place = 0, deadline_place = 0;  // in heaps
    int32_t lane = 0;                       // of the request queue
    RequestState state = RequestState::kFree;
    bool cancelled = false;

    // ---- Its episodes
    Request* parent = nullptr;  // of one of several episodes: the request that was submitted
    int32_t holders = 0;        // itself and the episodes whose parent it is
    int32_t num_playing = 0;    // of these episodes, those without a result
    int32_t begun = 0;          // episodes that have begun
    int32_t continuation = 0;   // the number of its first episode that it has a result of
    int32_t num_agents = 0;

    // ---- Its outputs: steps, then results: of its episode, or of those that will not begin. The replica that plays it
    // writes its result: until that is answered, readers of steps look at nothing of it.
    ds_episode_output result{};
    Trajectory trajectory;
    int32_t steps_made = 0, results_made = 0;
    int32_t delivered = 0, received = 0;  // of all outputs: the first ones that were taken; how many have been received
    bool is_listed = false;               // among those of its output queue that have outputs nobody has taken
    Request* next = nullptr;        // there, or of those that are free
    Request* next_taken = nullptr;  // of those that a replica has taken together

    int32_t num_episodes() const { return asked.n > 1 ? asked.n : 1; }
    int32_t num_outputs() const { return steps_made + results_made; }
    int32_t num_unread() const { return num_outputs() - delivered; }
    bool is_received() const { return state == RequestState::kAnswered && received == num_outputs(); }
    bool is_cancelled() const { return cancelled || (parent && parent->cancelled); }
    bool has_expired(int64_t now_ns) const { return asked.deadline_ns != 0 && asked.deadline_ns <= now_ns; }
    bool is_over(int64_t now_ns) const { return is_cancelled() || has_expired(now_ns); }
    // Writes what all its outputs say.
    void begin_output(ds_output_kind kind, ds_episode_output* output) const;
    // Writes one of its outputs, without `data`.
    void write_output(int32_t place, ds_episode_output* output) const;
    // Of the actions of its policies. Counters of actions have agents in place of the last number.
    RandomKey sampling_key() const {
        const RandomKey key = base_key(static_cast<uint32_t>(asked.sampling_seed));
        return continuation ? split(key, static_cast<uint32_t>(continuation), UINT32_MAX) : key;
    }
};

// The memory of all requests of an engine, and the lock of what waits and of outputs.
class RequestTable : public RefCounted {
public:
    RequestTable();
    ~RequestTable();

    // By which its ids are known from those of other tables; at least 1.
    const uint32_t number;
    // It was forked with its process: its engine has no threads here.
    bool is_copy() const { return forks_ != num_forks(); }

    // Guards all requests that no replica plays, what is said of cancellation, and the queues of requests and outputs.
    ForkMutex mutex;

    // ---- With the mutex held
    Request* allocate();  // null if memory ran out
    // The outputs of a request have been received, or nobody receives them.
    void free(Request* request);
    Request* find(uint64_t id);
    // Calls function(request) for all that are not free.
    template <class Function>
    void for_each(const Function& function) const {
        for (uint32_t i = 0; i < num_made_; ++i) {
            if (at(i)->state != RequestState::kFree) function(*at(i));
        }
    }
    // Requests that are taken from now on have policy `by` in place of `index`.
    void replace_policy(int64_t index, int64_t by) { replaced_by_[index] = static_cast<int16_t>(by - index); }
    int32_t replacement_of(int32_t index) const { return index + replaced_by_[index]; }
    uint64_t sequence = 0;         // of the next request
    uint64_t num_deliveries = 0;  // of which each has a number
    int64_t unanswered = 0;        // episodes without a result
    bool has_ended = false;        // its engine: no more results come
    // Null: nothing is recorded. Set before there are requests.
    std::unique_ptr<QueueRecorder> recorder;

    // ---- Without it
    Signal arrivals;  // something to take, an answer of a caller, or the end: replicas sleep here
    Signal room;      // for requests
    // Changes whenever a request that is being played is cancelled.
    std::atomic<uint32_t> cancellations{0};

private:
    static constexpr uint32_t kChunk = 16384;  // requests
    static constexpr uint32_t kChunks = 2 * DS_MAX_QUEUE_CAPACITY / kChunk;

    Request* at(uint32_t index) const {
        return reinterpret_cast<Request*>(chunks_[index / kChunk].data()) + index % kChunk;
    }
    Request* make();
    void release(Request* request);

    const uint32_t forks_;

    Pages chunks_[kChunks];  // requests never move
    uint32_t num_made_ = 0;  // requests
    Request* free_ = nullptr;
    int16_t replaced_by_[DS_MAX_POLICIES] = {};  // by policy; less its own number
};

}  // namespace doorstep
