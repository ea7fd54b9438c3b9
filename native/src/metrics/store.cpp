#include "metrics/store.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <new>

#include "runtime/hash.h"
#include "runtime/status.h"

namespace doorstep {
namespace {

uint64_t hash_of(const char* name, const char* labels) {
    return hash_bytes(name, strlen(name)) ^ (hash_bytes(labels, strlen(labels)) << 1);
}

}  // namespace

MetricsStore::MetricsStore(int64_t trace_capacity) : trace_capacity_(trace_capacity) {
    DS_ASSERT(trace_capacity >= 0 && trace_capacity <= DS_MAX_TRACE_EVENTS);
}

MetricsStore::MetricsStore(const Ref<MetricsStore>& whole, const char* labels)
    : whole_(whole), trace_capacity_(whole->trace_capacity_) {
    DS_ASSERT(strlen(labels) < sizeof labels_);
    strcpy(labels_, labels);
}

MetricsStore::~MetricsStore() {
    DS_ASSERT(size_ <= entry_capacity_ && num_tracks_ <= DS_MAX_TRACE_TRACKS);
    for (int64_t i = 0; i < size_; ++i) Ref<Series>::adopt(entries_[i].series);
    free(entries_);
}

// ---- Series ----

// With the mutex held, as insert().
Series* MetricsStore::find(uint64_t hash, const char* name, const char* labels) const {
    DS_ASSERT(hash == hash_of(name, labels));
    for (int64_t i = 0; i < size_; ++i) {
        if (entries_[i].hash == hash && entries_[i].series->is(name, labels)) return entries_[i].series;
    }
    return nullptr;
}

ds_status MetricsStore::insert(uint64_t hash, const Ref<Series>& series) {
    DS_ASSERT(series && size_ <= entry_capacity_ && size_ <= DS_MAX_SERIES);
    DS_ASSERT(!find(hash, series->info().name, series->info().labels));
    if (size_ == DS_MAX_SERIES) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "labels", "use fewer different labels",
                    "the store has %d series, as many as it can hold", DS_MAX_SERIES);
    }
    if (size_ == entry_capacity_) {
        const int64_t grown = entry_capacity_ ? 2 * entry_capacity_ : 64;
        void* memory = realloc(entries_, static_cast<size_t>(grown) * sizeof(Entry));
        if (!memory) return fail_no_series_memory();
        entries_ = static_cast<Entry*>(memory);
        entry_capacity_ = grown;
    }
    entries_[size_++] = {hash, Ref<Series>(series).leak()};
    return DS_STATUS_OK;
}

ds_status MetricsStore::open(ds_series_kind kind, const char* name, const char* labels, const char* description,
                             Ref<Series>* series) {
    DS_ASSERT(!*series);
    if (whole_) return open_in_whole(kind, name, labels, description, series);
    const uint64_t hash = hash_of(name, labels);
    Ref<Series> made;
    {
        MutexGuard guard(mutex_);
        if (Series* found = find(hash, name, labels)) *series = Ref<Series>::share(found);
    }
    if (!*series) {
        // Without the lock: a series lists its own, and a fork holds all
        if (const ds_status status = Series::create(kind, name, labels, description, &made)) return status;
        MutexGuard guard(mutex_);
        Series* found = find(hash, name, labels);
        if (!found) {
            if (const ds_status status = insert(hash, made)) return status;
            found = made.get();
        }
        *series = Ref<Series>::share(found);
    }
    if ((*series)->kind() == kind) return DS_STATUS_OK;
    *series = {};
    return fail(DS_STATUS_INVALID_ARGUMENT, "kind", "use another name", "the store has a series %s of another kind", name);
}

ds_status MetricsStore::open_in_whole(ds_series_kind kind, const char* name, const char* labels,
                                      const char* description, Ref<Series>* series) {
    DS_ASSERT(whole_ && whole_.get() != this);
    if (const ds_status status = check_labels(labels)) return status;
    char all[sizeof labels_];
    if (const ds_status status = merge_labels(labels_, labels, all)) return status;
    Ref<Series> opened;
    if (const ds_status status = whole_->open(kind, name, all, description, &opened)) return status;
    DS_ASSERT(opened);
    const ds_series_info& info = opened->info();  // with the labels of the whole, if it is a part itself
    const uint64_t hash = hash_of(info.name, info.labels);
    MutexGuard guard(mutex_);
    if (!find(hash, info.name, info.labels)) {
        if (const ds_status status = insert(hash, opened)) return status;
    }
    *series = std::move(opened);
    return DS_STATUS_OK;
}

int64_t MetricsStore::num_series() {
    MutexGuard guard(mutex_);
    return size_;
}

Ref<Series> MetricsStore::series(int64_t index) {
    DS_ASSERT(index >= 0);
    MutexGuard guard(mutex_);
    return index < size_ ? Ref<Series>::share(entries_[index].series) : Ref<Series>();
}

ds_status MetricsStore::merge(MetricsStore& other, const char* without) {
    DS_ASSERT(!shares_series_with(other) && without);
    Ref<Series> from;
    for (int64_t i = 0; (from = other.series(i)); ++i) {
        const ds_series_info& info = from->info();
        char labels[sizeof info.labels];
        copy_labels_without(info.labels, without, labels);
        Ref<Series> to;
        if (const ds_status status = open(from->kind(), info.name, labels, info.description, &to)) return status;
        if (const ds_status status = to->merge(*from)) return status;
    }
    return DS_STATUS_OK;
}

// ---- Trace ----

ds_status MetricsStore::open_track(int32_t replica, Ref<TraceTrack>* track) {
    DS_ASSERT(replica >= -1);
    *track = {};
    if (trace_capacity_ == 0) return DS_STATUS_OK;
    if (whole_) return whole_->open_track(replica, track);
    MutexGuard guard(mutex_);
    if (num_tracks_ == DS_MAX_TRACE_TRACKS) {
        return fail(DS_STATUS_INVALID_ARGUMENT, "metrics", "make a new store",
                    "%d queues and replicas have used this store's trace, as many as it can hold", DS_MAX_TRACE_TRACKS);
    }
    Ref<TraceTrack> made = TraceTrack::create(trace_capacity_, num_tracks_, replica);
    if (!made) return fail_no_series_memory();
    tracks_[num_tracks_++] = made;
    *track = std::move(made);
    return DS_STATUS_OK;
}

int64_t MetricsStore::read_trace(int64_t most, ds_trace_event* events) {
    DS_ASSERT(most >= 0);
    if (whole_) return whole_->read_trace(most, events);
    Ref<TraceTrack> tracks[DS_MAX_TRACE_TRACKS];
    {
        MutexGuard guard(mutex_);
        DS_ASSERT(num_tracks_ <= DS_MAX_TRACE_TRACKS);
        std::copy_n(tracks_, num_tracks_, tracks);
    }
    int64_t count = 0;
    for (int32_t i = 0; i < DS_MAX_TRACE_TRACKS && tracks[i]; ++i) {
        if (!events) count += tracks[i]->capacity();
        else if (tracks[i]->capacity() <= most - count) count += tracks[i]->read(events + count);
    }
    DS_ASSERT(!events || count <= most);
    return count;
}

}  // namespace doorstep
