// Lanes: the number types that kernels are templates over. NarrowFloat is one float, the lane of a CUDA thread and of
// the host's cross-check; WideFloat is 8 floats in an AVX2 register and WidestFloat 16 in an AVX-512 register, where
// these are enabled. All give the same bits per lane.
//
// A comparison gives a Mask (all bits of a lane set or clear). Bits are the floats' bit patterns as unsigned integers;
// those of nonnegative floats order as the floats do.
#pragma once

#include <string.h>

#include "math/base.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace doorstep {

// ---- A float, for what is also a template over lanes

DS_INLINE float select(bool mask, float yes, float no) { return mask ? yes : no; }
DS_INLINE float zero_unless(bool mask, float a) { return mask ? a : 0.f; }
DS_INLINE bool any(bool mask) { return mask; }
DS_INLINE bool all(bool mask) { return mask; }

// What a comparison of two numbers gives.
template <class Number>
struct Comparison {
    using Mask = typename Number::Mask;
};
template <>
struct Comparison<float> {
    using Mask = bool;
};
template <class Number>
using MaskOf = typename Comparison<Number>::Mask;

// ---- One float per lane

struct NarrowMask {
    bool v;
};
struct NarrowBits {
    uint32_t v;
};
struct NarrowFloat {
    using Mask = NarrowMask;
    using Bits = NarrowBits;
    static constexpr int kLanes = 1;
    float v;
    NarrowFloat() = default;
    DS_METHOD NarrowFloat(float value) : v(value) {}
    static DS_METHOD NarrowFloat load(const float* from) { return *from; }
    DS_METHOD void store(float* to) const { *to = v; }
};

DS_INLINE NarrowFloat operator+(NarrowFloat a, NarrowFloat b) { return a.v + b.v; }
DS_INLINE NarrowFloat operator-(NarrowFloat a, NarrowFloat b) { return a.v - b.v; }
DS_INLINE NarrowFloat operator*(NarrowFloat a, NarrowFloat b) { return a.v * b.v; }
DS_INLINE NarrowFloat operator/(NarrowFloat a, NarrowFloat b) { return a.v / b.v; }
DS_INLINE NarrowFloat operator-(NarrowFloat a) { return -a.v; }
DS_INLINE NarrowFloat minimum(NarrowFloat a, NarrowFloat b) { return minimum(a.v, b.v); }
DS_INLINE NarrowFloat maximum(NarrowFloat a, NarrowFloat b) { return maximum(a.v, b.v); }
DS_INLINE NarrowFloat square_root(NarrowFloat a) { return square_root(a.v); }
DS_INLINE NarrowFloat absolute(NarrowFloat a) { return absolute(a.v); }
DS_INLINE NarrowMask operator<(NarrowFloat a, NarrowFloat b) { return {a.v < b.v}; }
DS_INLINE NarrowMask operator<=(NarrowFloat a, NarrowFloat b) { return {a.v <= b.v}; }
DS_INLINE NarrowMask equal(NarrowFloat a, NarrowFloat b) { return {a.v == b.v}; }
DS_INLINE NarrowMask operator&(NarrowMask a, NarrowMask b) { return {a.v && b.v}; }
DS_INLINE NarrowMask operator|(NarrowMask a, NarrowMask b) { return {a.v || b.v}; }
DS_INLINE NarrowMask operator~(NarrowMask a) { return {!a.v}; }
DS_INLINE NarrowFloat select(NarrowMask mask, NarrowFloat yes, NarrowFloat no) { return mask.v ? yes : no; }
DS_INLINE NarrowFloat zero_unless(NarrowMask mask, NarrowFloat a) { return mask.v ? a : NarrowFloat(0.f); }
DS_INLINE uint32_t lane_bits(NarrowMask mask) { return mask.v; }
DS_INLINE bool all(NarrowMask mask) { return mask.v; }

