#include "metrics/sketch.h"

#include <string.h>

#include <algorithm>

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

Sketch::Sketch(const SeriesKey& key)
    : Values(key), pages_(map_pages((1 + kBins) * static_cast<int64_t>(sizeof(Bin)), "metrics")) {}

// 0: values that count as 0.
int32_t Sketch::bin_of(double value) {
    constexpr int32_t kLowest = DS_SKETCH_LOWEST_EXPONENT, kHighest = kLowest + int32_t{DS_SKETCH_OCTAVES};
    if (!(value >= power_of_two(kLowest))) return 0;
    if (value >= power_of_two(kHighest)) return kBins;
    const int32_t exponent = exponent_of(value);
    DS_ASSERT(exponent >= kLowest && exponent < kHighest);
    const double s = value / power_of_two(exponent) - 1;
    DS_ASSERT(s >= 0 && s < 1);
    const int32_t within = static_cast<int32_t>(s * (4 - s) / 3 * kBinsPerOctave);
    return 1 + (exponent - kLowest) * kBinsPerOctave + std::min(within, kBinsPerOctave - 1);
}

void Sketch::add(double value, int64_t time_ns) {
    DS_ASSERT(time_ns >= 0);
    Bin& bin = bins()[bin_of(value)];
    const int64_t span = time_ns >> kSpanLog2;
    bin.ever.add(1);
    if (make_current(span)) bin.recent[span % kSpans].add(1);
    count(value, time_ns);
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

void Sketch::read(ds_series_info* info) const {
    info->kind = DS_SERIES_SKETCH;
    info->most_rows = (1 + kBins) * (1 + kSpans);
    read_totals(info);
}

int64_t Sketch::read_rows(void* rows) const {
    ds_sketch_count* const first = static_cast<ds_sketch_count*>(rows);
    ds_sketch_count* next = first;
    int64_t spans[kSpans];
    for (int64_t place = 0; place < kSpans; ++place) spans[place] = spans_[place].get();
    std::atomic_thread_fence(std::memory_order_acquire);
    for (int32_t bin = 0; bin <= kBins; ++bin) {
        const Bin& counted = bins()[bin];
        if (const int64_t ever = counted.ever.get()) *next++ = {ever, -1, bin};
        else continue;
        for (int64_t place = 0; place < kSpans; ++place) {
            const int64_t recent = counted.recent[place].get();
            if (recent && spans[place] >= 0) *next++ = {recent, static_cast<int32_t>(spans[place]), bin};
        }
    }
    return next - first;
}

}  // namespace doorstep
