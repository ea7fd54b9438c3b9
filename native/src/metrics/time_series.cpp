#include "metrics/time_series.h"

#include <algorithm>

#include "math/base.h"

namespace doorstep {

// ---- Recording ----

void TimeSeries::add(double value, int64_t time_ns) {
    DS_ASSERT(time_ns >= 0);
    span_at(time_ns).add(value);
    if (time_ns < last_ns_.get()) return;
    last_.set(value);
    last_ns_.set(time_ns);
}

Totals& TimeSeries::span_at(int64_t time_ns) {
    int64_t index = time_ns >> log2_;
    if (index < first_ || index >= first_ + used_) {
        if (readers_) readers_->lock();
        lay_out(index, index + 1);
        if (readers_) readers_->unlock();
        index = time_ns >> log2_;
    }
    DS_ASSERT(index >= first_ && index < first_ + used_ && used_ <= kSpans);
    return spans_[index - first_];
}

// Makes room for the spans [first, last) beside those that there are.
void TimeSeries::lay_out(int64_t first, int64_t last) {
    DS_ASSERT(first >= 0 && first < last);
    if (used_ == 0) first_ = first;
    else first = std::min(first, first_);
    last = std::max(last, first_ + used_);
    while (last - first > kSpans) {
        coarsen();
        first >>= 1;
        last = ((last - 1) >> 1) + 1;
    }
    if (used_ > 0 && first < first_) move_later(first_ - first);
    first_ = first;
    for (int64_t i = used_; i < last - first; ++i) spans_[i].clear();
    used_ = last - first;
    DS_ASSERT(used_ > 0 && used_ <= kSpans);
}

void TimeSeries::coarsen() {
    const int64_t first = first_ >> 1, used = used_ ? ((first_ + used_ - 1) >> 1) + 1 - first : 0;
    DS_ASSERT(used <= used_ && log2_ < 62);
    for (int64_t i = 0; i < used; ++i) {
        Totals both;
        for (int64_t from = 2 * (first + i) - first_; from < 2 * (first + i) - first_ + 2; ++from) {
            if (from >= 0 && from < used_) both.merge(spans_[from]);
        }
        spans_[i].replace(both);
    }
    first_ = first;
    used_ = used;
    ++log2_;
}

void TimeSeries::move_later(int64_t spans) {
    DS_ASSERT(spans > 0 && used_ + spans <= kSpans);
    for (int64_t i = used_; i-- > 0;) spans_[i + spans].replace(spans_[i]);
    for (int64_t i = 0; i < spans; ++i) spans_[i].clear();
    used_ += spans;
}

void TimeSeries::merge(const Samples& other) {
    const TimeSeries& from = static_cast<const TimeSeries&>(other);
    DS_ASSERT(this != &from);
    if (from.used_ == 0) return;
    while (log2_ < from.log2_) coarsen();
    const int32_t finer = log2_ - from.log2_;
    lay_out(from.first_ >> finer, ((from.first_ + from.used_ - 1) >> finer) + 1);
    const int32_t coarser = log2_ - from.log2_;
    DS_ASSERT(finer >= 0 && coarser >= finer);
    DS_ASSERT(from.first_ >> coarser >= first_ && (from.first_ + from.used_ - 1) >> coarser < first_ + used_);
    for (int64_t i = 0; i < from.used_; ++i) spans_[((from.first_ + i) >> coarser) - first_].merge(from.spans_[i]);
    if (from.last_ns_.get() < last_ns_.get()) return;
    last_.set(from.last_.get());
    last_ns_.set(from.last_ns_.get());
}

// ---- Reading ----

int64_t TimeSeries::read_points(ds_series_point* points, int64_t most) const {
    DS_ASSERT(most >= 0);
    int64_t count = 0;
    for (int64_t i = 0; i < used_ && count < most; ++i) {
        const Totals& span = spans_[i];
        if (span.count() == 0) continue;
        points[count++] = {(first_ + i) << log2_, int64_t{1} << log2_, span.count(), span.sum(), span.low(), span.high()};
    }
    return count;
}

void TimeSeries::read(ds_series_totals* totals) const {
    DS_ASSERT(used_ >= 0 && used_ <= kSpans);
    Totals all;
    for (int64_t i = 0; i < used_; ++i) all.merge(spans_[i]);
    totals->count = all.count();
    totals->sum = all.sum();
    totals->minimum = all.low();
    totals->maximum = all.high();
    totals->last = last_.get();
    totals->last_ns = last_ns_.get();
}

}  // namespace doorstep
