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

    // Somebody else's stream. raw: a CUstream of that context; 0 and 1 are the context's legacy default stream, 2 is
    // its per-thread default stream. Without an owner to release, a stream that create() made is found again.
    // INVALID_ARGUMENT (`argument`) if the stream belongs to another context.
    static Ref<Stream> borrow(Ref<Context> context, uint64_t raw, ForeignOwner owner = {},
                              const char* argument = "raw");
    ~Stream();

    CUstream handle() const { return reinterpret_cast<CUstream>(raw()); }

    ds_status synchronize() const;
    // PENDING while work is left.
    ds_status query() const;
    // What is begun from now on waits for the event.
    ds_status wait_event(const Event& event) const;
    // What is begun from now on comes after what was begun on another stream. Nothing if one of them is being recorded:
    // whoever records orders the work.
    ds_status follow(const Stream& earlier) const;
    // Whether what is begun now is recorded in a graph instead of done.
    ds_status is_capturing(bool* capturing) const;

    // Copies between any two addresses that the driver knows.
    ds_status copy(uint64_t to, uint64_t from, uint64_t bytes) const;
    ds_status fill(uint64_t memory, uint8_t value, uint64_t bytes) const;
    ds_status copy_rows(const ds_row_copy& rows) const;

    // For destructors of what the work may use, in a DestructionScope. Waits for the work; false if that takes longer
    // than kReleasePatience, or if the stream is being recorded.
    bool finish() const;

private:
    explicit Stream(Ref<Context> context);
    Stream(Ref<Context> context, uint64_t raw, ForeignOwner owner);
};

}  // namespace doorstep
