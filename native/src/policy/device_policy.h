// What a policy needs on a CUDA device beside its weights: the kernel, a copy of the layers, and scratch memory.
//
// A launch reads the weights and the layers, so whatever the policy holds is freed after its launches.
#pragma once

#include "exec/cuda/work_order.h"
#include "policy/kernels.h"
#include "runtime/cuda/device_memory.h"
#include "runtime/cuda/module.h"

namespace doorstep {

class DevicePolicy final : public RefCounted {
public:
    // network: with its layers on the host; read during the call. Null, with the thread's error set, on failure.
    static Ref<DevicePolicy> create(int64_t device_index, const Network& network);
    // The same policy for other calls, which may run at the same time: with scratch memory of its own. Counts rows in
    // this one's counter.
    Ref<DevicePolicy> clone(const Network& network) const;
    // Waits for the launches of act(). Memory that a capture may use is leaked.
    ~DevicePolicy();

    // Begins the launch for all rows of a call, on the call's stream, after earlier ones of this object.
    ds_status act(const ActCall& call);
    // The same in the caller's order: one launch at a time, which the caller awaits before releasing this object.
    // range: on the device, read by the launch: the rows of the call that it evaluates; null: all.
    ds_status launch(const Stream& stream, const ActCall& call, const RowRange* range);
    // The launches cannot be awaited.
    void abandon();

    // Rows that got the neutral action, in the launches that have ended.
    int64_t nonfinite_rows() const { return static_cast<int64_t>(__atomic_load_n(nonfinite_rows_, __ATOMIC_RELAXED)); }

private:
    DevicePolicy() = default;
    ds_status prepare(int64_t device_index, const Network& network);
    ds_status load(int64_t device_index, int32_t precision);
    ds_status take_memory(const Network& network);
    ds_status upload(const Network& network);

    Ref<WorkOrder> order_;
    Ref<Kernel> kernel_;
    Ref<DeviceMemory> memory_;   // layers, then scratch of all blocks
    Ref<PinnedMemory> pinned_;   // a counter
    unsigned long long* nonfinite_rows_ = nullptr;
    ActArguments arguments_{};
    LaunchShape shape_{};
    int64_t most_blocks_ = 0;    // that the device runs at once
    Mutex mutex_;                // held from the choice of the stream until the launch
};

}  // namespace doorstep
