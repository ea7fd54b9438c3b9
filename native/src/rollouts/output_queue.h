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
    int32_t reader;
};

// What each reader may leave unread.
struct OutputLimits {
    int64_t outputs, bytes;
};

enum class Room { kSome, kNone, kNoMemory };

// Each reader has outputs and limits of its own. An output that is larger than the limit finds room where no other waits.
class OutputQueue : public RefCounted {
public:
    explicit OutputQueue(const OutputLimits& limits);
    ~OutputQueue();

    // Keeps room for an output that will be pushed. NONE: until its reader takes.
    Room reserve(const Output& output);
    // Moves outputs into the queue, for which there is room.
    void push_reserved(Output* outputs, int64_t count);
    // Calls receive(context, output) for up to most outputs; one for which it fails stays in the queue, and ends the
    // call. Waits for the first at most timeout_ns. PENDING and CLOSED as ds_engine_take().
    using Receive = ds_status (*)(void* context, const Output& output);
    ds_status take(int32_t reader, int64_t most, int64_t timeout_ns, Receive receive, void* context);
    int64_t size(int32_t reader);
    // Room was refused, and its reader has taken nothing since.
    bool is_full(int32_t reader);
    // Outputs may have been taken since room was refused, or limits hold no longer. Those who wait look at other things, too:
    // they tell it.
    Signal& room() { return room_; }
    // For the outputs that are left at the end of an engine. Takes no lock.
    void lift_limits();
    void close();

private:
    struct Box {
        ~Box() { delete[] ring; }
        bool grow(int64_t capacity);
        Output& at(int64_t place) { return ring[(first + place) & (capacity - 1)]; }

        Output* ring = nullptr;  // of capacity, a power of two
        int64_t capacity = 0, first = 0, size = 0;
        int64_t reserved = 0;    // outputs that will be pushed
        int64_t bytes = 0;       // of data of all of them
        bool is_full = false;
        Signal arrivals;
    };
    bool has_room(const Box& box, int64_t bytes) const;

    const OutputLimits limits_;
    std::atomic<bool> is_limited_{true};
    Signal room_;
    ForkMutex mutex_;  // guards everything below
    Box boxes_[DS_NUM_READERS];
    bool closed_ = false;
};

}  // namespace doorstep
