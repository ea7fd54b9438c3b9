// Exponential and natural logarithm in single and double precision, with the same bits on every device: no libm.
//
// Loops over independent values become vector instructions, so there are no branches.
#pragma once

#include <string.h>

#include "math/base.h"

namespace doorstep {

template <class Float>
struct FloatFormat;

template <>
struct FloatFormat<float> {
    using Bits = uint32_t;
    static constexpr int kMantissaBits = 23, kBias = 127;
    static constexpr int kExponentialTerms = 7, kLogarithmTerms = 5;
    static constexpr float kLeastExponent = -105.f, kLargestExponent = 89.f;  // beyond: 0 and infinity
    static constexpr float kLog2High = 0.693359375f, kLog2Low = -2.12194440e-4f;
};

template <>
struct FloatFormat<double> {
    using Bits = uint64_t;
    static constexpr int kMantissaBits = 52, kBias = 1023;
    static constexpr int kExponentialTerms = 13, kLogarithmTerms = 11;
    static constexpr double kLeastExponent = -746., kLargestExponent = 710.;
    static constexpr double kLog2High = 6.93145751953125e-1, kLog2Low = 1.42860682030941723212e-6;
};

template <class Float>
DS_INLINE typename FloatFormat<Float>::Bits bits_of_value(Float value) {
    typename FloatFormat<Float>::Bits bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

template <class Float>
DS_INLINE Float value_of_bits(typename FloatFormat<Float>::Bits bits) {
    Float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// One bit pattern of NaN for every device.
template <class Float>
DS_INLINE Float not_a_number() {
    using Format = FloatFormat<Float>;
    using Bits = typename Format::Bits;
    return value_of_bits<Float>((Bits{4 * Format::kBias + 3} << (Format::kMantissaBits - 1)));
}

template <class Float>
DS_INLINE Float infinity() {
    using Format = FloatFormat<Float>;
    return value_of_bits<Float>(typename Format::Bits{2 * Format::kBias + 1} << Format::kMantissaBits);
}

// 1 / i!, the coefficients of e^r.
template <class Float>
struct ReciprocalFactorials {
    constexpr ReciprocalFactorials() {
        double factorial = 1;
        for (int i = 0; i <= FloatFormat<Float>::kExponentialTerms; i++) {
            values[i] = static_cast<Float>(1 / factorial);
            factorial *= i + 1;
        }
    }
    Float values[FloatFormat<Float>::kExponentialTerms + 1] = {};
};

// 2 to the power of an integer; the result must be a normal number.
template <class Float>
DS_INLINE Float power_of_two(typename FloatFormat<Float>::Bits exponent) {
    using Format = FloatFormat<Float>;
    return value_of_bits<Float>((exponent + Format::kBias) << Format::kMantissaBits);
}

// x clamped slightly beyond the range whose exponential is neither 0 nor infinity; NaN stays.
template <class Float>
DS_INLINE Float clamp_exponent(Float x) {
    using Format = FloatFormat<Float>;
    const Float above = x < Format::kLeastExponent ? Format::kLeastExponent : x;
    return above > Format::kLargestExponent ? Format::kLargestExponent : above;
}

// e to the power of x, within two units in the last place; subnormal results too. NaN gives NaN.
//
// x = k ln 2 + r with |r| <= ln 2 / 2, and the Taylor series of e^r.
template <class Float>
DS_INLINE Float exponential(Float x) {
    using Format = FloatFormat<Float>;
    using Bits = typename Format::Bits;
    constexpr Float kLog2E = static_cast<Float>(1.44269504088896340736);
    // Adding this rounds to an integer, which the lowest bits then contain.
    constexpr Float kRounder = static_cast<Float>(Bits{3} << (Format::kMantissaBits - 1));
    x = clamp_exponent(x);
    const Float rounded = x * kLog2E + kRounder;
    const Bits exponent = bits_of_value(rounded) - bits_of_value(kRounder);
    const Float k = rounded - kRounder;
    const Float r = (x - k * Format::kLog2High) - k * Format::kLog2Low;
    constexpr ReciprocalFactorials<Float> kTaylor;
    Float power = kTaylor.values[Format::kExponentialTerms];
    for (int i = Format::kExponentialTerms - 1; i >= 0; i--) power = power * r + kTaylor.values[i];
    // In two steps, because 2^k itself may not be a normal number. The shift keeps the exponent's sign.
    constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1);
    const Bits half = exponent >> 1 | (exponent & kSign);
    return power * power_of_two<Float>(half) * power_of_two<Float>(exponent - half);
}

// Natural logarithm of a normal positive number, within two units in the last place. NaN gives NaN.
//
// x = 2^k m with sqrt(1/2) <= m < sqrt(2), and log m = 2 artanh(s) with s = (m - 1) / (m + 1).
template <class Float>
DS_INLINE Float natural_logarithm(Float x) {
    using Format = FloatFormat<Float>;
    using Bits = typename Format::Bits;
    constexpr Bits kOne = Bits{Format::kBias} << Format::kMantissaBits;
    constexpr Float kSquareRootOfHalf = static_cast<Float>(0.70710678118654752440);
    const Bits shift = (bits_of_value(x) - bits_of_value(kSquareRootOfHalf)) >> Format::kMantissaBits;
    // The exponent may be negative: it becomes positive, then the lowest bits of a number whose last bit counts 1.
    constexpr Bits kOffset = Bits{1} << (sizeof(Bits) * 8 - 1 - Format::kMantissaBits);
    const Bits positive = (shift + kOffset) & (2 * kOffset - 1);
    constexpr Bits kUnit = kOne + (Bits{Format::kMantissaBits} << Format::kMantissaBits);
    const Float k = value_of_bits<Float>(kUnit | positive) -
                    static_cast<Float>((Bits{1} << Format::kMantissaBits) + kOffset);
    const Float m = value_of_bits<Float>(bits_of_value(x) - (shift << Format::kMantissaBits));
    const Float s = (m - Float(1)) / (m + Float(1));
    const Float z = s * s;
    Float series = 0;
    for (int i = Format::kLogarithmTerms; i > 0; i--) series = (series + Float(2) / static_cast<Float>(2 * i + 1)) * z;
    const Float logarithm = s * series + Float(2) * s;
    const Float result = k * Format::kLog2High + (logarithm + k * Format::kLog2Low);
    return x == x ? result : x;
}

}  // namespace doorstep
