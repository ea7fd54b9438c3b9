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
#pragma once

#include "metrics/samples.h"

namespace doorstep {

class Sketch final : public Samples {
public:
    static constexpr double kRelativeError = int32_t{DS_SKETCH_RELATIVE_ERROR_PERCENT} / 100.0;
    static constexpr int32_t kLowExponent = -40, kHighExponent = 40;

    void add(double value);
    int64_t count() const;
    // The value at place floor(fraction * (count - 1)) of all in ascending order. 0 if there are none.
    double quantile(double fraction) const;

    void record(double value, int64_t) override { add(value); }
    void merge(const Samples& other) override;
    void read(ds_series_totals* totals) const override;

private:
    static constexpr int32_t kBinsPerOctave = 38;
    static constexpr int32_t kBins = (kHighExponent - kLowExponent) * kBinsPerOctave;
    // tanh(x) < x
    static_assert(3.0 / (8 * kBinsPerOctave) < kRelativeError);

    static int32_t bin_of(double value);
    static double low_edge(int32_t bin);
    static double value_of(int32_t bin);

    Cell<int64_t> zeros_;  // values below the first bin
    Cell<int64_t> bins_[kBins];
    Totals totals_;
};

}  // namespace doorstep
