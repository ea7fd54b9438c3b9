// The rows of a replica whose actions callers choose: each waits until its policy is asked, then for the answer.
//
// A policy is asked for the actions of all its rows together, one time at a time; rows that come while it is asked wait
// for the next time.
#pragma once

#include "rollouts/episodes.h"
#include "rollouts/recorders.h"
#include "rollouts/row_desk.h"

namespace doorstep {

class CallerRows {
public:
    // recorder: null: nothing is recorded.
    CallerRows(Episodes* episodes, const HostTensors* tensors, const Ref<RequestTable>& table,
               const Ref<RowDesk>& desk, int32_t replica, ReplicaRecorder* recorder)
        : episodes_(*episodes),
          tensors_(*tensors),
          table_(table),
          desk_(desk),
          replica_(replica),
          recorder_(recorder) {}
    bool take_memory(int64_t num_policies);

    // Rows of episodes that are acting, with one policy. series: under which metrics record its times.
    void add(const int32_t* rows, int64_t count, int32_t series);
    // Asks the policies that are not asked already. OUT_OF_MEMORY.
    ds_status ask();

    int64_t num_asked() const { return num_asked_; }    // policies
    int64_t num_to_ask() const { return num_to_ask_; }  // rows
    bool some_have_returned() const;
    // Writes the actions that have come; episodes whose policy failed are marked.
    void take_answers();

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

    Ref<AskedRows> rows_to_ask(int64_t policy);
    void ask_for(AskedRows& asked, int64_t place, int64_t row);
    void take_answer(int64_t policy);

    Episodes& episodes_;
    const HostTensors& tensors_;
    const Ref<RequestTable> table_;  // where the replica sleeps
    const Ref<RowDesk> desk_;
    const int32_t replica_;
    ReplicaRecorder* const recorder_;

    Array<Slot> slots_;  // by policy
    Array<Wait> waits_;  // by row
    int64_t num_asked_ = 0, num_to_ask_ = 0;
};

}  // namespace doorstep
