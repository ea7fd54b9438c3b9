// A named series: everything that any number of writers have recorded of one thing.
//
// A writer has samples of its own, which no other thread writes: recording takes no lock and shares no memory. A reader
// adds them up.
#pragma once

#include <memory>

#include "metrics/samples.h"
#include "runtime/fork_mutex.h"
#include "runtime/reference.h"

namespace doorstep {

// ---- Labels, in labels.cpp: text, as Prometheus writes them: name="value",... in ascending order of names.

// Letters, digits and underscores, no digit first. INVALID_ARGUMENT.
ds_status check_series_name(const char* name);
// INVALID_ARGUMENT if it is no such text.
ds_status check_labels(const char* labels);
// Copies labels without those of some names, which are separated by commas. to: as long as the labels.
void copy_labels_without(const char* labels, const char* names, char* to);
// Writes the labels of both, in order, to [sizeof ds_series_info::labels]. INVALID_ARGUMENT: they are too long, or a name
// is in both.
ds_status merge_labels(const char* a, const char* b, char* to);

// ---- Series

// No memory is left for what series record.
ds_status fail_no_series_memory();

class Series : public RefCounted {
public:
    // OUT_OF_MEMORY, and INVALID_ARGUMENT for a name, labels or a description that are malformed or too long.
    static ds_status create(ds_series_kind kind, const char* name, const char* labels, const char* description,
                            Ref<Series>* series);
    ~Series();

    ds_series_kind kind() const { return static_cast<ds_series_kind>(info_.kind); }
    const ds_series_info& info() const { return info_; }
    bool is(const char* name, const char* labels) const;

    // Samples of a writer, whose threads record by turns, holding a lock that a fork waits for. OUT_OF_MEMORY.
    ds_status open_writer(Samples** writer);
    // What the writer recorded stays.
    void close_writer(Samples* samples);

    // For those without a writer.
    void record(double value, int64_t time_ns);
    // OUT_OF_MEMORY.
    ds_status merge(Series& other);

    // The sum of all samples; null if memory ran out.
    std::unique_ptr<Samples> sum();

private:
    Series() = default;
    static Samples* make_samples(ds_series_kind kind, ForkMutex* readers);
    Samples* last() const;

    ds_series_info info_ = {};
    ForkMutex mutex_;           // guards everything below; held by readers
    Samples* first_ = nullptr;  // of the writers, and last those of all others
};

// A series that one writer records in, and its samples.
template <class Kind>
class Writer {
public:
    Writer() = default;
    ~Writer() { close(); }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    ds_status open(const Ref<Series>& series) {
        DS_ASSERT(!samples_);
        Samples* samples;
        if (const ds_status status = series->open_writer(&samples)) return status;
        DS_ASSERT(samples);
        series_ = series;
        samples_ = static_cast<Kind*>(samples);
        return DS_STATUS_OK;
    }
    void close() {
        if (samples_) series_->close_writer(samples_);
        samples_ = nullptr;
        series_ = {};
    }
    explicit operator bool() const { return samples_ != nullptr; }
    Kind* operator->() const {
        DS_ASSERT(samples_);
        return samples_;
    }

private:
    Ref<Series> series_;
    Kind* samples_ = nullptr;
};

}  // namespace doorstep
