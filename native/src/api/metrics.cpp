// Stores of metrics, and their series.
#include <algorithm>
#include <new>

#include "api/call.h"

using namespace doorstep;

namespace {

// The store of a handle, if it has a series of this number.
ds_status find_series(ds_metrics metrics, uint64_t index, Ref<MetricsStore>* store) {
    *store = metrics_stores.find(metrics, "metrics");
    if (!*store) return last_status();
    const int64_t place = index < INT64_MAX ? static_cast<int64_t>(index) : INT64_MAX;
    return check_range("index", "see ds_metrics_num_series()", place, 0, (*store)->num_series() - 1);
}

}  // namespace

ds_status ds_metrics_create(int64_t trace_capacity, ds_metrics* metrics) {
    if (!metrics) return fail_null("metrics");
    constexpr int64_t kMost = DS_MAX_TRACE_EVENTS;
    const ds_status status = check_range("trace_capacity", "0 is no trace", trace_capacity, 0, kMost);
    if (status) return status;
    return give(metrics_stores, Ref<MetricsStore>::adopt(new (std::nothrow) MetricsStore(trace_capacity)),
                "a store of metrics", metrics);
}

ds_status ds_metrics_release(ds_metrics metrics) { return metrics_stores.release(metrics, "metrics"); }

ds_status ds_metrics_num_series(ds_metrics metrics, uint64_t* count) {
    if (!count) return fail_null("count");
    const Ref<MetricsStore> store = metrics_stores.find(metrics, "metrics");
    if (!store) return last_status();
    *count = static_cast<uint64_t>(store->num_series());
    return DS_STATUS_OK;
}

ds_status ds_metrics_get_series(ds_metrics metrics, uint64_t index, ds_series_info* info) {
    Results<ds_series_info> results(info, "info");
    if (results.status()) return results.status();
    Ref<MetricsStore> store;
    if (const ds_status status = find_series(metrics, index, &store)) return status;
    const Series& series = store->series(static_cast<int64_t>(index));
    const SeriesKey& key = series.key;
    results->metric = key.metric;
    results->scheduler = key.scheduler;
    results->replica = key.replica;
    results->detail = key.detail;
    results->variant = key.variant;
    series.read(results.fields());
    return results.give();
}

ds_status ds_metrics_get_rows(ds_metrics metrics, uint64_t index, uint64_t most, void* rows, uint64_t* count) {
    if (!rows) return fail_null("rows");
    if (!count) return fail_null("count");
    Ref<MetricsStore> store;
    if (const ds_status status = find_series(metrics, index, &store)) return status;
    const Series& series = store->series(static_cast<int64_t>(index));
    ds_series_info info = {};
    series.read(&info);
    if (most < info.most_rows) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "most", "pass most_rows of the series",
                    "most is %lu; it must be at least %lu", most, info.most_rows);
    }
    *count = static_cast<uint64_t>(series.read_rows(rows));
    return DS_STATUS_OK;
}
