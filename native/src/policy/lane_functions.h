// Functions of lanes that networks need, with the same bits in every lane type. NaN gives NaN.
#pragma once

#include "math/exponential.h"
#include "math/fused_lanes.h"

namespace doorstep {

// minimum() and maximum() return their second argument where one is NaN.
template <FusedLanes Float>
DS_METHOD Float clamp_magnitude(Float x, float limit) {
    return maximum(Float(-limit), minimum(Float(limit), x));
}

// The value of a polynomial whose lowest coefficient comes first.
template <FusedLanes Float, int kCount>
DS_METHOD Float polynomial(const float (&coefficients)[kCount], Float x) {
    Float sum = coefficients[kCount - 1];
    for (int i = kCount - 2; i >= 0; i--) sum = multiply_add(sum, x, Float(coefficients[i]));
    return sum;
}

// e to the power of x <= 0, within two units in the last place; 0 where that is less than 4e-38.
//
// x = k ln 2 + r with |r| <= ln 2 / 2, and the Taylor series of e^r.
template <FusedLanes Float>
DS_METHOD Float decay(Float x) {
    using Format = FloatFormat<float>;
    constexpr float kLeast = -86.f, kLog2E = 1.44269504f;
    constexpr float kRounder = 12582912.f;  // adding it rounds to an integer, which the lowest bits then contain
    constexpr ReciprocalFactorials<float> kTaylor;
    const Float limited = maximum(Float(kLeast), x);
    const Float rounded = multiply_add(limited, Float(kLog2E), Float(kRounder));
    const Float k = rounded - Float(kRounder);
    const Float r = multiply_add(k, Float(-Format::kLog2Low), multiply_add(k, Float(-Format::kLog2High), limited));
    const auto exponent = shift_left<Format::kMantissaBits>(bits_of(rounded));  // the rounder's own bits leave
    const Float power = float_of(bits_of(polynomial(kTaylor.values, r)) + exponent);
    return select(equal(x, x), select(x < Float(kLeast), Float(0.f), power), x);
}

// An odd function that is 1 from `limit` on, or one unit in the last place less; below, x P(x^2) / Q(x^2).
template <FusedLanes Float, int kP, int kQ>
DS_METHOD Float odd_ratio(const float (&numerator)[kP], const float (&denominator)[kQ], float limit, Float x) {
    const Float limited = clamp_magnitude(x, limit);
    const Float square = limited * limited;
    return clamp_magnitude(limited * polynomial(numerator, square) / polynomial(denominator, square), 1.f);
}

// Within 3e-7, relatively. The minimax approximation's own error is 2.1e-8.
template <FusedLanes Float>
DS_METHOD Float hyperbolic_tangent(Float x) {
    constexpr float kNumerator[] = {0.999999979454f, 0.13379723984f, 0.00349403991888f, 2.05835131062e-5f,
                                    1.33190296768e-8f};
    constexpr float kDenominator[] = {1.f, 0.467130393921f, 0.0258710980109f, 0.000328309901361f, 7.76201956153e-7f};
    return odd_ratio(kNumerator, kDenominator, 9.02f, x);
}

// Within 4e-7. The minimax approximation's own error is 1.7e-8.
template <FusedLanes Float>
DS_METHOD Float error_function(Float x) {
    constexpr float kNumerator[] = {1.12837901842f,    0.193177222144f,    0.0531076026725f,
                                    0.00388408635824f, 0.000287486090551f, 2.02688402013e-6f};
    constexpr float kDenominator[] = {1.f,               0.50453047549f,    0.115248592721f,
                                      0.0152040072713f, 0.00119129794006f, 3.79899687819e-5f};
    return odd_ratio(kNumerator, kDenominator, 3.93f, x);
}

// Within 3e-7, relatively, down to 4e-38: 1 / (1 + e^-x), without large powers.
template <FusedLanes Float>
DS_METHOD Float sigmoid(Float x) {
    const Float power = decay(-absolute(x));
    return select(x < Float(0.f), power, Float(1.f)) / (Float(1.f) + power);
}

// The logarithm of 1 + y for y in [0, 1], within 3e-7, relatively: 2 artanh(t) with t = y / (2 + y), at most 1/3.
template <FusedLanes Float>
DS_METHOD Float logarithm_of_one_plus(Float y) {
    constexpr float kArtanh[] = {1.f, 1.f / 3, 1.f / 5, 1.f / 7, 1.f / 9, 1.f / 11, 1.f / 13, 1.f / 15};
    const Float t = y / (Float(2.f) + y);
    return (t + t) * polynomial(kArtanh, t * t);
}

// ---- Activations, by their names and formulas in PyTorch

template <FusedLanes Float>
DS_METHOD Float relu(Float x) {
    return maximum(Float(0.f), x);
}
template <FusedLanes Float>
DS_METHOD Float relu6(Float x) {
    return minimum(Float(6.f), relu(x));
}
template <FusedLanes Float>
DS_METHOD Float leaky_relu(Float x, float slope) {
    return select(x < Float(0.f), x * Float(slope), x);
}
template <FusedLanes Float>
DS_METHOD Float elu(Float x, float alpha) {
    return select(x < Float(0.f), Float(alpha) * (decay(minimum(Float(0.f), x)) - Float(1.f)), x);
}
template <FusedLanes Float>
DS_METHOD Float celu(Float x, float alpha) {
    return select(x < Float(0.f), Float(alpha) * (decay(minimum(Float(0.f), x / Float(alpha))) - Float(1.f)), x);
}
template <FusedLanes Float>
DS_METHOD Float selu(Float x) {
    return Float(1.05070099f) * elu(x, 1.67326324f);
}
template <FusedLanes Float>
DS_METHOD Float silu(Float x) {
    return x * sigmoid(x);
}
// x tanh(softplus(x)), where tanh(log(1 + n)) = n (n + 2) / (n (n + 2) + 2) with n = e^x; without large powers.
template <FusedLanes Float>
DS_METHOD Float mish(Float x) {
    const Float power = decay(-absolute(x)), two = 2.f;
    const auto negative = x < Float(0.f);
    const Float numerator = select(negative, power * (power + two), multiply_add(two, power, Float(1.f)));
    return x * (numerator / (numerator + select(negative, two, two * power * power)));
}
template <FusedLanes Float>
DS_METHOD Float hard_sigmoid(Float x) {
    return relu6(x + Float(3.f)) / Float(6.f);
}
template <FusedLanes Float>
DS_METHOD Float hard_swish(Float x) {
    return x * hard_sigmoid(x);
}
template <FusedLanes Float>
DS_METHOD Float softsign(Float x) {
    return x / (Float(1.f) + absolute(x));
}
// log(1 + e^(beta x)) / beta, without large powers.
template <FusedLanes Float>
DS_METHOD Float softplus(Float x, float beta) {
    const Float scaled = x * Float(beta);
    return (maximum(Float(0.f), scaled) + logarithm_of_one_plus(decay(-absolute(scaled)))) / Float(beta);
}
// x (1 + f) / 2, where f is a function that is -1 for x < -10 but for its rounding, which x would magnify.
template <FusedLanes Float>
DS_METHOD Float half_of_both(Float x, Float f) {
    const Float half = maximum(Float(-10.f), x) * Float(0.5f);
    return multiply_add(half, f, half);
}
template <FusedLanes Float>
DS_METHOD Float gelu(Float x) {
    return half_of_both(x, error_function(x * Float(0.707106781f)));
}
template <FusedLanes Float>
DS_METHOD Float gelu_tanh(Float x) {
    constexpr float kSquareRootOfTwoOverPi = 0.797884561f;
    const Float inner = multiply_add(x * x * x, Float(0.044715f), x) * Float(kSquareRootOfTwoOverPi);
    return half_of_both(x, hyperbolic_tangent(inner));
}

// ---- Random numbers

// A number of 32 bits per lane.
template <FusedLanes Float>
DS_METHOD typename Float::Bits load_words(const uint32_t* from) {
    float values[Float::kLanes];
    memcpy(values, from, sizeof values);
    return bits_of(Float::load(values));
}

template <int kCount, class Bits>
DS_METHOD Bits rotate_words(Bits word) {
    return shift_left<kCount>(word) | shift_right<32 - kCount>(word);
}

template <int kFirst, int kSecond, int kThird, int kFourth, class Bits>
DS_METHOD void four_rounds(Bits& x, Bits& y) {
    x = x + y, y = rotate_words<kFirst>(y) ^ x;
    x = x + y, y = rotate_words<kSecond>(y) ^ x;
    x = x + y, y = rotate_words<kThird>(y) ^ x;
    x = x + y, y = rotate_words<kFourth>(y) ^ x;
}

// split() of math/threefry.h.
template <class Bits>
struct RandomWords {
    Bits a, b;
};
template <FusedLanes Float, class Bits = typename Float::Bits>
DS_METHOD RandomWords<Bits> threefry(Bits key_a, Bits key_b, Bits low, Bits high) {
    const auto all = [](uint32_t word) { return all_lanes(Float(0.f), word); };
    const Bits key_c = all(0x1BD11BDAu) ^ key_a ^ key_b;
    Bits x = low + key_a, y = high + key_b;
    four_rounds<13, 15, 26, 6>(x, y);
    x = x + key_b, y = y + key_c + all(1);
    four_rounds<17, 29, 16, 24>(x, y);
    x = x + key_c, y = y + key_a + all(2);
    four_rounds<13, 15, 26, 6>(x, y);
    x = x + key_a, y = y + key_b + all(3);
    four_rounds<17, 29, 16, 24>(x, y);
    x = x + key_b, y = y + key_c + all(4);
    four_rounds<13, 15, 26, 6>(x, y);
    x = x + key_c, y = y + key_a + all(5);
    return {x, y};
}

// A uniform number in [0, 1) of the highest 23 bits.
template <FusedLanes Float>
DS_METHOD Float uniform_of(typename Float::Bits word) {
    const auto one = bits_of(Float(1.f));
    return float_of(shift_right<9>(word) | one) - Float(1.f);
}

}  // namespace doorstep
