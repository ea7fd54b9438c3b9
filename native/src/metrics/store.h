// The series of an engine, or of several, and the events of its trace.
#pragma once

#include "metrics/series.h"
#include "metrics/trace.h"

namespace doorstep {

class MetricsStore : public LiveObject<DS_LIVE_METRICS> {
public:
    // trace_capacity: events of each writer; 0: none are recorded.
    explicit MetricsStore(int64_t trace_capacity);
    // A part of another store: what is opened in it gets these labels too, and is in both.
    MetricsStore(const Ref<MetricsStore>& whole, const char* labels);
    ~MetricsStore();

    // Finds the series with this name and these labels, or creates it. As Series::create(); INVALID_ARGUMENT
    // also if it is of another kind, or there are too many.
    ds_status open(ds_series_kind kind, const char* name, const char* labels, const char* description,
                   Ref<Series>* series);
    int64_t num_series();
    // In the order of their creation; null behind the last.
    Ref<Series> series(int64_t index);

    // Whether both keep series in one store: itself, or the one that they are parts of.
    bool shares_series_with(const MetricsStore& other) const { return root() == other.root(); }
    // Adds all series of another store, which shares none, to those of this one; what it lacks is made. without: names
    // of labels that are left out, separated by commas. As open().
    ds_status merge(MetricsStore& other, const char* without);

    // A track of the trace for one writer; null, with OK, if there is no trace. replica: its number, or -1.
    ds_status open_track(int32_t replica, Ref<TraceTrack>* track);
    // As ds_metrics_get_trace(); returns how many.
    int64_t read_trace(int64_t most, ds_trace_event* events);

private:
    struct Entry {
        uint64_t hash;
        Series* series;  // with a reference
    };

    const MetricsStore* root() const { return whole_ ? whole_->root() : this; }
    ds_status open_in_whole(ds_series_kind kind, const char* name, const char* labels, const char* description,
                            Ref<Series>* series);
    Series* find(uint64_t hash, const char* name, const char* labels) const;
    ds_status insert(uint64_t hash, const Ref<Series>& series);

    const Ref<MetricsStore> whole_;  // null: this is no part of another
    char labels_[sizeof ds_series_info::labels] = "";
    const int64_t trace_capacity_;
    ForkMutex mutex_;  // guards everything below
    Entry* entries_ = nullptr;
    int64_t size_ = 0, entry_capacity_ = 0;
    Ref<TraceTrack> tracks_[DS_MAX_TRACE_TRACKS];
    int32_t num_tracks_ = 0;
};

}  // namespace doorstep