DS_INLINE NarrowBits bits_of(NarrowFloat a) {
    NarrowBits bits;
    memcpy(&bits.v, &a.v, 4);
    return bits;
}
DS_INLINE NarrowFloat float_of(NarrowBits bits) {
    NarrowFloat a;
    memcpy(&a.v, &bits.v, 4);
    return a;
}
DS_INLINE NarrowMask is_nonzero(NarrowFloat, const int32_t* from) { return {*from != 0}; }
DS_INLINE NarrowBits mask_bits(NarrowMask mask) { return {mask.v ? 0xFFFFFFFFu : 0u}; }
DS_INLINE NarrowBits all_lanes(NarrowFloat, uint32_t bits) { return {bits}; }
DS_INLINE NarrowBits operator&(NarrowBits a, NarrowBits b) { return {a.v & b.v}; }
DS_INLINE NarrowBits operator|(NarrowBits a, NarrowBits b) { return {a.v | b.v}; }
DS_INLINE NarrowBits operator^(NarrowBits a, NarrowBits b) { return {a.v ^ b.v}; }
DS_INLINE NarrowBits minimum(NarrowBits a, NarrowBits b) { return {a.v < b.v ? a.v : b.v}; }
DS_INLINE NarrowBits signed_minimum(NarrowBits a, NarrowBits b) {
    return {static_cast<int32_t>(a.v) < static_cast<int32_t>(b.v) ? a.v : b.v};
}
DS_INLINE NarrowMask equal(NarrowBits a, NarrowBits b) { return {a.v == b.v}; }
// As signed integers.
DS_INLINE NarrowMask operator<(NarrowBits a, NarrowBits b) {
    return {static_cast<int32_t>(a.v) < static_cast<int32_t>(b.v)};
}
// The bytes from `lane` on, a multiple of the number of lanes; the lowest byte of a word comes first.
DS_INLINE NarrowBits load_bytes(NarrowFloat, const uint64_t* words, int lane) {
    return {static_cast<uint32_t>(words[lane / 8] >> lane % 8 * 8) & 0xFF};
}
// Element of a table of kSize numbers per lane. An index that is too large gives any element.
template <int kSize>
DS_INLINE NarrowFloat look_up(const float* table, NarrowBits index) {
    return table[index.v < kSize ? index.v : 0];
}
DS_INLINE float largest_lane(NarrowFloat a) { return a.v; }
// `number` in one lane, `a` in the others.
DS_INLINE NarrowFloat with_lane(NarrowFloat, int, float number) { return number; }
// (a, b, c) of the first `count` lanes, interleaved.
DS_INLINE void store_triples(NarrowFloat a, NarrowFloat b, NarrowFloat c, float* to, int) {
    to[0] = a.v;
    to[1] = b.v;
    to[2] = c.v;
}
// (a, b) of the first `count` lanes, interleaved; at a multiple of 8 bytes.
struct alignas(8) FloatPair {
    float a, b;
};
DS_INLINE void store_pairs(NarrowFloat a, NarrowFloat b, float* to, int count) {
    DS_ASSERT(reinterpret_cast<uint64_t>(to) % alignof(FloatPair) == 0);
    if (count >= 1) *reinterpret_cast<FloatPair*>(to) = {a.v, b.v};
}

#if defined(__AVX2__)

// ---- Eight floats per lane type

struct WideMask {
    __m256 v;
};
struct WideBits {
    __m256i v;
};
struct WideFloat {
    using Mask = WideMask;
    using Bits = WideBits;
    static constexpr int kLanes = 8;
    __m256 v;
    WideFloat() = default;
    DS_METHOD WideFloat(__m256 value) : v(value) {}
    DS_METHOD WideFloat(float value) : v(_mm256_set1_ps(value)) {}
    static DS_METHOD WideFloat load(const float* from) { return _mm256_loadu_ps(from); }
    DS_METHOD void store(float* to) const { _mm256_storeu_ps(to, v); }
};

