// What was recorded of something: a counter, a time series or a sketch. One thread at a time records, others read.
// What they read may lack the latest values, and its numbers may differ by the values being recorded.
#pragma once

#include <stdint.h>

#include <atomic>

#include "doorstep/policies_and_rollouts.h"
#include "math/base.h"

namespace doorstep {

// Numbers that grow stay at the largest one.
inline int64_t sum_of(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}
inline uint32_t sum_of(uint32_t a, uint32_t b) {
    uint32_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT32_MAX : sum;
}
inline double sum_of(double a, double b) { return a + b; }

// A number that one thread at a time writes while others read it.
// Writers take turns by a lock of their own, see Series::open_writer(). Writing costs what it costs on a plain number.
template <class Value>
class Cell {
public:
    Value get() const { return value_.load(std::memory_order_relaxed); }
    void set(Value value) { value_.store(value, std::memory_order_relaxed); }
    void add(Value more) { set(sum_of(get(), more)); }

private:
    std::atomic<Value> value_{};
};

class Samples {
public:
    virtual ~Samples() = default;
    // time_ns: on monotonic_ns(); counters ignore it
    virtual void record(double value, int64_t time_ns) = 0;
    // Adds what another one of the same kind has recorded, while it may go on.
    virtual void merge(const Samples& other) = 0;
    virtual void read(ds_series_totals* totals) const = 0;

    Samples* next = nullptr;  // of a series
};

class Counter final : public Samples {
public:
    void add(int64_t more) {
        DS_ASSERT(more >= 0);
        value_.add(more);
    }
    int64_t value() const { return value_.get(); }

    void record(double value, int64_t) override { add(static_cast<int64_t>(value)); }
    void merge(const Samples& other) override {
        DS_ASSERT(this != &other);
        add(static_cast<const Counter&>(other).value());
    }
    void read(ds_series_totals* totals) const override {
        DS_ASSERT(value() >= 0);
        totals->count = value();
        totals->sum = static_cast<double>(totals->count);
    }

private:
    Cell<int64_t> value_;
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
    void replace(const Totals& other) {
        DS_ASSERT(this != &other);
        clear();
        merge(other);
    }

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

}  // namespace doorstep
