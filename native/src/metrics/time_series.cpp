#include "metrics/time_series.h"

#include <algorithm>

namespace doorstep {

void TimeSeries::add(double value, int64_t time_ns) {
    DS_ASSERT(time_ns >= 0);
    if (time_ns >> log2_ >= first_ + used_) lay_out(time_ns);
    const int64_t place = std::max<int64_t>((time_ns >> log2_) - first_, 0);
    DS_ASSERT(place < used_ && used_ <= kSpans);
    spans_[place].add(value);
    count(value, time_ns);
}

// Makes spans up to that of a time.
void TimeSeries::lay_out(int64_t time_ns) {
    MutexGuard guard(*mutex_);
    if (used_ == 0) first_ = time_ns >> log2_;
    while ((time_ns >> log2_) - first_ >= kSpans) coarsen();
    while (first_ + used_ <= time_ns >> log2_) spans_[used_++].clear();
}

void TimeSeries::coarsen() {
    DS_ASSERT(used_ > 0 && log2_ < 62);
    const int64_t first = first_ >> 1;
    for (int64_t i = 1; i < used_; ++i) {
        Totals& both = spans_[((first_ + i) >> 1) - first];
        if (&both == &spans_[i]) continue;
        if ((first_ + i) % 2 == 0) both.clear();
        both.merge(spans_[i]);
    }
    used_ = ((first_ + used_ - 1) >> 1) + 1 - first;
    first_ = first;
    ++log2_;
}

void TimeSeries::read(ds_series_info* info) const {
    info->kind = DS_SERIES_TIME_SERIES;
    info->most_rows = kSpans;
    read_totals(info);
}

// Empty spans have no point.
int64_t TimeSeries::read_rows(void* rows) const {
    ds_series_point* const points = static_cast<ds_series_point*>(rows);
    MutexGuard guard(*mutex_);
    int64_t count = 0;
    for (int64_t i = 0; i < used_; ++i) {
        const Totals& span = spans_[i];
        if (span.count() == 0) continue;
        const int64_t start = (first_ + i) << log2_, length = int64_t{1} << log2_;
        points[count++] = {start, length, span.count(), span.sum(), span.low(), span.high()};
    }
    return count;
}

}  // namespace doorstep
