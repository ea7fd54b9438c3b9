// The rows of a replica on CUDA: what policies there need, in the device's memory, and the work of a step, which is
// captured once and replayed.
//
// Lists are uploaded only when episodes have begun or ended. Lengths of episodes follow from a counter of steps on the
// device, to which the steps of the keys are relative. Policies act side by side, each in a branch of the work.
#pragma once

#include <memory>

#include "exec/simulator.h"
#include "policy/policy.h"
#include "runtime/cuda/graph.h"

namespace doorstep {

// Callers of an operation hold the simulator's turn.
class DeviceRows final : public RefCounted {
public:
    // Null, with the thread's error set, on failure.
    static Ref<DeviceRows> create(const Ref<Simulator>& simulator, int64_t num_policies);
    // Waits for the work.
    ~DeviceRows();

    // policy: on the simulator's device; null: the rows with this one act elsewhere or need no network.
    ds_status set_policy(int64_t index, const Ref<Policy>& policy);
    bool has_policy(int64_t index) const { return static_cast<bool>(slots_[index].policy); }

    // By row; the steps of keys and `steps` add up to the lengths of their episodes. order: of the rows, by policy;
    // first_rows: its place there, then the end.
    ds_status upload(const PlayedRow* rows, const int32_t* order, const ds_sampling* sampling,
                     const ds_sampling_key* keys, uint32_t steps, const int64_t* first_rows);

    // A step: networks act on all rows of theirs, random and idle rows act, the worlds step.
    ds_status play();
    // The same in two parts, for rows that act on the host: what comes before they act, then the rest.
    ds_status prepare();
    // recorded: bits of what is to be read of the networks afterwards.
    ds_status act(int32_t recorded);
    ds_status step();

    // Copies the states of a recurrent policy, of all rows, to the host, and waits for it.
    ds_status read_states(int64_t index, void* host);
    // After act(): by row, on the host, what was to be recorded of the latest action of a network here.
    ds_status read_acted(const float** log_probs, const float** values);
    // Copies what the worlds have ended with to the host, and waits for it.
    ds_status read_ends(uint8_t* terminations, uint8_t* truncations);
    // After read_ends(): by row, whether its policy here could choose no action in the step. *flags: null: all could.
    ds_status read_nonfinite(const uint8_t** flags);

private:
    struct Slot {
        Ref<Policy> policy;
        Ref<DevicePolicy> device;
        Ref<DeviceMemory> states;
        Ref<Stream> branch;  // on which it acts beside other policies
        Ref<Event> acted;
        bool is_captured = false;
    };
    // The parts of the memory that is uploaded, on the host or on the device.
    struct Lists {
        PlayedRow* rows;
        int32_t* order;
        ds_sampling* sampling;
        ds_sampling_key* keys;
        RowRange* ranges;        // by policy
        PolicyStates* policies;
    };

    DeviceRows(const Ref<Simulator>& simulator, int64_t num_policies);
    ds_status take_memory();
    ds_status load();
    // At an address, and how many bytes they take.
    Lists lists_at(uint64_t base, int64_t* bytes) const;
    ds_status open_branch(Slot* slot) const;
    ds_status capture();
    ds_status act_in_branch(const Slot& slot, const ActCall& call, const RowRange* range) const;
    ds_status launch_all();
    ds_status launch_count();
    bool acts(int64_t policy) const { return slots_[policy].policy && staged_.ranges[policy].count > 0; }

    const Ref<Simulator> simulator_;
    const int64_t num_rows_, num_policies_;
    std::unique_ptr<Slot[]> slots_;
    Ref<Stream> stream_;
    Ref<Event> prepared_;  // where the branches of policies begin
    Ref<Kernel> prepare_, count_;
    Ref<PinnedMemory> pinned_;    // the lists, then what read_acted(), read_ends() and read_nonfinite() copy
    Ref<DeviceMemory> memory_;    // the lists, then what policies write of their actions, the counter, and `nonfinite`
    int64_t list_bytes_ = 0, acted_bytes_ = 0;
    Lists staged_{}, lists_{};
    float *acted_ = nullptr, *acted_on_host_ = nullptr;  // log_probs of all rows, then values
    uint8_t* ends_ = nullptr;
    uint32_t* counter_ = nullptr;
    uint8_t* nonfinite_ = nullptr;
    int64_t nonfinite_rows_ = 0;  // that policies had counted at the last read_nonfinite()
    uint32_t steps_ = 0;          // that the counter will have counted
    Ref<GraphExec> graph_;        // of play(); null: to be captured
};

}  // namespace doorstep
