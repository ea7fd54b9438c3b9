// The first steps of every entry point: finding the object of a handle, waiting for its turn, checking arguments.
#pragma once

#include <stdint.h>

#include "api/arguments.h"
#include "doorstep.h"
#include "exec/simulator.h"
#include "metrics/store.h"
#include "policy/policy.h"
#include "rollouts/config.h"
#include "rollouts/engine.h"
#include "runtime/cuda/resource.h"
#include "runtime/handles.h"
#include "runtime/memory.h"

namespace doorstep {

// All handles. Never destroyed: threads may still use them while the process exits.
inline constinit HandleRegistry<Simulator> simulators{HandleKind::SIMULATOR};
inline constinit HandleRegistry<Memory> memories{HandleKind::MEMORY};
inline constinit HandleRegistry<StepEvent> events{HandleKind::EVENT};
inline constinit HandleRegistry<Resource> resources{HandleKind::RESOURCE};
inline constinit HandleRegistry<Layer> layers{HandleKind::LAYER};
inline constinit HandleRegistry<Policy> policies{HandleKind::POLICY};
inline constinit HandleRegistry<MetricsStore> metrics_stores{HandleKind::METRICS};
inline constinit HandleRegistry<Config> configs{HandleKind::CONFIG};
inline constinit HandleRegistry<SharedLevel> shared_levels{HandleKind::SHARED_LEVEL};
inline constinit HandleRegistry<Engine> engines{HandleKind::ENGINE};
inline constinit HandleRegistry<OutputQueue> output_queues{HandleKind::OUTPUTS};

// what: such as "a queue".
ds_status fail_memory(const char* what);

// ---- Handles of CUDA resources

ds_status fail_wrong_kind(const char* argument, ds_resource_kind given, ds_resource_kind expected);

// Null, with the thread's error set, if the resource was released or never existed, or is of another kind.
template <class T>
Ref<T> find_handle(ds_resource handle, const char* argument) {
    Ref<Resource> found = resources.find(handle, argument);
    if (found && found->kind() != T::kKind) {
        fail_wrong_kind(argument, found->kind(), T::kKind);
        return {};
    }
    return resource_cast<T>(std::move(found));
}

// A new handle to a resource just created; if it is null, the status of the failure.
ds_status give_handle(Ref<Resource> made, ds_resource* handle);

// ---- Forks: every simulator and every handle stays usable on both sides (fork.cpp)

// Whether a fork waits for changes of the handles to complete. False if no memory was left when the library was loaded.
bool has_fork_handlers();

// ---- Configurations, by their tables in the chapters of the C API

void set_defaults(ds_simulator_config* fields);
ds_status check_fields(const ds_simulator_config& fields);

// The configuration of a handle; null, with the thread's error set, if it was released or is of another kind.
Ref<Config> find_config(ds_config handle, ds_config_kind kind, const char* argument);

// ---- New handles

// A handle for the caller to an object that may be shared. OUT_OF_MEMORY if there is no object, or no room for a handle.
template <class T>
ds_status give(HandleRegistry<T>& registry, const Ref<T>& object, const char* what, uint64_t* handle) {
    const uint64_t given = object && has_fork_handlers() ? registry.insert(object) : 0;
    if (!given) return fail_memory(what);
    *handle = given;
    return DS_STATUS_OK;
}

inline ds_status give_memory(const Ref<Memory>& memory, ds_memory* handle) {
    return give(memories, memory, "a handle", handle);
}

// ---- Simulators

// A new simulator without a handle. INVALID_ARGUMENT if a rule is out of range.
ds_status make_simulator(const ds_simulator_config& config, Ref<Simulator>* simulator);

// One call on one simulator: holds its turn from construction to destruction. Calls that arrive meanwhile, and calls
// that arrive while an asynchronous step runs, wait in order.
class SimulatorCall {
public:
    explicit SimulatorCall(ds_simulator handle);
    ~SimulatorCall();
    SimulatorCall(const SimulatorCall&) = delete;
    SimulatorCall& operator=(const SimulatorCall&) = delete;

    // DS_STATUS_CLOSED, with the error set, if the simulator was closed or never existed.
    ds_status status() const { return status_; }
    // For calls that step, change or read worlds: status(), then the device's error, then errors that earlier steps
    // have not reported yet, then whether bound memory is where it was.
    ds_status begin_operation();
    // The same for calls that bind tensors, also those whose memory has moved.
    ds_status begin_binding();
    // begin_operation() for calls that change worlds: until the end of this one, others' events and copies of memory wait.
    ds_status begin_work();
    // Passes the turn, and the work begun, to an asynchronous step, which ends both.
    void give_turn_away() {
        DS_ASSERT(has_turn_ && works_);
        has_turn_ = works_ = false;
    }

    Simulator* operator->() const {
        DS_ASSERT(has_turn_ && !status_);
        return simulator_.get();
    }
    Simulator& operator*() const { return *operator->(); }

private:
    // In strict mode: DS_STATUS_SIMULATION if a step counted trouble that was not yet reported.
    ds_status check_trouble();

    Ref<Simulator> simulator_;
    bool has_turn_ = false, works_ = false;
    ds_status status_ = DS_STATUS_OK;
};

// A list of world slots given by the caller: in range and distinct. While it lives, their bytes in the simulator's
// mask are set.
class WorldSelection {
public:
    // worlds: count slots, or null for the slots 0 .. all_count - 1.
    WorldSelection(const Simulator& simulator, const int64_t* worlds, uint64_t count, int64_t all_count);
    ~WorldSelection();
    WorldSelection(const WorldSelection&) = delete;
    WorldSelection& operator=(const WorldSelection&) = delete;

    ds_status status() const { return status_; }
    const WorldList& list() const { return list_; }

private:
    WorldList list_;
    uint8_t* mask_;
    int64_t marked_ = 0;  // leading entries whose bytes are set
    ds_status status_ = DS_STATUS_OK;
};

}  // namespace doorstep
