// What one writer at a time has recorded of a thing, on memory that no other one writes. Others read: what they read
// may lack the latest values, and its numbers may differ by the values being recorded.
#pragma once

#include <stdint.h>

#include <atomic>
#include <limits>

#include "doorstep/policies_and_rollouts.h"
#include "math/base.h"

namespace doorstep {

// Numbers that grow stay at the largest one.
template <class Integer>
Integer sum_of(Integer a, Integer b) {
    Integer sum;
    return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<Integer>::max() : sum;
}
inline double sum_of(double a, double b) { return a + b; }

// A number that one thread at a time writes while others read it. Writing costs what it costs on a plain number.
template <class Value>
class Cell {
public:
    Value get() const { return value_.load(std::memory_order_relaxed); }
    void set(Value value) { value_.store(value, std::memory_order_relaxed); }
    void add(Value more) { set(sum_of(get(), more)); }

private:
    std::atomic<Value> value_{};
};

// Sum, smallest, largest and number of some values.
class Totals {
public:
    void add(double value) { add(1, value, value, value); }
    void merge(const Totals& other) {
        DS_ASSERT(this != &other);
        if (const int64_t count = other.count()) add(count, other.sum_.get(), other.low_.get(), other.high_.get());
    }
    void clear() { count_.set(0); }

    int64_t count() const { return count_.get(); }
    double sum() const { return count() ? sum_.get() : 0; }
    double low() const { return count() ? low_.get() : 0; }
    double high() const { return count() ? high_.get() : 0; }

private:
    void add(int64_t count, double sum, double low, double high) {
        DS_ASSERT(count > 0 && count_.get() >= 0);
        const bool first = count_.get() == 0;
        sum_.set(first ? sum : sum_.get() + sum);
        if (first || low < low_.get()) low_.set(low);
        if (first || high > high_.get()) high_.set(high);
        count_.add(count);
    }

    Cell<int64_t> count_;
    Cell<double> sum_, low_, high_;
};

// As in ds_series_info.
struct SeriesKey {
    ds_metric metric;
    int32_t scheduler, replica, detail, variant;

    bool operator==(const SeriesKey&) const = default;
};

class Series {
public:
    virtual ~Series() = default;
    Series(const Series&) = delete;
    Series& operator=(const Series&) = delete;

    // What it is, and what of the totals it has.
    virtual void read(ds_series_info* info) const = 0;
    // As ds_metrics_get_rows(), with room for all.
    virtual int64_t read_rows(void*) const { return 0; }

    const SeriesKey key;
    const void* writer = nullptr;  // guarded by the store's mutex; null: nobody records

protected:
    explicit Series(const SeriesKey& key_of_this) : key(key_of_this) {}
};

class Counter final : public Series {
public:
    explicit Counter(const SeriesKey& key) : Series(key) {}

    void add(int64_t more) {
        DS_ASSERT(more >= 0);
        value_.add(more);
    }
    void read(ds_series_info* info) const override {
        info->kind = DS_SERIES_COUNTER;
        info->count = value_.get();
    }

private:
    Cell<int64_t> value_;
};

// Values with totals.
class Values : public Series {
protected:
    using Series::Series;

    void count(double value, int64_t time_ns) {
        totals_.add(value);
        last_.set(value);
        last_ns_.set(time_ns);
    }
    void read_totals(ds_series_info* info) const {
        info->count = totals_.count();
        info->sum = totals_.sum();
        info->minimum = totals_.low();
        info->maximum = totals_.high();
        info->last = last_.get();
        info->last_ns = last_ns_.get();
    }

private:
    Totals totals_;
    Cell<double> last_;
    Cell<int64_t> last_ns_;
};

}  // namespace doorstep
