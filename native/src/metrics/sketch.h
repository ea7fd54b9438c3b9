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

#include "metrics/series.h"
#include "runtime/memory.h"

namespace doorstep {

class Sketch final : public Values {
public:
    static constexpr int32_t kSpanLog2 = DS_SKETCH_SPAN_LOG2;
    static constexpr int64_t kSpans = DS_SKETCH_SPANS;
    static_assert(((kSpans - 1) << kSpanLog2) / 1'000'000'000 >= DS_SKETCH_WINDOW_SECONDS);

    explicit Sketch(const SeriesKey& key);
    // False: memory ran out, and nothing else may be called.
    explicit operator bool() const { return static_cast<bool>(pages_); }

    void add(double value, int64_t time_ns);
    void read(ds_series_info* info) const override;
    int64_t read_rows(void* rows) const override;

private:
    static constexpr int32_t kBinsPerOctave = DS_SKETCH_BINS_PER_OCTAVE;
    static constexpr int32_t kBins = int32_t{DS_SKETCH_OCTAVES} * kBinsPerOctave;
    // tanh(x) < x
    static_assert(3.0 / (8 * kBinsPerOctave) < int32_t{DS_SKETCH_RELATIVE_ERROR_PERCENT} / 100.0);

    struct Bin {
        Cell<int64_t> ever;
        Cell<uint32_t> recent[kSpans];
    };

    static int32_t bin_of(double value);
    Bin* bins() const {
        DS_ASSERT(pages_);
        return reinterpret_cast<Bin*>(pages_.data());
    }
    bool make_current(int64_t span);

    const Pages pages_;            // Bin[1 + kBins]; the first is of values that count as 0
    Cell<int64_t> spans_[kSpans];  // which span is at a place: its start / its length; -1: one is being replaced
};

}  // namespace doorstep
