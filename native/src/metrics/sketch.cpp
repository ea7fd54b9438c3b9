#include "metrics/sketch.h"

#include <math.h>
#include <string.h>

#include <algorithm>

#include "math/base.h"

namespace doorstep {
namespace {

constexpr int32_t kMantissaBits = 52, kExponentBias = 1023;

double power_of_two(int32_t exponent) {
    const uint64_t bits = static_cast<uint64_t>(exponent + kExponentBias) << kMantissaBits;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

int32_t exponent_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return static_cast<int32_t>(bits >> kMantissaBits) - kExponentBias;
}

}  // namespace

// -1: below the first bin.
int32_t Sketch::bin_of(double value) {
    if (!(value >= power_of_two(kLowExponent))) return -1;
    if (value >= power_of_two(kHighExponent)) return kBins - 1;
    const int32_t exponent = exponent_of(value);
    const double s = value / power_of_two(exponent) - 1;
    const int32_t within = static_cast<int32_t>(s * (4 - s) / 3 * kBinsPerOctave);
    return (exponent - kLowExponent) * kBinsPerOctave + std::min(within, kBinsPerOctave - 1);
}

// The inverse: s solves s (4 - s) / 3 = the place within the octave.
double Sketch::low_edge(int32_t bin) {
    const double place = static_cast<double>(bin % kBinsPerOctave) / kBinsPerOctave;
    return power_of_two(kLowExponent + bin / kBinsPerOctave) * (3 - sqrt(4 - 3 * place));
}

double Sketch::value_of(int32_t bin) {
    const double low = low_edge(bin), high = low_edge(bin + 1);
    return 2 * low * high / (low + high);
}

void Sketch::add(double value) {
    const int32_t bin = bin_of(value);
    (bin < 0 ? zeros_ : bins_[bin]).add(1);
    totals_.add(value);
}

int64_t Sketch::count() const {
    int64_t count = zeros_.get();
    for (const Cell<int64_t>& bin : bins_) count = sum_of(count, bin.get());
    return count;
}

double Sketch::quantile(double fraction) const {
    DS_ASSERT(fraction >= 0 && fraction <= 1);
    const int64_t count = this->count();
    if (count == 0) return 0;
    const int64_t place = static_cast<int64_t>(fraction * static_cast<double>(count - 1));
    int64_t below = zeros_.get();
    if (place < below) return 0;
    int32_t bin = 0;
    while (bin < kBins - 1 && (below = sum_of(below, bins_[bin].get())) <= place) ++bin;
    return std::max(totals_.low(), std::min(value_of(bin), totals_.high()));
}

void Sketch::merge(const Samples& other) {
    const Sketch& from = static_cast<const Sketch&>(other);
    zeros_.add(from.zeros_.get());
    for (int32_t bin = 0; bin < kBins; ++bin) {
        if (const int64_t more = from.bins_[bin].get()) bins_[bin].add(more);
    }
    totals_.merge(from.totals_);
}

void Sketch::read(ds_series_totals* totals) const {
    totals->count = count();
    totals->sum = totals_.sum();
    totals->minimum = totals_.low();
    totals->maximum = totals_.high();
}

}  // namespace doorstep
