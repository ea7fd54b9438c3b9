// A point in the work of a stream.
#pragma once

#include "runtime/cuda/stream.h"

namespace doorstep {

class Event final : public Resource {
public:
    static constexpr ds_resource_kind kKind = DS_RESOURCE_EVENT;

    // timing: whether elapsed() may be called. Null, with the thread's error set, on failure.
    static Ref<Event> create(Ref<Context> context, bool timing = false);
    static Ref<Event> borrow(Ref<Context> context, uint64_t raw, ForeignOwner owner = {});
    ~Event();

    CUevent handle() const { return reinterpret_cast<CUevent>(raw()); }

    // The event now marks the end of all work begun on the stream so far.
    ds_status record(const Stream& stream) const;
    // PENDING if the event has not been reached.
    ds_status query() const;
    ds_status synchronize() const;
    // At most timeout_ns (negative: without limit, 0: only queries). PENDING if it has not been reached by then.
    ds_status wait(int64_t timeout_ns) const;
    // Milliseconds from `start` to this one. PENDING if one has not been reached.
    ds_status elapsed(const Event& start, float* milliseconds) const;

private:
    Event(Ref<Context> context, bool timing);
    Event(Ref<Context> context, uint64_t raw, ForeignOwner owner);

    bool timing_;  // unknown for a borrowed event: the driver checks
};

}  // namespace doorstep