DS_INLINE WideFloat operator+(WideFloat a, WideFloat b) { return _mm256_add_ps(a.v, b.v); }
DS_INLINE WideFloat operator-(WideFloat a, WideFloat b) { return _mm256_sub_ps(a.v, b.v); }
DS_INLINE WideFloat operator*(WideFloat a, WideFloat b) { return _mm256_mul_ps(a.v, b.v); }
DS_INLINE WideFloat operator/(WideFloat a, WideFloat b) { return _mm256_div_ps(a.v, b.v); }
DS_INLINE WideFloat operator-(WideFloat a) { return _mm256_xor_ps(a.v, _mm256_set1_ps(-0.f)); }
DS_INLINE WideFloat minimum(WideFloat a, WideFloat b) { return _mm256_min_ps(a.v, b.v); }
DS_INLINE WideFloat maximum(WideFloat a, WideFloat b) { return _mm256_max_ps(a.v, b.v); }
DS_INLINE WideFloat square_root(WideFloat a) { return _mm256_sqrt_ps(a.v); }
DS_INLINE WideFloat absolute(WideFloat a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.f), a.v); }
DS_INLINE WideMask operator<(WideFloat a, WideFloat b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
DS_INLINE WideMask operator<=(WideFloat a, WideFloat b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)}; }
DS_INLINE WideMask equal(WideFloat a, WideFloat b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
DS_INLINE WideMask operator&(WideMask a, WideMask b) { return {_mm256_and_ps(a.v, b.v)}; }
DS_INLINE WideMask operator|(WideMask a, WideMask b) { return {_mm256_or_ps(a.v, b.v)}; }
DS_INLINE WideMask operator~(WideMask a) {
    return {_mm256_xor_ps(a.v, _mm256_castsi256_ps(_mm256_set1_epi32(-1)))};
}
DS_INLINE WideFloat select(WideMask mask, WideFloat yes, WideFloat no) { return _mm256_blendv_ps(no.v, yes.v, mask.v); }
DS_INLINE WideFloat zero_unless(WideMask mask, WideFloat a) { return _mm256_and_ps(mask.v, a.v); }
DS_INLINE uint32_t lane_bits(WideMask mask) { return static_cast<uint32_t>(_mm256_movemask_ps(mask.v)); }
DS_INLINE bool all(WideMask mask) { return lane_bits(mask) == 0xFF; }

DS_INLINE WideBits bits_of(WideFloat a) { return {_mm256_castps_si256(a.v)}; }
DS_INLINE WideFloat float_of(WideBits bits) { return _mm256_castsi256_ps(bits.v); }
DS_INLINE WideMask is_nonzero(WideFloat, const int32_t* from) {
    const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return ~WideMask{_mm256_castsi256_ps(_mm256_cmpeq_epi32(values, _mm256_setzero_si256()))};
}
DS_INLINE WideBits mask_bits(WideMask mask) { return {_mm256_castps_si256(mask.v)}; }
DS_INLINE WideBits all_lanes(WideFloat, uint32_t bits) { return {_mm256_set1_epi32(static_cast<int>(bits))}; }
DS_INLINE WideBits operator&(WideBits a, WideBits b) { return {_mm256_and_si256(a.v, b.v)}; }
DS_INLINE WideBits operator|(WideBits a, WideBits b) { return {_mm256_or_si256(a.v, b.v)}; }
DS_INLINE WideBits operator^(WideBits a, WideBits b) { return {_mm256_xor_si256(a.v, b.v)}; }
DS_INLINE WideBits minimum(WideBits a, WideBits b) { return {_mm256_min_epu32(a.v, b.v)}; }
DS_INLINE WideBits signed_minimum(WideBits a, WideBits b) { return {_mm256_min_epi32(a.v, b.v)}; }
DS_INLINE WideMask equal(WideBits a, WideBits b) { return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.v, b.v))}; }
DS_INLINE WideMask operator<(WideBits a, WideBits b) { return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(b.v, a.v))}; }
DS_INLINE WideBits load_bytes(WideFloat, const uint64_t* words, int lane) {
    return {_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(words[lane / 8])))};
}
template <int kSize>
DS_INLINE WideFloat look_up(const float* table, WideBits index) {
    static_assert(kSize % 8 == 0);
    const auto among_eight = [&](int first) {
        return WideFloat(_mm256_permutevar8x32_ps(_mm256_loadu_ps(table + first), index.v));
    };
    WideFloat found = among_eight(0);
    for (int first = 8; first < kSize; first += 8)
        found = select(index < all_lanes(found, static_cast<uint32_t>(first)), found, among_eight(first));
    return found;
}
DS_INLINE WideFloat with_lane(WideFloat a, int lane, float number) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return select(equal(WideBits{lanes}, all_lanes(a, static_cast<uint32_t>(lane))), WideFloat(number), a);
}
// Lane i of `a` belongs at place 3 i. Modulo 8 these places are all different, so one permutation serves three vectors.
DS_INLINE void store_triples(WideFloat a, WideFloat b, WideFloat c, float* to, int count) {
    if (count < WideFloat::kLanes) {
        float lanes[3][WideFloat::kLanes];
        a.store(lanes[0]);
        b.store(lanes[1]);
        c.store(lanes[2]);
        for (int i = 0; i < count; i++)
            for (int k = 0; k < 3; k++) to[3 * i + k] = lanes[k][i];
        return;
    }
    const __m256 p = _mm256_permutevar8x32_ps(a.v, _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5));
    const __m256 q = _mm256_permutevar8x32_ps(b.v, _mm256_setr_epi32(5, 0, 3, 6, 1, 4, 7, 2));
    const __m256 r = _mm256_permutevar8x32_ps(c.v, _mm256_setr_epi32(2, 5, 0, 3, 6, 1, 4, 7));
    _mm256_storeu_ps(to, _mm256_blend_ps(_mm256_blend_ps(p, q, 0x92), r, 0x24));
    _mm256_storeu_ps(to + 8, _mm256_blend_ps(_mm256_blend_ps(p, q, 0x24), r, 0x49));
    _mm256_storeu_ps(to + 16, _mm256_blend_ps(_mm256_blend_ps(p, q, 0x49), r, 0x92));
}
// Transposes the four low halves, and the four high ones.
DS_INLINE void transpose_halves(WideFloat (&rows)[4]) {
    const __m256 a = _mm256_unpacklo_ps(rows[0].v, rows[1].v), b = _mm256_unpackhi_ps(rows[0].v, rows[1].v);
    const __m256 c = _mm256_unpacklo_ps(rows[2].v, rows[3].v), d = _mm256_unpackhi_ps(rows[2].v, rows[3].v);
    rows[0] = _mm256_shuffle_ps(a, c, 0x44);
    rows[1] = _mm256_shuffle_ps(a, c, 0xEE);
    rows[2] = _mm256_shuffle_ps(b, d, 0x44);
    rows[3] = _mm256_shuffle_ps(b, d, 0xEE);
}
// Number r of `to` takes lane r of each of the eight numbers.
DS_INLINE void transpose(const WideFloat from[8], WideFloat to[8]) {
    WideFloat first[4] = {from[0], from[1], from[2], from[3]}, last[4] = {from[4], from[5], from[6], from[7]};
    transpose_halves(first);
    transpose_halves(last);
    for (int k = 0; k < 4; k++) {
        to[k] = _mm256_permute2f128_ps(first[k].v, last[k].v, 0x20);
        to[k + 4] = _mm256_permute2f128_ps(first[k].v, last[k].v, 0x31);
    }
}
DS_INLINE float largest_lane(WideFloat a) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
}
// count is 8 or 7: the two halves of a row of 15 lanes.
DS_INLINE void store_pairs(WideFloat a, WideFloat b, float* to, int count) {
    const __m256 low = _mm256_unpacklo_ps(a.v, b.v), high = _mm256_unpackhi_ps(a.v, b.v);
    const __m256 first = _mm256_permute2f128_ps(low, high, 0x20), second = _mm256_permute2f128_ps(low, high, 0x31);
    _mm256_storeu_ps(to, first);
    if (count == 8) {
        _mm256_storeu_ps(to + 8, second);
    } else {
        _mm_storeu_ps(to + 8, _mm256_castps256_ps128(second));
        _mm_storel_pi(reinterpret_cast<__m64*>(to + 12), _mm256_extractf128_ps(second, 1));
    }
}

