#include "metrics/store.h"

#include <stdlib.h>

#include <algorithm>
#include <new>

#include "metrics/sketch.h"
#include "metrics/time_series.h"
#include "metrics/trace.h"
#include "runtime/status.h"

namespace doorstep {

MetricsStore::MetricsStore(int64_t trace_capacity) : trace_capacity_(trace_capacity) {
    DS_ASSERT(trace_capacity >= 0 && trace_capacity <= DS_MAX_TRACE_EVENTS);
}

MetricsStore::~MetricsStore() {
    std::for_each(series_, series_ + size_, [](Series* series) { delete series; });
    free(series_);
}

int64_t MetricsStore::num_series() {
    MutexGuard guard(mutex_);
    return size_;
}

Series& MetricsStore::series(int64_t index) {
    MutexGuard guard(mutex_);
    DS_ASSERT(index >= 0 && index < size_);
    return *series_[index];
}

void MetricsStore::close(const void* writer) {
    DS_ASSERT(writer);
    MutexGuard guard(mutex_);
    for (int64_t i = 0; i < size_; ++i) {
        if (series_[i]->writer == writer) series_[i]->writer = nullptr;
    }
}

ds_status MetricsStore::find_or_make(const SeriesKey& key, const void* writer, Series** series) {
    DS_ASSERT(writer);
    MutexGuard guard(mutex_);
    const auto is_free = [&](const Series* one) { return !one->writer && one->key == key; };
    Series** const last = series_ + size_;
    Series** const found = std::find_if(series_, last, is_free);
    if (found == last) {
        if (size_ == DS_MAX_SERIES) {
            return fail(DS_STATUS_INVALID_ARGUMENT, "metrics", "make a new store",
                        "the store has %d series, as many as it can hold", DS_MAX_SERIES);
        }
        std::unique_ptr<Series> made = make(key);
        if (!made || !grow()) {
            return fail(DS_STATUS_OUT_OF_MEMORY, "", "raise the memory limit", "no memory is left for metrics");
        }
        series_[size_++] = made.release();
    }
    *series = found == last ? series_[size_ - 1] : *found;
    (*series)->writer = writer;
    return DS_STATUS_OK;
}

// With the mutex held, as grow(); null: memory ran out.
std::unique_ptr<Series> MetricsStore::make(const SeriesKey& key) {
    Series* made;
    if (key.metric == DS_METRIC_TRACE) {
        made = TraceTrack::create(key, trace_capacity_, static_cast<int32_t>(size_));
    } else if (key.metric >= DS_METRIC_ACTIVE_WORLDS) {
        made = new (std::nothrow) TimeSeries(key, &mutex_);
    } else if (key.metric >= DS_METRIC_QUEUE_WAIT_SECONDS) {
        std::unique_ptr<Sketch> sketch(new (std::nothrow) Sketch(key));
        made = sketch && *sketch ? sketch.release() : nullptr;
    } else {
        made = new (std::nothrow) Counter(key);
    }
    return std::unique_ptr<Series>(made);
}

bool MetricsStore::grow() {
    if (size_ < capacity_) return true;
    const int64_t grown = std::max<int64_t>(2 * capacity_, 64);
    void* memory = realloc(series_, static_cast<size_t>(grown) * sizeof *series_);
    if (!memory) return false;
    series_ = static_cast<Series**>(memory);
    capacity_ = grown;
    return true;
}

}  // namespace doorstep
