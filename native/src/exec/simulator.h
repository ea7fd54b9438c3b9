// A batch of worlds on some device: what the C API knows of it.
//
// Nothing here checks arguments (api/ does). An operation that does not return DS_STATUS_OK has set the thread's error.
// Every operation expects its caller to hold `turn`, unless it says otherwise.
#pragma once

#include <stdint.h>

#include <atomic>
#include <type_traits>

#include "doorstep.h"
#include "exec/arena_layout.h"
#include "exec/attachment.h"
#include "exec/step_event.h"
#include "runtime/futex.h"
#include "runtime/memory.h"
#include "runtime/reference.h"
#include "sim/world_model.h"

namespace doorstep {

// Distinct worlds of a simulator, by their slots.
struct WorldList {
    const int64_t* slots;  // null: 0, 1, ...
    int64_t size;
    const uint8_t* mask;  // one byte per world of the simulator, nonzero for those listed; null: all are

    int64_t operator[](int64_t i) const { return slots ? slots[i] : i; }
};

class Simulator : public RefCounted {
public:
    virtual ~Simulator() = default;

    // Held for the length of every operation, and by an asynchronous step until it needs no more attention.
    TurnLock turn;
    bool closed = false;  // guarded by turn

    // Neighbours in the list of open simulators, see api/fork.cpp.
    Simulator* previous = nullptr;
    Simulator* next = nullptr;

    // ---- Fixed at creation; may be read without the turn ----
    const ds_simulator_config& config() const { return config_; }
    const WorldModel& model() const { return *model_; }
    const Simulation& simulation() const { return simulation_; }
    const Ref<Memory>& memory() const { return memory_; }  // its own, of worlds, tensors and tables
    bool has_tensor(int tensor) const { return layout_.tensors[tensor] >= 0; }
    void describe_state(int field, ds_tensor_info* info) const;
    // One byte per world, on the host, all zero between calls.
    virtual uint8_t* mask() const = 0;

    // ---- Without the turn ----
    int64_t allocated_bytes() const { return own_bytes() + bytes_for_attachments_->bytes.load(std::memory_order_relaxed); }
    int64_t step_count() const { return step_count_.load(std::memory_order_relaxed); }
    // The end of everything begun so far, and of nothing begun later.
    virtual ds_status find_end(Ref<StepEvent>* event) = 0;
    virtual uint64_t stream() const = 0;  // 0 on the CPU

    // ---- Life ----
    // What every operation begins with: makes sure that there are threads, or a device, also after a fork.
    virtual ds_status prepare() = 0;
    // Ends the work. False if it cannot be waited for, or may be done again: then what it uses must be abandoned.
    virtual bool close() = 0;
    virtual void enter_forked_child() = 0;

    // ---- Operations ----
    virtual ds_status step() = 0;
    // The event of the next asynchronous step.
    virtual ds_status make_event(Ref<StepEvent>* event) = 0;
    // Begins the step of an event made by make_event(). If it returns DS_STATUS_OK, the turn is given back by it.
    virtual ds_status step_async(StepEvent& event) = 0;
    virtual ds_status find_bad_action(bool* found, BadAction* bad) = 0;
    virtual ds_status reset(const uint8_t* mask) = 0;    // on the host; null: all worlds
    virtual ds_status refresh(const uint8_t* mask) = 0;  // likewise
    virtual ds_status set_stream(uint64_t stream) = 0;
    void look_for_edits() { simulation_.look_for_edits = 1; }

    // What another library does at the end of operations, after begin_operation().
    Attachment attachment;
    // Lets it see the worlds as they are now.
    ds_status update() { return attachment ? update_attachment() : DS_STATUS_OK; }
    // Zeroed memory on the simulator's device.
    ds_status allocate(int64_t bytes, Ref<Memory>* memory);

    // Where a tensor is: in the simulator's own memory, or in a memory of the caller's that it was bound to.
    void describe_tensor(int tensor, ds_tensor_info* info) const;
    const Ref<Memory>& memory_of(int tensor) const { return bound_[tensor] ? bound_[tensor] : memory_; }
    char* own_address(int tensor) const { return memory_->data() + layout_.tensors[tensor]; }
    // A memory of the caller's on the simulator's device; its owner is not taken over.
    virtual ds_status borrow(char* data, int64_t bytes, Ref<Memory>* memory) = 0;
    // The tensor, without its elements, moves to the start of a memory; null: back to its place in the simulator's own.
    // Returns the memory that it was bound to.
    Ref<Memory> bind(int tensor, Ref<Memory> memory);
    // Copies from an address of the device to another, in the order of the work; on a GPU the copy is only begun.
    virtual ds_status copy(void* to, const void* from, int64_t bytes) = 0;
    // The same, and waits for it.
    virtual ds_status copy_now(void* to, const void* from, int64_t bytes) = 0;

    // Copies worlds out, each saved_world_bytes() (see saved_world.h), or in; then derived data is to be refreshed.
    virtual ds_status save(const WorldList& worlds, char* saved) = 0;
    virtual ds_status restore(const WorldList& worlds, const char* saved) = 0;
    // hashes: one per world, or null; *sum: over the worlds of the mask (null: all).
    virtual ds_status hash(const uint8_t* mask, uint64_t* hashes, uint64_t* sum) = 0;

    // Trouble bits since they were last taken.
    virtual ds_status take_trouble(uint32_t* trouble) = 0;
    ds_status read_health(ds_health* health);  // struct_size is left as it is

    virtual ds_status set_profiling(bool enabled) = 0;
    virtual ds_status read_profile(uint64_t* ticks) = 0;  // kNumStages of them

protected:
    Simulator(const ds_simulator_config& config, int32_t device_kind);
    // OUT_OF_MEMORY if construction got less than it needs.
    ds_status check_records() const;

    // Takes the memory that layout_ asks for.
    void take_over(Ref<Memory> memory);
    // Everything but what allocate() gave; needs no turn.
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
    Ref<Memory> bound_[DS_TENSOR_COUNT];  // null: the tensor lies in memory_
};

}  // namespace doorstep
