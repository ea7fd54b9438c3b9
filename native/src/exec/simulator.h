// A simulator's worlds on some device, as the C API uses them.
//
// Nothing here checks arguments (api/ does). An operation that does not return DS_STATUS_OK has set the thread's error.
// The caller of an operation must hold `turn`, unless documented otherwise.
#pragma once

#include <stdint.h>

#include <atomic>
#include <type_traits>

#include "doorstep/rooms.h"
#include "exec/arena.h"
#include "runtime/futex.h"
#include "runtime/memory.h"
#include "runtime/reference.h"
#include "runtime/status.h"
#include "sim/world_model.h"

namespace doorstep {

// Distinct worlds of a simulator, by their slots.
struct WorldList {
    const int64_t* slots;  // null: 0, 1, ...
    int64_t size;
    const uint8_t* mask;  // one byte per world of the simulator, nonzero for those listed; null: all are

    int64_t operator[](int64_t i) const { return slots ? slots[i] : i; }
};

// The end of one asynchronous step: the object of a ds_event.
class StepEvent : public RefCounted {
public:
    virtual ~StepEvent() = default;

    // DS_STATUS_PENDING if the step has not ended after timeout_ns (negative: without limit).
    virtual ds_status wait(int64_t timeout_ns) = 0;
};

// A library attached to a simulator, called whenever its worlds have changed: see ds_simulator_attach().
class Attachment {
public:
    explicit operator bool() const { return attached_.update != nullptr; }

    void set(const ds_attachment& attachment) {
        DS_ASSERT(!attached_.update && attachment.update);
        attached_ = attachment;
    }
    ds_status update(const ds_turn& turn) {
        DS_ASSERT(attached_.update);
        const ds_status status = attached_.update(attached_.context, &turn);
        if (status && last_status() != status) {  // it set no error
            fail(status, "", "report this to the library's authors", "the library attached to the simulator failed");
        }
        return status;
    }
    void clear() { attached_ = {}; }
    // Called when the simulator has ended.
    void release() {
        if (attached_.release) attached_.release(attached_.context);
        clear();
    }

    // A failure in a background thread, to be reported by the next call.
    void keep_failure() { failure_ = last_failure(); }
    ds_status report_failure() {
        if (!failure_.status) return DS_STATUS_OK;
        fail_again(failure_);
        failure_.status = DS_STATUS_OK;
        return last_status();
    }

private:
    ds_attachment attached_{};
    Failure failure_{};
};

// What is left of a world's episode.
struct EpisodeSummary {
    EpisodeProgress progress;
    uint64_t hash;     // of the world
    bool met_trouble;  // counted by its steps, see kTrouble*
};

class Simulator : public RefCounted {
public:
    virtual ~Simulator() = default;

    // Held during every operation, and by an asynchronous step until its end.
    TurnLock turn;
    bool closed = false;  // guarded by turn

    Simulator *next_listed = nullptr, *previous_listed = nullptr;  // in the list of open simulators, see api/fork.cpp

    // ---- Fixed at creation; may be read without the turn ----
    const ds_simulator_config& config() const { return config_; }
    const WorldModel& model() const { return *model_; }
    const Simulation& simulation() const { return simulation_; }
    const Ref<Memory>& memory() const { return memory_; }  // its own: worlds, tensors and tables
    bool has_tensor(int tensor) const {
        DS_ASSERT(tensor >= 0 && tensor < DS_TENSOR_COUNT);
        return layout_.tensors[tensor] >= 0;
    }
    void describe_state(int field, ds_tensor_info* info) const;
    // One byte per world, on the host, all zero between calls.
    virtual uint8_t* mask() const = 0;

    // ---- Callable without the turn ----
    int64_t allocated_bytes() const { return own_bytes() + bytes_for_attachments_->bytes.load(std::memory_order_relaxed); }
    int64_t step_count() const { return step_count_.load(std::memory_order_relaxed); }
    // An event that ends with all work begun so far, and does not wait for later work.
    virtual ds_status find_end(Ref<StepEvent>* event) = 0;
    virtual uint64_t stream() const = 0;  // 0 on the CPU

    // ---- Lifetime ----
    // The first step of every operation: makes sure that threads, or a device, are available, also after a fork.
    virtual ds_status prepare() = 0;
    // Ends the work. False if it cannot be awaited, or may run again: then the memory it uses must be leaked.
    virtual bool close() = 0;
    virtual void enter_forked_child() = 0;

    // ---- Operations ----
    // Around those that change worlds: find_end() and copies of memory wait for the end. Nothing on a GPU, where the
    // stream is their order.
    virtual void begin_work() {}
    virtual void end_work() {}

    virtual ds_status step() = 0;
    // The event of an asynchronous step, after begin_work().
    virtual ds_status make_event(Ref<StepEvent>* event) = 0;
    // Begins the step of an event made by make_event(). If it returns DS_STATUS_OK, the step ends the work and releases
    // the turn.
    virtual ds_status step_async(StepEvent& event) = 0;
    virtual ds_status find_bad_action(bool* found, BadAction* bad) = 0;
    virtual ds_status reset(const uint8_t* mask) = 0;    // on the host; null: all worlds
    // Begins the given episodes in the worlds of the mask; starts, by slot, and their levels are on the host, and may
    // change when this returns.
    virtual ds_status begin(const uint8_t* mask, const EpisodeStart* starts) = 0;
    virtual ds_status refresh(const uint8_t* mask) = 0;  // likewise
    virtual ds_status set_stream(uint64_t stream) = 0;
    // weights: `count` numbers for every world, or null for equal ones. Levels have been checked.
    ds_status set_levels(const ds_level* levels, int64_t count, const float* weights);
    void set_rewards(const ds_level_rewards* rewards);  // null: those of the levels
    void look_for_edits() { simulation_.rules.look_for_edits = 1; }

