// The series of an engine, or of several.
#pragma once

#include <memory>

#include "metrics/series.h"
#include "runtime/fork_mutex.h"
#include "runtime/reference.h"

namespace doorstep {

class MetricsStore : public LiveObject<DS_LIVE_METRICS> {
public:
    // trace_capacity: events of each writer; 0: none are recorded.
    explicit MetricsStore(int64_t trace_capacity);
    ~MetricsStore();

    int64_t trace_capacity() const { return trace_capacity_; }
    int64_t num_series();
    // In the order of their creation.
    Series& series(int64_t index);

    // A series of the key that nobody writes, or else a new one, is the writer's until close(). Kind: that of the
    // metric. The writer's threads record by turns, holding a lock that a fork waits for. OUT_OF_MEMORY;
    // INVALID_ARGUMENT if there are too many.
    template <class Kind>
    ds_status open(const SeriesKey& key, const void* writer, Kind** series) {
        Series* found = nullptr;
        const ds_status status = find_or_make(key, writer, &found);
        *series = static_cast<Kind*>(found);
        return status;
    }
    // All series of a writer are free for others.
    void close(const void* writer);

private:
    ds_status find_or_make(const SeriesKey& key, const void* writer, Series** series);
    std::unique_ptr<Series> make(const SeriesKey& key);
    bool grow();

    const int64_t trace_capacity_;
    ForkMutex mutex_;  // guards everything below, and the layouts of time series
    Series** series_ = nullptr;
    int64_t size_ = 0, capacity_ = 0;
};

}  // namespace doorstep
