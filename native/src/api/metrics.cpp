// Stores of metrics, their series and traces.
#include <math.h>

#include <algorithm>
#include <new>

#include "api/call.h"
#include "metrics/sketch.h"
#include "metrics/time_series.h"
#include "runtime/futex.h"

namespace doorstep {
namespace {

constexpr double kLargestCount = 9007199254740992.0;  // 2**53

ds_status check_value(ds_series_kind kind, double value) {
    const bool suits = kind == DS_SERIES_COUNTER  ? value >= 0 && value <= kLargestCount && value == floor(value)
                       : kind == DS_SERIES_SKETCH ? value >= 0 && isfinite(value)
                                                  : isfinite(value);
    if (suits) return DS_STATUS_OK;
    const char* must = kind == DS_SERIES_COUNTER  ? "an integer, 0 to 2**53"
                       : kind == DS_SERIES_SKETCH ? "a finite number, at least 0"
                                                  : "a finite number";
    return fail(DS_STATUS_INVALID_ARGUMENT, "value", "", "value is %g; it must be %s", value, must);
}

// The sum of what a series has recorded, if it is of this kind.
ds_status sum_of(ds_series handle, ds_series_kind kind, const char* name_of_kind, std::unique_ptr<Samples>* sum) {
    const Ref<Series> series = series_handles.find(handle, "series");
    if (!series) return last_status();
    if (series->kind() != kind) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "series", "", "series %s is not a %s", series->info().name, name_of_kind);
    }
    *sum = series->sum();
    return *sum ? DS_STATUS_OK : fail_memory("what a series recorded");
}

}  // namespace
}  // namespace doorstep

using namespace doorstep;

// ---- Stores ----

ds_status ds_metrics_create(int64_t trace_capacity, ds_metrics* metrics) {
    if (!metrics) return fail_null("metrics");
    if (const ds_status status = check_range("trace_capacity", "0 is no trace", trace_capacity, 0, DS_MAX_TRACE_EVENTS)) {
        return status;
    }
    return give(metrics_stores, Ref<MetricsStore>::adopt(new (std::nothrow) MetricsStore(trace_capacity)),
                "a store of metrics", metrics);
}

ds_status ds_metrics_label(ds_metrics metrics, const char* labels, ds_metrics* part) {
    if (!labels) return fail_null("labels");
    if (!part) return fail_null("part");
    const Ref<MetricsStore> whole = metrics_stores.find(metrics, "metrics");
    if (!whole) return last_status();
    if (const ds_status status = check_labels(labels)) return status;
    return give(metrics_stores, Ref<MetricsStore>::adopt(new (std::nothrow) MetricsStore(whole, labels)),
                "a part of a store of metrics", part);
}

ds_status ds_metrics_release(ds_metrics metrics) {
    return metrics_stores.release(metrics, "metrics");
}

ds_status ds_metrics_open_series(ds_metrics metrics, int32_t kind, const char* name, const char* labels,
                                 const char* description, ds_series* series) {
    if (const ds_status status = check_range("kind", "pass a ds_series_kind", kind, 0, DS_SERIES_SKETCH)) return status;
    if (!name) return fail_null("name");
    if (!labels) return fail_null("labels");
    if (!description) return fail_null("description");
    if (!series) return fail_null("series");
    const Ref<MetricsStore> store = metrics_stores.find(metrics, "metrics");
    if (!store) return last_status();
    Ref<Series> found;
    const ds_status status = store->open(static_cast<ds_series_kind>(kind), name, labels, description, &found);
    return status ? status : give(series_handles, found, "a series", series);
}

ds_status ds_metrics_num_series(ds_metrics metrics, uint64_t* count) {
    if (!count) return fail_null("count");
    const Ref<MetricsStore> store = metrics_stores.find(metrics, "metrics");
    if (!store) return last_status();
    *count = static_cast<uint64_t>(store->num_series());
    return DS_STATUS_OK;
}

ds_status ds_metrics_get_series(ds_metrics metrics, uint64_t index, ds_series* series) {
    if (!series) return fail_null("series");
    const Ref<MetricsStore> store = metrics_stores.find(metrics, "metrics");
    if (!store) return last_status();
    const int64_t count = store->num_series();
    if (const ds_status status = check_range("index", "see ds_metrics_num_series()", static_cast<int64_t>(index), 0,
                                             count - 1)) {
        return status;
    }
    return give(series_handles, store->series(static_cast<int64_t>(index)), "a series", series);
}

