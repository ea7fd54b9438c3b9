// The order of a simulator's work on its device: on the stream that its user chose, after whatever was begun before.
// Shared by the simulator and its memory, which may outlive it.
//
// While a stream is recorded into a CUDA graph, whoever records it orders the work: nothing recorded waits for what was
// begun outside.
#pragma once

#include <stdint.h>

#include "runtime/cuda/event.h"
#include "runtime/cuda/stream.h"
#include "runtime/futex.h"

namespace doorstep {

class WorkOrder final : public RefCounted {
public:
    // stream: a CUstream, or DS_STREAM_OWN. Null, with the thread's error set, on failure.
    static Ref<WorkOrder> create(const Ref<Context>& context, uint64_t stream);

    const Ref<Context>& context() const { return context_; }
    // The stream that work is begun on now.
    Ref<Stream> stream();
    // The same for work that a recording may hold.
    ds_status begin(Ref<Stream>* stream);

    // Work goes to another stream from now on, after what was begun before.
    ds_status set_stream(uint64_t stream);
    // What is begun on `stream` from now on comes after the work begun so far.
    ds_status order(uint64_t stream);

    // INVALID_ARGUMENT if the stream is being recorded. operation: what cannot be recorded, for the message.
    ds_status check_not_recorded(const char* operation);

    // Copies between any two addresses in the order of the work, and waits for it.
    ds_status copy(uint64_t to, uint64_t from, int64_t bytes, const char* operation);

    // The simulator has ended, and with it the time for which its user promised that the stream exists: what is left to
    // do for the memory is done on a stream of our own.
    void leave_users_stream();

    // For destructors. Whether memory that the work uses may be given back in the order of *stream; waits for streams
    // that are not ordered by this object. False, then for good: it must be abandoned, because the work cannot be
    // waited for, or is just being recorded into a graph that may be launched at any time.
    bool settle(Ref<Stream>* stream);
    // The same for memory that is given back at once: waits for all work.
    bool finish();
    // The same for memory of the caller that the work used. False only for this memory: work begun later does not use it.
    bool finish_for_caller();

private:
    explicit WorkOrder(const Ref<Context>& context) : context_(context) {}
    Ref<Stream> find_stream(uint64_t stream);
    ds_status follow(const Ref<Stream>& earlier, const Stream& later) const;

    Ref<Context> context_;
    Ref<Event> event_;  // recorded and waited for in one go

    Mutex mutex_;  // guards everything below, and event_
    Ref<Stream> stream_;
    Ref<Stream> own_;
    Ref<Stream> unordered_;  // where the work before a recording was begun, until other work has been ordered after it
    bool shared_ = false;    // the memory may be used on streams, or by graphs, that this object does not know
    bool abandoned_ = false;
};

}  // namespace doorstep
