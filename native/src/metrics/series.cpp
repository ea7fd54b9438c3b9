#include "metrics/series.h"

#include <string.h>

#include <new>

#include "metrics/sketch.h"
#include "metrics/time_series.h"
#include "runtime/status.h"

namespace doorstep {

ds_status fail_no_series_memory() {
    return fail(DS_STATUS_OUT_OF_MEMORY, "", "use fewer series, or raise the memory limit",
                "no memory is left for metrics");
}

ds_status Series::create(ds_series_kind kind, const char* name, const char* labels, const char* description,
                         Ref<Series>* series) {
    if (const ds_status status = check_series_name(name)) return status;
    if (const ds_status status = check_labels(labels)) return status;
    DS_ASSERT(!*series);
    if (strlen(description) >= sizeof ds_series_info::description) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "description", "shorten it", "description is longer than %d bytes",
                    static_cast<int>(sizeof ds_series_info::description) - 1);
    }
    const Ref<Series> made = Ref<Series>::adopt(new (std::nothrow) Series);
    if (!made || !(made->first_ = make_samples(kind, nullptr))) return fail_no_series_memory();
    made->info_.kind = kind;
    strcpy(made->info_.name, name);
    strcpy(made->info_.labels, labels);
    strcpy(made->info_.description, description);
    *series = made;
    return DS_STATUS_OK;
}

Series::~Series() {
    while (first_) {
        Samples* next = first_->next;
        delete first_;
        first_ = next;
    }
}

Samples* Series::make_samples(ds_series_kind kind, ForkMutex* readers) {
    switch (kind) {
    case DS_SERIES_COUNTER: return new (std::nothrow) Counter;
    case DS_SERIES_TIME_SERIES: return new (std::nothrow) TimeSeries(readers);
    default: {
        DS_ASSERT(kind == DS_SERIES_SKETCH);
        std::unique_ptr<Sketch> sketch(new (std::nothrow) Sketch);
        return sketch && *sketch ? sketch.release() : nullptr;
    }
    }
}

bool Series::is(const char* name, const char* labels) const {
    return strcmp(info_.name, name) == 0 && strcmp(info_.labels, labels) == 0;
}

// With the mutex held.
Samples* Series::last() const {
    DS_ASSERT(first_);
    Samples* last = first_;
    while (last->next) last = last->next;
    return last;
}

// ---- Writers ----

ds_status Series::open_writer(Samples** writer) {
    Samples* samples = make_samples(kind(), &mutex_);
    if (!samples) return fail_no_series_memory();
    DS_ASSERT(!samples->next);
    MutexGuard guard(mutex_);
    DS_ASSERT(first_);
    samples->next = first_;
    first_ = *writer = samples;
    return DS_STATUS_OK;
}

void Series::close_writer(Samples* samples) {
    DS_ASSERT(samples);
    {
        MutexGuard guard(mutex_);
        Samples** link = &first_;
        while (*link != samples) {
            DS_ASSERT(*link);
            link = &(*link)->next;
        }
        DS_ASSERT(samples->next);  // a writer's are never the last ones
        *link = samples->next;
        last()->merge(*samples);
    }
    delete samples;
}

void Series::record(double value, int64_t time_ns) {
    MutexGuard guard(mutex_);
    last()->record(value, time_ns);
}

// ---- Sums ----

std::unique_ptr<Samples> Series::sum() {
    std::unique_ptr<Samples> sum(make_samples(kind(), nullptr));
    if (!sum) return nullptr;
    MutexGuard guard(mutex_);
    DS_ASSERT(first_);
    for (const Samples* samples = first_; samples; samples = samples->next) sum->merge(*samples);
    return sum;
}

ds_status Series::merge(Series& other) {
    DS_ASSERT(&other != this && other.kind() == kind());
    const std::unique_ptr<Samples> more = other.sum();
    if (!more) return fail_no_series_memory();
    MutexGuard guard(mutex_);
    last()->merge(*more);
    return DS_STATUS_OK;
}

}  // namespace doorstep
