// A queue of work on a device.
#pragma once

#include "runtime/cuda/context.h"

namespace doorstep {

class Event;

class Stream final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_STREAM;

    // A new stream, which does not wait for the legacy default stream. Null, with the thread's error set, on failure.
    static Ref<Stream> create(Ref<Context> context);

    // A stream of other code. raw: a CUstream of that context; 0 and 1 are the context's legacy default stream, 2 is
    // its per-thread default stream. Without an owner to release, a stream that create() made is found again.
    // INVALID_ARGUMENT (`argument`) if the stream belongs to another context.
    static Ref<Stream> borrow(Ref<Context> context, uint64_t raw, ForeignOwner owner = {},
                              const char* argument = "raw");
    ~Stream();

    CUstream handle() const { return reinterpret_cast<CUstream>(raw()); }

    ds_status synchronize() const;
    // PENDING while work is unfinished.
    ds_status query() const;
    // Orders further work after the event.
    ds_status wait_event(const Event& event) const;
    // Orders further work after all work begun on another stream. Does nothing if one of them is being captured: then
    // the code that captures orders the work.
    ds_status follow(const Stream& earlier) const;
    // Whether work begun now is captured into a graph instead of executed.
    ds_status is_capturing(bool* capturing) const;

    // Copies between any two addresses that the driver can access.
    ds_status copy(uint64_t to, uint64_t from, uint64_t bytes) const;
    ds_status fill(uint64_t memory, uint8_t value, uint64_t bytes) const;
    ds_status copy_rows(const ds_row_copy& rows) const;

    // For destructors of objects that the work may use, in a DestructionScope. Waits for the work; false if that takes
    // longer than kReleasePatience, or if the stream is being captured.
    bool finish() const;

private:
    explicit Stream(Ref<Context> context);
    Stream(Ref<Context> context, uint64_t raw, ForeignOwner owner);
};

}  // namespace doorstep
