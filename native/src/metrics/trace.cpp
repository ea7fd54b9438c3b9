#include "metrics/trace.h"

#include <string.h>

#include <algorithm>
#include <new>

namespace doorstep {

TraceTrack* TraceTrack::create(const SeriesKey& key, int64_t capacity, int32_t track) {
    DS_ASSERT(capacity > 0 && track >= 0);
    std::unique_ptr<TraceTrack> made(new (std::nothrow) TraceTrack(key, capacity, track));
    if (made) made->slots_.reset(new (std::nothrow) Slot[static_cast<size_t>(capacity + 1)]());
    return made && made->slots_ ? made.release() : nullptr;
}

void TraceTrack::record_span(ds_trace_kind kind, int64_t start_ns, int64_t end_ns, int64_t count, int32_t detail) {
    DS_ASSERT(start_ns <= end_ns && count >= 0);
    record({start_ns, end_ns - start_ns, 0, count, kind, detail, track_, key.replica});
}

void TraceTrack::record_request(ds_trace_kind kind, int64_t time_ns, uint64_t request, int32_t detail) {
    DS_ASSERT(request && time_ns >= 0);
    record({time_ns, 0, request, 0, kind, detail, track_, key.replica});
}

// A reader that sees a word of event i sees that i events have been recorded: words are stored behind that number, and
// are loaded before it.
void TraceTrack::record(const ds_trace_event& event) {
    uint64_t words[kWords];
    memcpy(words, &event, sizeof event);
    const int64_t index = recorded_.load(std::memory_order_relaxed);
    DS_ASSERT(index >= 0);
    Slot& slot = slot_of(index);
    for (int64_t i = 0; i < kWords; ++i) slot.words[i].store(words[i], std::memory_order_release);
    recorded_.store(index + 1, std::memory_order_release);
}

void TraceTrack::read(ds_series_info* info) const {
    info->kind = DS_SERIES_TRACE;
    info->most_rows = static_cast<uint64_t>(capacity_);
    info->count = recorded_.load(std::memory_order_relaxed);
}

int64_t TraceTrack::read_rows(void* rows) const {
    ds_trace_event* const events = static_cast<ds_trace_event*>(rows);
    const int64_t end = recorded_.load(std::memory_order_acquire);
    const int64_t begin = std::max<int64_t>(end - capacity_, 0);
    for (int64_t index = begin; index < end; ++index) {
        const Slot& slot = slot_of(index);
        uint64_t words[kWords];
        for (int64_t i = 0; i < kWords; ++i) words[i] = slot.words[i].load(std::memory_order_acquire);
        memcpy(&events[index - begin], words, sizeof words);
    }
    const int64_t first_whole = std::clamp(recorded_.load(std::memory_order_relaxed) - capacity_, begin, end);
    DS_ASSERT(first_whole >= begin && end - begin <= capacity_);
    std::copy(events + (first_whole - begin), events + (end - begin), events);
    return end - first_whole;
}

}  // namespace doorstep
