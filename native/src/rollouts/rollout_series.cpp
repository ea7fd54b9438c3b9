#include "rollouts/rollout_series.h"

#include <stdio.h>

namespace doorstep {
namespace {

struct SeriesRow {
    const char* name;
    ds_series_kind kind;
    const char* sentence;
};

constexpr SeriesRow kRows[] = {
#define DS_ROLLOUT_SERIES_ROW(name, kind, sentence) {#name, DS_SERIES_##kind, sentence},
    DS_ROLLOUT_SERIES_TABLE(DS_ROLLOUT_SERIES_ROW)
#undef DS_ROLLOUT_SERIES_ROW
};

constexpr const char* kSchedulers[] = {"fixed_chunk",       "dynamic_chunk",         "priority",
                                       "earliest_deadline", "least_remaining_steps", "fair_share", "caller"};

}  // namespace

ds_status open_rollout_series(MetricsStore& store, RolloutSeries which, const RolloutLabels& labels,
                              const char* first_labels, Ref<Series>* series) {
    const SeriesRow& row = kRows[static_cast<int>(which)];
    char replica[32] = "", all[sizeof ds_series_info::labels];
    if (labels.replica >= 0) snprintf(replica, sizeof replica, "replica=\"%d\",", labels.replica);
    snprintf(all, sizeof all, "%s%s%sscheduler=\"%s\"", first_labels, *first_labels ? "," : "", replica,
             kSchedulers[labels.scheduler]);
    return store.open(row.kind, row.name, all, row.sentence, series);
}

}  // namespace doorstep
