// Rows that await actions of the callers', on their way from replicas to callers and back.
#pragma once

#include "rollouts/request.h"

namespace doorstep {

// The rows of one policy in one pass of a replica, and their actions.
class AskedRows : public RefCounted {
public:
    // Null if memory ran out. table: at whose arrivals the replica sleeps.
    static Ref<AskedRows> create(const Ref<RequestTable>& table, int64_t num_rows, int64_t num_inputs);

    // ---- Written by the replica before it asks: arrays in `memory`, as those of ds_rows
    int32_t replica = 0, policy = 0;
    int64_t num_replica_rows = 0;
    const int64_t num_rows, num_inputs;
    Ref<OutputMemory> memory;
    int32_t* rows;
    int64_t* steps;
    uint32_t* keys;
    uint64_t* tags;
    float* rewards;
    float* observations;

    // ---- Read by the replica, once they are there
    bool have_returned() const { return returned_.load(std::memory_order_acquire); }
    const int32_t* actions() const { return actions_; }
    int64_t cause() const { return cause_; }  // 0: there are actions

private:
    friend class RowDesk;
    AskedRows(const Ref<RequestTable>& table, int64_t num_rows, int64_t num_inputs, Ref<OutputMemory> memory);

    const Ref<RequestTable> table_;
    int32_t* actions_;
    int64_t cause_ = 0;
    std::atomic<bool> returned_{false};

    // With the desk's mutex held:
    uint64_t id_ = 0;
    bool is_taken_ = false;
    Ref<AskedRows> next_;
};

class RowDesk : public RefCounted {
public:
    // For replicas.
    void ask(const Ref<AskedRows>& rows);
    // The replica plays no more: callers get these no longer, and what they return is dropped.
    void withdraw(const Ref<AskedRows>& rows);

    // For callers, as the functions of the C API.
    ds_status take(int64_t timeout_ns, Ref<AskedRows>* rows, uint64_t* id);
    ds_status give_back(uint64_t id, const int32_t* actions, int64_t cause);

    void close();

private:
    template <class Matches>
    Ref<AskedRows>* find(const Matches& matches);

    ForkMutex mutex_;  // guards everything below
    Ref<AskedRows> first_;  // in the order in which they were asked for; few
    uint64_t next_id_ = 1;
    bool closed_ = false;
    Signal changes_;
};

}  // namespace doorstep
