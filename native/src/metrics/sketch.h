// Quantiles of values within a relative error, in bounded memory.
//
// C. Masson, J. E. Rim, H. K. Lee: DDSketch: A Fast and Fully-Mergeable Quantile Sketch with Relative-Error Guarantees,
// PVLDB 12 (2019). Values are counted in bins whose edges grow geometrically, so that one number of a bin is near all of
// its values. The sketch of a union has the sums of the bins: merging loses nothing.
//
// The paper collapses bins when there are too many. Here they span a fixed range and none is ever collapsed:
// 2**-40 to 2**40, which is, in seconds, from a picosecond to 34,000 years. Smaller values count as 0, larger ones as
// 2**40.
//
// Bins by a logarithm that needs no libm: between powers of two, log2(2**e * (1 + s)) is taken as e + s (4 - s) / 3,
// which is exact at both ends and rises with ln at a slope of at least 4/3. A bin of width 1/kBinsPerOctave hence spans a
// factor of at most exp(3 / (4 kBinsPerOctave)) = hi / lo, and 2 lo hi / (lo + hi) is within (hi - lo) / (hi + lo) =
// tanh(3 / (8 kBinsPerOctave)) of all its values, relatively.
//
// Bins also count the values of recent spans of time, all of one length, in a ring: a new span takes the place of the
// oldest. Spans begin at multiples of their length on the monotonic clock, hence those of two sketches add up too. No
// lock is needed for that: the span that is replaced has ended longer ago than the longest window that readers ask for.
//
// A bin's numbers lie side by side in pages that the system provides when they are first written: few bins of a sketch
// ever count anything.
#pragma once

#include "metrics/samples.h"
#include "runtime/memory.h"

namespace doorstep {

class Sketch final : public Samples {
public:
    static constexpr double kRelativeError = int32_t{DS_SKETCH_RELATIVE_ERROR_PERCENT} / 100.0;
    static constexpr int32_t kLowExponent = -40, kHighExponent = 40;
    static constexpr int32_t kSpanLog2 = 33;  // of the length of a span, nanoseconds: 8.6 s
    static constexpr int64_t kSpans = 8;      // the current one and those before it
    static_assert(((kSpans - 1) << kSpanLog2) / 1'000'000'000 >= DS_SKETCH_WINDOW_SECONDS);

    Sketch();
    // False: memory ran out, and nothing else may be called.
    explicit operator bool() const { return static_cast<bool>(pages_); }

    void add(double value, int64_t time_ns);
    int64_t count() const { return count(kEver); }
    // The value at place floor(fraction * (count - 1)) of all in ascending order. 0 if there are none.
    double quantile(double fraction) const { return quantile(fraction, kEver); }
    // The same of the values since then, and up to a span before.
    double recent_quantile(double fraction, int64_t since_ns) const { return quantile(fraction, spans_since(since_ns)); }

    void record(double value, int64_t time_ns) override { add(value, time_ns); }
    void merge(const Samples& other) override;
    void read(ds_series_totals* totals) const override;

private:
    static constexpr int32_t kBinsPerOctave = 38;
    static constexpr int32_t kBins = (kHighExponent - kLowExponent) * kBinsPerOctave;
    // tanh(x) < x
    static_assert(3.0 / (8 * kBinsPerOctave) < kRelativeError);

    struct Bin {
        Cell<int64_t> ever;
        Cell<uint32_t> recent[kSpans];
    };
    // Which values count: a bit for each place of the ring, or all ever.
    using Choice = uint32_t;
    static constexpr Choice kEver = 1u << kSpans;

    static int32_t bin_of(double value);
    static double low_edge(int32_t bin);
    static double value_of(int32_t bin);
    static int64_t number(const Bin& bin, Choice chosen);

    Bin* bins() const {
        DS_ASSERT(pages_);
        return reinterpret_cast<Bin*>(pages_.data());
    }
    bool make_current(int64_t span);
    Choice spans_since(int64_t time_ns) const;
    int64_t count(Choice chosen) const;
    double quantile(double fraction, Choice chosen) const;

    const Pages pages_;            // Bin[1 + kBins]; the first is of values that count as 0
    Cell<int64_t> spans_[kSpans];  // which span is at a place: its start / its length; -1: one is being replaced
    Totals totals_;
};

}  // namespace doorstep
