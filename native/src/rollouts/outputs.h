// Outputs on their way to those who asked for them: requests with results or steps that nobody has taken, in the order in
// which they came. Making an output neither fails, waits nor allocates: its request is linked.
//
// A delivery is what one call has taken. It is settled by the next call: what its reader received ends, and the rest can be
// taken again. So nothing is lost where an exception ends a call between the library and its user.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <memory>

#include "rollouts/request.h"

namespace doorstep {

// What may wait to be read while replicas begin episodes for it.
struct OutputLimits {
    int64_t outputs, bytes;
};

class OutputQueue : public LiveObject<DS_LIVE_ROLLOUT> {
public:
    OutputQueue(const Ref<RequestTable>& table, const OutputLimits& limits, bool is_limited)
        : table_(table), limits_(limits), is_limited_(is_limited) {}

    RequestTable& table() const { return *table_; }

    // ---- With the table's mutex held
    // Episodes were submitted, or were not after all.
    void expect(int64_t episodes) {
        awaited_ += episodes;
        if (episodes > 0) stuck_since_ns_ = 0;
    }
    // A request has more outputs than before: steps, or results, of which `bytes` are recorded.
    void push(Request* request, int32_t outputs);
    bool is_full() const {
        return is_limited_ && !is_abandoned_ && (unread_ >= limits_.outputs || unread_bytes_ >= limits_.bytes);
    }
    bool is_limited() const { return is_limited_; }
    // A submission of this thread has waited so long for room that only outputs that are read can make; and no other
    // thread has ever taken outputs. One may have been started to do so.
    bool is_stuck(int64_t now_ns);
    static constexpr int64_t kPatienceNs = 5'000'000'000;

    // ---- As the functions of the C API
    // What one call of take() writes. `give` makes a handle of the memory that goes with an output; one for
    // which it fails stays, and ends the call.
    struct Receiver {
        ds_episode_output* outputs;
        uint64_t* count;
        ds_status (*give)(const Ref<OutputMemory>& memory, ds_memory* handle);
    };
    ds_status take(int64_t least, int64_t most, int64_t timeout_ns, ds_delivery* delivery, const Receiver& receiver);
    // Returns the episodes whose result nobody has taken.
    int64_t settle(ds_delivery* delivery);
    // Nobody takes outputs any more.
    void abandon();

private:
    // Outputs of one request, which are in a delivery.
    struct Part {
        Request* request;
        int32_t begin, end;
    };
    // What one call has taken, or what is left of that and can be taken again.
    struct Delivery {
        uint64_t number;
        int64_t num_parts;
        std::unique_ptr<Part[]> parts;
        std::unique_ptr<Delivery> next;
    };

    ds_status take_some(int64_t most, ds_delivery* delivery, const Receiver& receiver);
    // So many outputs have come, or all that are to come, or there is no room for more: at the latest the last result
    // that is to come wakes a reader.
    bool has(int64_t least) const { return unread_ > 0 && (unread_ >= std::min(least, awaited_) || is_full()); }
    Part next_part(int64_t most);
    void put_back(std::unique_ptr<Delivery> delivery, int64_t received);
    void settle_with_lock(ds_delivery* delivery);
    void receive(Request* request, int32_t outputs);
    // Of some outputs of a request, whether they wait to be read.
    void count(const Part& part, int64_t sign);
    void note_reader();
    bool is_empty() const { return !first_ && !returned_; }
    void wake_readers();

    const Ref<RequestTable> table_;  // its mutex guards everything below
    const OutputLimits limits_;
    const bool is_limited_;
    Request *first_ = nullptr, *last_ = nullptr;  // with outputs that nobody has taken
    std::unique_ptr<Delivery> taken_, returned_;
    int64_t awaited_ = 0;  // results that no call has taken
    int64_t unread_ = 0, unread_bytes_ = 0;
    int64_t wanted_ = INT64_MAX;  // outputs, the fewest for which a reader sleeps
    bool is_abandoned_ = false;
    bool has_reader_ = false, has_readers_ = false;  // one, several
    pthread_t reader_{};
    int64_t stuck_since_ns_ = 0;  // from when on submissions wait for a reader; 0: none does
    Signal arrivals_;
};

}  // namespace doorstep