    // The attached library, called at the end of operations, after begin_operation().
    Attachment attachment;
    // Calls its update with the worlds as they are now.
    ds_status update() { return attachment ? update_attachment() : DS_STATUS_OK; }
    // Zeroed memory on the simulator's device.
    ds_status allocate(int64_t bytes, Ref<Memory>* memory);

    // The tensor's address: in the simulator's own memory, or in the caller's memory that it is bound to.
    void describe_tensor(int tensor, ds_tensor_info* info) const;
    const Ref<Memory>& memory_of(int tensor) const { return bound_[tensor] ? bound_[tensor] : memory_; }
    char* own_address(int tensor) const {
        DS_ASSERT(has_tensor(tensor));
        return memory_->data() + layout_.tensors[tensor];
    }
    // The caller's memory on the simulator's device; its owner is not taken over.
    virtual ds_status borrow(char* data, int64_t bytes, Ref<Memory>* memory) = 0;
    // Points the tensor at `memory` (null: back to the simulator's own). Copies nothing. Returns the memory that it was
    // bound to.
    Ref<Memory> bind(int tensor, Ref<Memory> memory);
    // See Memory::watch(), of memory that the tensor is bound to.
    void watch(int tensor, const uint64_t* first, const uint64_t* second);
    // INVALID_STATE if memory that is watched has moved.
    ds_status check_bound() const {
        bool moved = false;
        for (int i = 0; i < watched_count_; ++i) moved |= watched_[i].has_changed();
        return moved ? fail_moved() : DS_STATUS_OK;
    }
    // Copies between two addresses of the device, in the order of the work; on a GPU the copy is only begun.
    virtual ds_status copy(void* to, const void* from, int64_t bytes) = 0;
    // The same, and waits for it.
    virtual ds_status copy_now(void* to, const void* from, int64_t bytes) = 0;

    // Copies worlds out or in, each SavedParts::bytes(). After copying in, refresh derived data.
    virtual ds_status save(const WorldList& worlds, char* saved) = 0;
    virtual ds_status restore(const WorldList& worlds, const char* saved) = 0;
    // hashes: one per world, or null; *sum: over the worlds of the mask (null: all).
    virtual ds_status hash(const uint8_t* mask, uint64_t* hashes, uint64_t* sum) = 0;

    // Summaries, by slot, of the worlds of the mask.
    ds_status summarise(const uint8_t* mask, EpisodeSummary* summaries);

    // Runs a task over [0, count) in parts of `grain` items on the simulator's threads, or on the calling one where it
    // has none. worker: below num_workers().
    virtual void run_on_host(int64_t count, int64_t grain, ds_task task, void* context) = 0;
    virtual int num_workers() const = 0;

    // Returns and clears the Trouble bits.
    virtual ds_status take_trouble(uint32_t* trouble) = 0;
    ds_status read_health(ds_health* health);  // leaves struct_size unchanged

    virtual ds_status set_profiling(bool enabled) = 0;
    virtual ds_status read_profile(uint64_t* ticks) = 0;  // kNumStages values

protected:
    Simulator(const ds_simulator_config& config, int32_t device_kind);
    // False if an allocation of the constructor failed.
    bool has_records() const { return static_cast<bool>(bytes_for_attachments_); }
    static ds_status fail_records();

    // The reference's generator in every place, the only one that is drawn the first.
    ds_status set_first_levels();
    // Allocates the memory that layout_ describes.
    void take_over(Ref<Memory> memory);
    // Fills in everything except the memory of allocate(); needs no turn.
    virtual int64_t own_bytes() const = 0;
    // For allocate().
    virtual ds_status take_memory(int64_t bytes, Ref<Memory>* memory) = 0;
    virtual ds_status update_attachment() = 0;

    // Calls visit(context, world, block) with the blocks of the mask's worlds (null: all), in order, on the host.
    using VisitBlock = void (*)(void* context, int64_t world, const char* block);
    virtual ds_status visit_blocks(const uint8_t* mask, VisitBlock visit, void* context) = 0;
    template <class Function>
    ds_status visit_blocks(const uint8_t* mask, Function&& function) {
        return visit_blocks(
            mask,
            [](void* context, int64_t world, const char* block) {
                (*static_cast<std::remove_reference_t<Function>*>(context))(world, block);
            },
            &function);
    }

    ds_simulator_config config_;
    const WorldModel* model_;
    ArenaLayout layout_;
    Simulation simulation_{};
    std::atomic<int64_t> step_count_{0};

private:
    Ref<Memory> memory_;
    Ref<ByteCount> bytes_for_attachments_;
    Ref<Memory> bound_[DS_TENSOR_COUNT];  // null: the tensor is in memory_
    WatchedWord watched_[Memory::kWatched * DS_TENSOR_COUNT];  // of all bound memories, side by side for steps
    int watched_count_ = 0;

    void collect_watched();
    ds_status fail_moved() const;
};

// ---- The models of worlds, each prepared once for the whole process

// find_world_model(), of which one thread at a time makes the tables.
const WorldModel& prepared_model(WorldKind kind);

// Around a fork: between the first call and one of the others, no thread prepares a model.
void lock_models();
void unlock_models();
void reset_models();  // in the child

// ---- Open simulators, with a handle of their own or as part of something else: a fork waits for them

void list_open(Simulator* simulator);
void unlist_open(Simulator* simulator);

// For api/fork.cpp: waits for the running step of each, and holds their turns until one of the other two.
void lock_open_simulators();
void unlock_open_simulators();
void enter_forked_child_with_simulators();

}  // namespace doorstep