ds_status ds_metrics_merge(ds_metrics metrics, ds_metrics source, const char* without) {
    if (!without) return fail_null("without");
    const Ref<MetricsStore> store = metrics_stores.find(metrics, "metrics");
    if (!store) return last_status();
    const Ref<MetricsStore> from = metrics_stores.find(source, "source");
    if (!from) return last_status();
    if (!store->shares_series_with(*from)) return store->merge(*from, without);
    return fail(DS_STATUS_INVALID_ARGUMENT, "source", "merge into a new store",
                "source is the store itself, or has series of the same store");
}

ds_status ds_metrics_get_trace(ds_metrics metrics, uint64_t most, ds_trace_event* events, uint64_t* count) {
    if (!count) return fail_null("count");
    const Ref<MetricsStore> store = metrics_stores.find(metrics, "metrics");
    if (!store) return last_status();
    *count = static_cast<uint64_t>(store->read_trace(static_cast<int64_t>(most), events));
    return DS_STATUS_OK;
}

// ---- Series ----

ds_status ds_series_release(ds_series series) {
    return series_handles.release(series, "series");
}

ds_status ds_series_get_info(ds_series series, ds_series_info* info) {
    Results<ds_series_info> results(info, "info");
    if (results.status()) return results.status();
    const Ref<Series> found = series_handles.find(series, "series");
    if (!found) return last_status();
    *results.fields() = found->info();
    results->struct_size = sizeof *info;
    return results.give();
}

ds_status ds_series_get_totals(ds_series series, ds_series_totals* totals) {
    Results<ds_series_totals> results(totals, "totals");
    if (results.status()) return results.status();
    const Ref<Series> found = series_handles.find(series, "series");
    if (!found) return last_status();
    const std::unique_ptr<Samples> sum = found->sum();
    if (!sum) return fail_memory("what a series recorded");
    sum->read(results.fields());
    return results.give();
}

ds_status ds_series_record(ds_series series, double value, int64_t time_ns) {
    if (const ds_status status = check_range("time_ns", "pass ds_monotonic_ns()", time_ns, 0, INT64_MAX)) return status;
    const Ref<Series> found = series_handles.find(series, "series");
    if (!found) return last_status();
    if (const ds_status status = check_value(found->kind(), value)) return status;
    found->record(value, time_ns);
    return DS_STATUS_OK;
}

ds_status ds_series_get_quantiles(ds_series series, int64_t window_ns, const double* fractions, uint64_t count,
                                  double* values) {
    constexpr int64_t kLongest = int64_t{DS_SKETCH_WINDOW_SECONDS} * 1'000'000'000;
    if (const ds_status status = check_range("window_ns", "0 is since the start", window_ns, 0, kLongest)) return status;
    if (!fractions) return fail_null("fractions");
    if (!values) return fail_null("values");
    for (uint64_t i = 0; i < count; ++i) {
        if (fractions[i] >= 0 && fractions[i] <= 1) continue;
        return fail(DS_STATUS_INVALID_ARGUMENT, "fractions", "", "fractions[%lu] is %g; it must be 0 to 1",
                    i, fractions[i]);
    }
    std::unique_ptr<Samples> sum;
    if (const ds_status status = sum_of(series, DS_SERIES_SKETCH, "sketch", &sum)) return status;
    const Sketch& sketch = static_cast<const Sketch&>(*sum);
    const int64_t since = std::max<int64_t>(monotonic_ns() - window_ns, 0);
    for (uint64_t i = 0; i < count; ++i) {
        values[i] = window_ns ? sketch.recent_quantile(fractions[i], since) : sketch.quantile(fractions[i]);
    }
    return DS_STATUS_OK;
}

ds_status ds_series_get_points(ds_series series, uint64_t most, ds_series_point* points, uint64_t* count) {
    if (!points) return fail_null("points");
    if (!count) return fail_null("count");
    std::unique_ptr<Samples> sum;
    if (const ds_status status = sum_of(series, DS_SERIES_TIME_SERIES, "time series", &sum)) return status;
    const int64_t limit = most < INT64_MAX ? static_cast<int64_t>(most) : INT64_MAX;
    *count = static_cast<uint64_t>(static_cast<const TimeSeries&>(*sum).read_points(points, limit));
    return DS_STATUS_OK;
}
