// The latest events of a writer, in a ring: new ones replace the oldest. One thread at a time records, others read.
#pragma once

#include <memory>

#include "doorstep/policies_and_rollouts.h"
#include "runtime/reference.h"

namespace doorstep {

class TraceTrack : public RefCounted {
public:
    // Null if memory ran out. capacity: events.
    static Ref<TraceTrack> create(int64_t capacity, int32_t track, int32_t replica);

    void record_span(ds_trace_kind kind, int64_t start_ns, int64_t end_ns, int64_t count, int32_t detail = 0);
    // A point of time on the way of a request.
    void record_request(ds_trace_kind kind, int64_t time_ns, uint64_t request, int32_t detail = 0);
    int64_t capacity() const { return capacity_; }
    // Copies the events to an array of capacity(), in the order in which they were recorded; returns how many. Those
    // that are replaced meanwhile are left out.
    int64_t read(ds_trace_event* events) const;

private:
    static constexpr int64_t kWords = sizeof(ds_trace_event) / sizeof(uint64_t);
    struct Slot {
        std::atomic<uint64_t> words[kWords];
    };

    void record(const ds_trace_event& event);

    TraceTrack(int64_t capacity, int32_t track, int32_t replica)
        : capacity_(capacity), track_(track), replica_(replica) {}

    const int64_t capacity_;
    const int32_t track_, replica_;
    Slot& slot_of(int64_t index) const { return slots_[static_cast<size_t>(index % (capacity_ + 1))]; }

    std::unique_ptr<Slot[]> slots_;     // one more than events are kept: the next event is in the making there
    std::atomic<int64_t> recorded_{0};  // since the creation
};

}  // namespace doorstep
