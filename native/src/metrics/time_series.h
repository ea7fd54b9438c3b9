// Values over time, in bounded memory: time is divided into equal spans, and each holds the totals of its values. When
// there is no room for a later span, spans become twice as long and neighbours one.
//
// Spans begin at multiples of their length on the monotonic clock. Those of two series hence coincide at the coarser
// length, and the series of a union is the union of the series.
#pragma once

#include "metrics/series.h"
#include "runtime/fork_mutex.h"

namespace doorstep {

class TimeSeries final : public Values {
public:
    static constexpr int64_t kSpans = DS_TIME_SERIES_POINTS;
    static constexpr int32_t kFirstLog2 = 26;  // of the length of the first spans, nanoseconds: 67 ms

    // mutex: held by threads that read rows while another thread writes.
    TimeSeries(const SeriesKey& key, ForkMutex* mutex) : Values(key), mutex_(mutex) {}

    // In the order of time; a value before the first span counts there.
    void add(double value, int64_t time_ns);
    void read(ds_series_info* info) const override;
    int64_t read_rows(void* rows) const override;

private:
    void lay_out(int64_t time_ns);
    void coarsen();

    ForkMutex* const mutex_;
    // Changed with the mutex held: which spans there are.
    int32_t log2_ = kFirstLog2;     // of their length
    int64_t first_ = 0, used_ = 0;  // start of the first one / length; how many
    Totals spans_[kSpans];
};

}  // namespace doorstep
