#include "metrics/sketch.h"

#include <math.h>
#include <string.h>

#include <algorithm>

#include "math/base.h"

namespace doorstep {
namespace {

constexpr int32_t kMantissaBits = 52, kExponentBias = 1023;

double power_of_two(int32_t exponent) {
    DS_ASSERT(exponent > -kExponentBias && exponent <= kExponentBias);
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

Sketch::Sketch() : pages_(map_pages((1 + kBins) * static_cast<int64_t>(sizeof(Bin)), "metrics")) {}

// ---- Bins ----

// 0: values that count as 0.
int32_t Sketch::bin_of(double value) {
    if (!(value >= power_of_two(kLowExponent))) return 0;
    if (value >= power_of_two(kHighExponent)) return kBins;
    const int32_t exponent = exponent_of(value);
    DS_ASSERT(exponent >= kLowExponent && exponent < kHighExponent);
    const double s = value / power_of_two(exponent) - 1;
    DS_ASSERT(s >= 0 && s < 1);
    const int32_t within = static_cast<int32_t>(s * (4 - s) / 3 * kBinsPerOctave);
    return 1 + (exponent - kLowExponent) * kBinsPerOctave + std::min(within, kBinsPerOctave - 1);
}

// The inverse, of a bin without the first: s solves s (4 - s) / 3 = the place within the octave.
double Sketch::low_edge(int32_t bin) {
    DS_ASSERT(bin >= 0 && bin <= kBins);
    const double place = static_cast<double>(bin % kBinsPerOctave) / kBinsPerOctave;
    return power_of_two(kLowExponent + bin / kBinsPerOctave) * (3 - sqrt(4 - 3 * place));
}

double Sketch::value_of(int32_t bin) {
    if (bin == 0) return 0;
    const double low = low_edge(bin - 1), high = low_edge(bin);
    DS_ASSERT(low > 0 && low < high);
    return 2 * low * high / (low + high);
}

// ---- Recording ----

void Sketch::add(double value, int64_t time_ns) {
    DS_ASSERT(time_ns >= 0);
    Bin& bin = bins()[bin_of(value)];
    const int64_t span = time_ns >> kSpanLog2;
    bin.ever.add(1);
    if (make_current(span)) bin.recent[span % kSpans].add(1);
    totals_.add(value);
}

// Gives the span its place, unless a later one has it. Returns whether it is there.
bool Sketch::make_current(int64_t span) {
    DS_ASSERT(span >= 0);
    const int64_t place = span % kSpans;
    if (spans_[place].get() >= span) return spans_[place].get() == span;
    spans_[place].set(-1);
    for (int32_t bin = 0; bin <= kBins; ++bin) {
        Cell<uint32_t>& number = bins()[bin].recent[place];
        if (number.get()) number.set(0);
    }
    std::atomic_thread_fence(std::memory_order_release);
    spans_[place].set(span);
    return true;
}

void Sketch::merge(const Samples& other) {
    const Sketch& from = static_cast<const Sketch&>(other);
    DS_ASSERT(this != &from);
    bool shared[kSpans];
    for (int64_t place = 0; place < kSpans; ++place) {
        const int64_t span = from.spans_[place].get();
        shared[place] = span >= 0 && make_current(span);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    for (int32_t bin = 0; bin <= kBins; ++bin) {
        const Bin& more = from.bins()[bin];
        if (more.ever.get() == 0) continue;
        bins()[bin].ever.add(more.ever.get());
        for (int64_t place = 0; place < kSpans; ++place) {
            if (shared[place]) bins()[bin].recent[place].add(more.recent[place].get());
        }
    }
    totals_.merge(from.totals_);
}

// ---- Reading ----

int64_t Sketch::number(const Bin& bin, Choice chosen) {
    DS_ASSERT(chosen <= kEver);
    if (chosen == kEver || bin.ever.get() == 0) return bin.ever.get();
    int64_t sum = 0;
    for (int64_t place = 0; place < kSpans; ++place) {
        if (chosen >> place & 1) sum += bin.recent[place].get();
    }
    return sum;
}

Sketch::Choice Sketch::spans_since(int64_t time_ns) const {
    Choice chosen = 0;
    for (int64_t place = 0; place < kSpans; ++place) {
        if (spans_[place].get() >= time_ns >> kSpanLog2) chosen |= 1u << place;
    }
    return chosen;
}

int64_t Sketch::count(Choice chosen) const {
    int64_t count = 0;
    for (int32_t bin = 0; bin <= kBins; ++bin) count = sum_of(count, number(bins()[bin], chosen));
    return count;
}

double Sketch::quantile(double fraction, Choice chosen) const {
    DS_ASSERT(fraction >= 0 && fraction <= 1);
    const int64_t count = this->count(chosen);
    if (count == 0) return 0;
    const int64_t place = static_cast<int64_t>(fraction * static_cast<double>(count - 1));
    int64_t below = 0;
    int32_t bin = 0;
    while (bin < kBins && (below = sum_of(below, number(bins()[bin], chosen))) <= place) ++bin;
    DS_ASSERT(place >= 0 && place < count && bin <= kBins);
    if (bin == 0) return 0;
    return std::max(totals_.low(), std::min(value_of(bin), totals_.high()));
}

void Sketch::read(ds_series_totals* totals) const {
    totals->count = count();
    totals->sum = totals_.sum();
    totals->minimum = totals_.low();
    totals->maximum = totals_.high();
}

}  // namespace doorstep
