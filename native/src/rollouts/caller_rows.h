// Rows whose actions callers choose, on their way from replicas to callers and back: each waits until its policy is
// asked, then for the answer.
//
// A policy is asked for the actions of all its rows in a replica together, one time at a time; rows that come while it
// is asked wait for the next time.
#pragma once

#include "rollouts/episodes.h"
#include "rollouts/recorders.h"

namespace doorstep {

// The rows of one policy in one pass of a replica, and their actions.
struct AskedRows : RefCounted {
    ds_rows fields{};  // but for `data`, and the id until the desk has them. The arrays, and `actions`, are in `memory`
    Ref<OutputMemory> memory;
    int32_t* actions = nullptr;
    static constexpr int64_t kAwaited = -1;
    std::atomic<int64_t> cause{kAwaited};  // why there are no actions; 0: there are
    Ref<AskedRows> next;                   // at the desk, with its mutex held

    bool have_returned() const { return cause.load(std::memory_order_acquire) != kAwaited; }
};

// Where the replicas of an engine ask, and callers take rows and return them.
class RowDesk : public RefCounted {
public:
    // For replicas.
    void ask(const Ref<AskedRows>& asked);
    // The replica plays no more: callers get these no longer, and what they return is dropped.
    void withdraw(const Ref<AskedRows>& asked);

    // For callers, as the functions of the C API. arrivals: at which the replica sleeps.
    ds_status take(int64_t timeout_ns, Ref<AskedRows>* asked);
    ds_status give_back(uint64_t id, const int32_t* actions, int64_t cause, Signal* arrivals);

    void close() {
        closed_.store(true);
        changes_.tell();
    }

private:
    Ref<AskedRows>* find(uint64_t id);

    ForkMutex mutex_;       // guards the list, and ids
    Ref<AskedRows> first_;  // in the order in which they were asked for, are taken, and have their ids; few
    uint64_t last_asked_ = 0, last_taken_ = 0;  // ids
    std::atomic<bool> closed_{false};
    Signal changes_;
};

// Those of a replica.
class CallerRows {
public:
    // recorder: null: nothing is recorded.
    CallerRows(Episodes* episodes, const HostTensors* tensors, const Ref<RowDesk>& desk, int32_t replica,
               ReplicaRecorder* recorder)
        : episodes_(*episodes), tensors_(*tensors), desk_(desk), replica_(replica), recorder_(recorder) {}
    bool take_memory(int64_t num_policies) { return slots_.take(num_policies) && waits_.take(episodes_.num_rows()); }

    // Rows of episodes that are acting, with this policy. series: under which metrics record its times.
    void add(int64_t policy, int32_t series, const int32_t* rows, int64_t count);
    // Asks the policies that are not asked already. OUT_OF_MEMORY.
    ds_status ask();
    int64_t num_asked() const { return num_asked_; }    // policies
    int64_t num_to_ask() const { return num_to_ask_; }  // rows
    // Writes the actions that have come since; episodes whose policy failed are marked. Returns whether some have come.
    bool take_answers();

    // The episode in a world ends: none of its rows waits any more.
    void forget(int64_t world);
    // What is asked for is not needed any more.
    void withdraw();

private:
    enum class Wait : uint8_t { kNothing, kAsking, kCaller };
    struct Slot {
        Ref<AskedRows> asked;  // that a caller has, or may get
        int64_t asked_ns;      // when that was
        int64_t num_to_ask;    // rows that are kAsking
        int32_t series;        // of metrics
    };

    Ref<AskedRows> rows_to_ask(int32_t policy);
    void take_answer(int64_t policy);

    Episodes& episodes_;
    const HostTensors& tensors_;
    const Ref<RowDesk> desk_;
    const int32_t replica_;
    ReplicaRecorder* const recorder_;

    Array<Slot> slots_;  // by policy
    Array<Wait> waits_;  // by row
    int64_t num_asked_ = 0, num_to_ask_ = 0;
};

}  // namespace doorstep
