// The order of a simulator's work on its device: on the stream that the caller chose, after all work begun before.
// Shared by the simulator and its memory, which may outlive it.
//
// While a stream is captured into a CUDA graph, the code that captures it orders the work: captured work does not wait
// for work begun outside.
#pragma once

#include <stdint.h>

#include "runtime/cuda/stream.h"
#include "runtime/futex.h"

namespace doorstep {

class WorkOrder final : public RefCounted {
public:
    // stream: a CUstream, or DS_STREAM_OWN. Null, with the thread's error set, on failure.
    static Ref<WorkOrder> create(const Ref<Context>& context, uint64_t stream);

    const Ref<Context>& context() const { return context_; }
    // The current stream of the work.
    Ref<Stream> stream();
    // The same for work that may be captured.
    ds_status begin(Ref<Stream>* stream);

    // Begins further work on another stream, ordered after the work begun before.
    ds_status set_stream(uint64_t stream);
    // Orders further work on `stream` after the work begun so far.
    ds_status order(uint64_t stream);

    // INVALID_ARGUMENT if the stream is being captured. operation: what cannot be captured, for the message.
    ds_status check_not_recorded(const char* operation);

    // Copies between any two addresses in the order of the work, and waits for it.
    ds_status copy(uint64_t to, uint64_t from, int64_t bytes, const char* operation);

    // The simulator has ended, and with it the caller's promise that the stream exists: remaining work for the memory
    // uses a stream of this object.
    void leave_users_stream();

    // For destructors. Whether memory that the work uses may be freed in the order of *stream; waits for streams that
    // this object does not order. False, permanently: the memory must be leaked, because the work cannot be awaited or
    // is being captured into a graph that may be launched at any time.
    bool settle(Ref<Stream>* stream);
    // The same for memory that is freed at once: waits for all work.
    bool finish();
    // The same for the caller's memory that the work used. False for this memory only: later work does not use it.
    bool finish_for_caller();

private:
    explicit WorkOrder(const Ref<Context>& context) : context_(context) {}
    Ref<Stream> find_stream(uint64_t stream);
    ds_status follow(const Ref<Stream>& earlier, const Stream& later) const;

    Ref<Context> context_;
    Ref<Event> event_;  // recorded and waited for under one lock

    Mutex mutex_;  // guards everything below, and event_
    Ref<Stream> stream_;
    Ref<Stream> own_;
    Ref<Stream> unordered_;  // stream of the work before a capture, until other work has been ordered after it
    bool shared_ = false;    // streams or graphs that this object does not track may use the memory
    bool abandoned_ = false;
};

}  // namespace doorstep