#endif
#if defined(__AVX512F__) && defined(__AVX512DQ__)

// ---- Sixteen floats per lane type

struct WidestMask {
    __mmask16 v;
};
struct WidestBits {
    __m512i v;
};
struct WidestFloat {
    using Mask = WidestMask;
    using Bits = WidestBits;
    static constexpr int kLanes = 16;
    __m512 v;
    WidestFloat() = default;
    DS_METHOD WidestFloat(__m512 value) : v(value) {}
    DS_METHOD WidestFloat(float value) : v(_mm512_set1_ps(value)) {}
    static DS_METHOD WidestFloat load(const float* from) { return _mm512_loadu_ps(from); }
    DS_METHOD void store(float* to) const { _mm512_storeu_ps(to, v); }
};

DS_INLINE WidestFloat operator+(WidestFloat a, WidestFloat b) { return _mm512_add_ps(a.v, b.v); }
DS_INLINE WidestFloat operator-(WidestFloat a, WidestFloat b) { return _mm512_sub_ps(a.v, b.v); }
DS_INLINE WidestFloat operator*(WidestFloat a, WidestFloat b) { return _mm512_mul_ps(a.v, b.v); }
DS_INLINE WidestFloat operator/(WidestFloat a, WidestFloat b) { return _mm512_div_ps(a.v, b.v); }
DS_INLINE WidestFloat operator-(WidestFloat a) { return _mm512_xor_ps(a.v, _mm512_set1_ps(-0.f)); }
DS_INLINE WidestFloat minimum(WidestFloat a, WidestFloat b) { return _mm512_min_ps(a.v, b.v); }
DS_INLINE WidestFloat maximum(WidestFloat a, WidestFloat b) { return _mm512_max_ps(a.v, b.v); }
DS_INLINE WidestFloat square_root(WidestFloat a) { return _mm512_sqrt_ps(a.v); }
DS_INLINE WidestFloat absolute(WidestFloat a) { return _mm512_andnot_ps(_mm512_set1_ps(-0.f), a.v); }
DS_INLINE WidestMask operator<(WidestFloat a, WidestFloat b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
DS_INLINE WidestMask operator<=(WidestFloat a, WidestFloat b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
DS_INLINE WidestMask equal(WidestFloat a, WidestFloat b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
DS_INLINE WidestMask operator&(WidestMask a, WidestMask b) { return {static_cast<__mmask16>(a.v & b.v)}; }
DS_INLINE WidestMask operator|(WidestMask a, WidestMask b) { return {static_cast<__mmask16>(a.v | b.v)}; }
DS_INLINE WidestMask operator~(WidestMask a) { return {static_cast<__mmask16>(~a.v)}; }
DS_INLINE WidestFloat select(WidestMask mask, WidestFloat yes, WidestFloat no) {
    return _mm512_mask_blend_ps(mask.v, no.v, yes.v);
}
DS_INLINE uint32_t lane_bits(WidestMask mask) { return mask.v; }

DS_INLINE WidestBits bits_of(WidestFloat a) { return {_mm512_castps_si512(a.v)}; }
DS_INLINE WidestFloat float_of(WidestBits bits) { return _mm512_castsi512_ps(bits.v); }
DS_INLINE WidestBits all_lanes(WidestFloat, uint32_t bits) { return {_mm512_set1_epi32(static_cast<int>(bits))}; }
DS_INLINE WidestBits operator&(WidestBits a, WidestBits b) { return {_mm512_and_si512(a.v, b.v)}; }
DS_INLINE WidestBits operator|(WidestBits a, WidestBits b) { return {_mm512_or_si512(a.v, b.v)}; }
DS_INLINE WidestBits operator^(WidestBits a, WidestBits b) { return {_mm512_xor_si512(a.v, b.v)}; }
DS_INLINE WidestFloat zero_unless(WidestMask mask, WidestFloat a) { return _mm512_maskz_mov_ps(mask.v, a.v); }
DS_INLINE WidestMask is_nonzero(WidestFloat, const int32_t* from) {
    const __m512i values = _mm512_loadu_si512(from);
    return {_mm512_test_epi32_mask(values, values)};
}
DS_INLINE WidestBits minimum(WidestBits a, WidestBits b) { return {_mm512_min_epu32(a.v, b.v)}; }
DS_INLINE WidestBits signed_minimum(WidestBits a, WidestBits b) { return {_mm512_min_epi32(a.v, b.v)}; }
struct WidestMarks {
    WidestMask counts;
    WidestBits bits;
};
DS_INLINE WidestMarks mark_unless(WidestMask excluded, WidestBits mark) { return {~excluded, mark}; }
DS_INLINE WidestBits marked_minimum(WidestBits a, WidestBits candidate, WidestMarks marks) {
    return {_mm512_mask_min_epu32(a.v, marks.counts.v, a.v, (candidate | marks.bits).v)};
}
DS_INLINE WidestBits signed_marked_minimum(WidestBits a, WidestBits candidate, WidestMarks marks) {
    return {_mm512_mask_min_epi32(a.v, marks.counts.v, a.v, (candidate | marks.bits).v)};
}
// Of 8 numbers, the only table that has so many lanes of indices.
template <int kSize>
DS_INLINE WidestFloat look_up(const float* table, WidestBits index) {
    static_assert(kSize == 8);
    return _mm512_permutexvar_ps(index.v, _mm512_castps256_ps512(_mm256_loadu_ps(table)));
}
DS_INLINE float largest_lane(WidestFloat a) {
    return largest_lane(WideFloat(_mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1))));
}
// count is 15.
DS_INLINE void store_pairs(WidestFloat a, WidestFloat b, float* to, int) {
    const __m512i low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    _mm512_storeu_ps(to, _mm512_permutex2var_ps(a.v, low, b.v));
    _mm512_mask_storeu_ps(to + 16, 0x3FFF, _mm512_permutex2var_ps(a.v, high, b.v));
}
#endif

// ---- What kernels need of a number type

template <class Float>
concept FloatLanes = requires(Float a, typename Float::Mask mask, typename Float::Bits bits, float* to) {
    { Float::load(to) } -> SameAs<Float>;
    { a.store(to) } -> SameAs<void>;
    { a + a * a - a / a } -> SameAs<Float>;
    { minimum(a, maximum(square_root(a), absolute(-a))) } -> SameAs<Float>;
    { (a < a) & (a <= a) & ~equal(a, a) } -> SameAs<typename Float::Mask>;
    { select(mask, a, a) } -> SameAs<Float>;
    { lane_bits(mask) } -> SameAs<uint32_t>;
    { bits_of(a) } -> SameAs<typename Float::Bits>;
    { float_of(bits) } -> SameAs<Float>;
    requires Float::kLanes >= 1 && Float::kLanes <= 32;
};
static_assert(FloatLanes<NarrowFloat>);
#if defined(__AVX2__)
static_assert(FloatLanes<WideFloat>);
#endif
#if defined(__AVX512F__) && defined(__AVX512DQ__)
static_assert(FloatLanes<WidestFloat>);
#endif

// ---- Derived operations

template <class Mask>
DS_INLINE bool any(Mask mask) {
    return lane_bits(mask) != 0;
}

// What candidates for a minimum are marked with: bits, or in the lanes of the mask what excludes them.
template <class Mask, class Bits>
DS_INLINE Bits mark_unless(Mask excluded, Bits mark) {
    return mask_bits(excluded) | mark;
}
// The smaller of a and the marked candidate. As signed integers: for negative a.
template <class Bits>
DS_INLINE Bits marked_minimum(Bits a, Bits candidate, Bits marks) {
    return minimum(a, candidate | marks);
}
template <class Bits>
DS_INLINE Bits signed_marked_minimum(Bits a, Bits candidate, Bits marks) {
    return signed_minimum(a, candidate | marks);
}

}  // namespace doorstep
