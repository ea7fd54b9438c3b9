// A policy: layers composed into a network that reads observations and chooses actions.
//
// The structs of a call are those of the C API. Calls from native code check nothing but their assertions: who makes
// them has checked the arguments.
#pragma once

#include <atomic>
#include <memory>

#include "exec/simulator.h"
#include "policy/device_policy.h"
#include "policy/layer.h"
#include "policy/network.h"
#include "runtime/reference.h"

namespace doorstep {

// What act() reports, as bits.
enum PolicyTrouble : uint32_t {
    kPolicyTroubleNone = 0,
    kPolicyTroubleNonfinite = 1,  // a row got the neutral action
};

class Policy final : public LiveObject<DS_LIVE_POLICY> {
public:
    // Rows that are evaluated together. Ranges of multiples of it waste no work; every range gives the same bits.
    static constexpr int64_t kTileRows = doorstep::kTileRows;
    static constexpr int64_t kScratchAlignment = doorstep::kScratchAlignment;

    // layers: count of them, which fit each other and are on one device. precision: DS_PRECISION_FLOAT32 on the CPU. Null,
    // with the thread's error set, on failure.
    static Ref<Policy> create(const Ref<Layer>* layers, int64_t count, int64_t num_heads, int32_t precision);
    ~Policy();

    int64_t num_layers() const { return network_.num_layers; }
    int64_t num_heads() const { return network_.num_heads; }
    const Ref<Layer>& layer(int64_t index) const {
        DS_ASSERT(index >= 0 && index < num_layers());
        return layers_[index];
    }

    // Whether its last head gives the value.
    bool has_value() const { return network_.has_value; }

    int32_t precision() const { return network_.precision; }

    // Floats of an observation, and of a recurrent state: 0 without one.
    int64_t num_inputs() const { return network_.num_inputs; }
    int64_t state_size() const { return network_.state_size; }

    const Network& network() const { return network_; }
    ds_device_kind device_kind() const { return device_ ? DS_DEVICE_CUDA : DS_DEVICE_CPU; }
    int64_t device_index() const { return layers_[0]->config().device_index; }

    // Rows that one instruction processes on this processor.
    static int vector_width();

    // Memory that a thread of act() needs, aligned to kScratchAlignment.
    int64_t scratch_bytes() const { return network_.scratch_floats() * 4; }

    // Processes the rows [first, first + count) of the call's list, on the CPU. Returns trouble bits. Thread-safe:
    // scratch belongs to the calling thread, and ranges with distinct rows may run at once. Allocates nothing.
    uint32_t act(const ActCall& call, int64_t first, int64_t count, void* scratch) const;

    // All rows: on the CPU, with scratch memory of the policy's own, which it keeps for later calls; on CUDA, begins a
    // launch on the call's stream.
    ds_status act_on_all(const ActCall& call) const;

    // For calls beside those of this object; see DevicePolicy::clone(). On CUDA only.
    Ref<DevicePolicy> clone_on_device() const {
        DS_ASSERT(device_);
        return device_->clone(network_);
    }

    // The same layers with copies of all weights; stream: see Layer::copy(). Null, with the thread's error set, on failure.
    Ref<Policy> freeze(uint64_t stream) const;

    // Rows so far that got the neutral action.
    int64_t nonfinite_rows() const {
        return device_ ? device_->nonfinite_rows() : nonfinite_rows_.load(std::memory_order_relaxed);
    }

private:
    static constexpr int kSpares = 16;

    Policy() = default;
    void describe();
    void* take_scratch() const;
    void keep_scratch(void* scratch) const;

    Network network_{};
    std::unique_ptr<Ref<Layer>[]> layers_;
    std::unique_ptr<ds_layer_config[]> configs_;  // of the layers, for the loops
    Ref<DevicePolicy> device_;                    // null on the CPU; ends before the layers
    mutable std::atomic<int64_t> nonfinite_rows_{0};
    mutable std::atomic<void*> spares_[kSpares]{};  // scratch memory that no call uses; without a lock, for forks
};

// ---- Calls of several policies on the CPU as one

// Their rows are divided over threads together: policies with few rows each cost one wake-up of the threads for all of
// them, and share these evenly.

struct PolicyCall {
    int64_t index;       // of the caller's own
    const Policy* policy;
    ActCall call;        // with num_rows, at least 1
    int64_t first_tile;  // of all tiles; written by act_together()
};

// Acts for calls with distinct rows, on the simulator's threads. scratch: scratch_bytes for each of them, enough for
// every policy. Returns trouble bits.
uint32_t act_together(Simulator& simulator, PolicyCall* calls, int64_t count, char* scratch, int64_t scratch_bytes);

}  // namespace doorstep
