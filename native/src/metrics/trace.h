// The latest events of a writer, in a ring: new ones replace the oldest.
#pragma once

#include <memory>

#include "metrics/series.h"

namespace doorstep {

class TraceTrack final : public Series {
public:
    // Null if memory ran out. capacity: events. track: its number.
    static TraceTrack* create(const SeriesKey& key, int64_t capacity, int32_t track);

    void record_span(ds_trace_kind kind, int64_t start_ns, int64_t end_ns, int64_t count, int32_t detail = 0);
    // A point of time on the way of a request.
    void record_request(ds_trace_kind kind, int64_t time_ns, uint64_t request, int32_t detail = 0);
    void read(ds_series_info* info) const override;
    // In the order in which they were recorded. Those that are replaced meanwhile are left out.
    int64_t read_rows(void* rows) const override;

private:
    static constexpr int64_t kWords = sizeof(ds_trace_event) / sizeof(uint64_t);
    struct Slot {
        std::atomic<uint64_t> words[kWords];
    };

    TraceTrack(const SeriesKey& key, int64_t capacity, int32_t track)
        : Series(key), capacity_(capacity), track_(track) {}
    void record(const ds_trace_event& event);
    Slot& slot_of(int64_t index) const { return slots_[static_cast<size_t>(index % (capacity_ + 1))]; }

    const int64_t capacity_;
    const int32_t track_;
    std::unique_ptr<Slot[]> slots_;     // one more than events are kept: the next event is in the making there
    std::atomic<int64_t> recorded_{0};  // since the creation
};

}  // namespace doorstep
