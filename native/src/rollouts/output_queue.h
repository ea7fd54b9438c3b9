// Outputs of episodes on their way to those who asked for them. Any number of threads push and take.
#pragma once

#include <stdint.h>

#include "doorstep.h"
#include "runtime/fork_mutex.h"
#include "runtime/memory.h"
#include "runtime/reference.h"
#include "runtime/signal.h"

namespace doorstep {

// Memory that goes with an output, or with rows that await actions, on the host.
class OutputMemory final : public Memory {
public:
    // Null if memory ran out.
    static Ref<OutputMemory> make(int64_t bytes);
    static Ref<OutputMemory> copy(const char* data, int64_t bytes);
    ~OutputMemory() override;

    ds_status read(const void* start, int64_t bytes, void* host) override;
    ds_status write(void* start, int64_t bytes, const void* host) override;
    ds_status order(uint64_t stream) override;

    // Says where it is.
    void tell(ds_episode_output* output) const {
        output->data_start = data();
        output->data_bytes = static_cast<uint64_t>(bytes());
    }

private:
    OutputMemory(char* data, int64_t bytes) : Memory(data, bytes, DS_DEVICE_CPU, 0) {}
};

struct Output {
    ds_episode_output told;  // its `data` is 0 until it is taken
    Ref<Memory> data;
};

class OutputQueue : public LiveObject<DS_LIVE_ROLLOUT> {
public:
    OutputQueue() = default;
    ~OutputQueue() { delete[] ring_; }

    // Keeps room for outputs that will be pushed. False if memory ran out.
    bool reserve(int64_t count);
    // Moves outputs into the queue, for which there is room.
    void push_reserved(Output* outputs, int64_t count);
    // Both. False if memory ran out: then none were moved.
    bool push(Output* outputs, int64_t count);
    // Calls receive(context, output) for up to most outputs; one for which it fails stays in the queue, and ends the
    // call. Waits for the first at most timeout_ns. PENDING and CLOSED as ds_engine_take().
    using Receive = ds_status (*)(void* context, const Output& output);
    ds_status take(int64_t most, int64_t timeout_ns, Receive receive, void* context);
    int64_t size();
    void close();

private:
    bool grow(int64_t capacity);
    Output& at(int64_t place) { return ring_[(first_ + place) & (capacity_ - 1)]; }

    ForkMutex mutex_;         // guards everything below
    Output* ring_ = nullptr;  // of capacity_, a power of two
    int64_t capacity_ = 0, first_ = 0, size_ = 0;
    int64_t reserved_ = 0;    // outputs that will be pushed
    bool closed_ = false;
    Signal changes_;
};

}  // namespace doorstep
