// A point in the work of a stream.
#pragma once

#include "runtime/cuda/stream.h"

namespace doorstep {

class Event final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_EVENT;

    // timing: whether elapsed() may be asked. Null, with the thread's error set, on failure.
    static Ref<Event> create(Ref<Context> context, bool timing = false);
    static Ref<Event> borrow(Ref<Context> context, uint64_t raw, ForeignOwner owner = {});
    ~Event();

    CUevent handle() const { return reinterpret_cast<CUevent>(raw()); }

    // The event is now what has been begun on the stream so far.
    ds_status record(const Stream& stream) const;
    // PENDING if it has not happened.
    ds_status query() const;
    ds_status synchronize() const;
    // At most timeout_ns (negative: without limit, 0: only asks). PENDING if it has not happened by then.
    ds_status wait(int64_t timeout_ns) const;
    // Milliseconds from `start` to this one. PENDING if one has not happened.
    ds_status elapsed(const Event& start, float* milliseconds) const;

private:
    Event(Ref<Context> context, bool timing);
    Event(Ref<Context> context, uint64_t raw, ForeignOwner owner);

    bool timing_;  // of a borrowed event: unknown, the driver says
};

}  // namespace doorstep
