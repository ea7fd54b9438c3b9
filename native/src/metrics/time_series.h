// Values over time, in bounded memory: time is divided into equal spans, and each holds the totals of its values. When
// there is no room for a later span, spans become twice as long and neighbours one.
//
// Spans begin at multiples of their length on the monotonic clock. Those of two series hence coincide at the coarser
// length, and the series of a union is the union of the series.
#pragma once

#include "metrics/samples.h"
#include "runtime/fork_mutex.h"

namespace doorstep {

class TimeSeries final : public Samples {
public:
    static constexpr int64_t kSpans = DS_TIME_SERIES_POINTS;
    static constexpr int32_t kFirstLog2 = 26;  // of the length of the first spans, nanoseconds: 67 ms

    // readers: held by threads that read while another thread writes; null: no thread does.
    explicit TimeSeries(ForkMutex* readers) : readers_(readers) {}

    void add(double value, int64_t time_ns);
    // Up to `most` points, in the order of time; empty spans have none. Returns how many.
    int64_t read_points(ds_series_point* points, int64_t most) const;

    void record(double value, int64_t time_ns) override { add(value, time_ns); }
    void merge(const Samples& other) override;
    void read(ds_series_totals* totals) const override;

private:
    Totals& span_at(int64_t time_ns);
    void lay_out(int64_t first, int64_t last);
    void coarsen();
    void move_later(int64_t spans);

    ForkMutex* const readers_;
    // Changed with readers_ held: which spans there are.
    int32_t log2_ = kFirstLog2;     // of their length
    int64_t first_ = 0, used_ = 0;  // start of the first one / length; how many

    Totals spans_[kSpans];
    Cell<int64_t> last_ns_;  // of the latest value; 0: none
    Cell<double> last_;
};

}  // namespace doorstep
