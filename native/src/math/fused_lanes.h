// Lanes for networks: the number types of lanes.h with a fused multiply-add, and WidestFloat, 16 floats in an AVX-512
// register, where AVX-512 is enabled. All give the same bits per lane.
#pragma once

#include "math/lanes.h"

namespace doorstep {

// ---- One float per lane

// a * b + c, rounded once.
#if defined(__CUDACC__)
DS_INLINE float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
#else
DS_INLINE float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#endif
DS_INLINE NarrowFloat multiply_add(NarrowFloat a, NarrowFloat b, NarrowFloat c) { return multiply_add(a.v, b.v, c.v); }
DS_INLINE NarrowBits operator+(NarrowBits a, NarrowBits b) { return {a.v + b.v}; }
DS_INLINE NarrowBits operator-(NarrowBits a, NarrowBits b) { return {a.v - b.v}; }
template <int kCount>
DS_METHOD NarrowBits shift_left(NarrowBits a) {
    return {a.v << kCount};
}
template <int kCount>
DS_METHOD NarrowBits shift_right(NarrowBits a) {
    return {a.v >> kCount};
}

#if defined(__AVX2__) && defined(__FMA__)

// ---- Eight floats

DS_INLINE WideFloat multiply_add(WideFloat a, WideFloat b, WideFloat c) { return _mm256_fmadd_ps(a.v, b.v, c.v); }
DS_INLINE WideBits operator+(WideBits a, WideBits b) { return {_mm256_add_epi32(a.v, b.v)}; }
DS_INLINE WideBits operator-(WideBits a, WideBits b) { return {_mm256_sub_epi32(a.v, b.v)}; }
template <int kCount>
DS_METHOD WideBits shift_left(WideBits a) {
    return {_mm256_slli_epi32(a.v, kCount)};
}
template <int kCount>
DS_METHOD WideBits shift_right(WideBits a) {
    return {_mm256_srli_epi32(a.v, kCount)};
}

#endif
#if defined(__AVX512F__) && defined(__AVX512DQ__)

// ---- Sixteen floats

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
DS_INLINE WidestFloat multiply_add(WidestFloat a, WidestFloat b, WidestFloat c) {
    return _mm512_fmadd_ps(a.v, b.v, c.v);
}
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
DS_INLINE WidestBits operator+(WidestBits a, WidestBits b) { return {_mm512_add_epi32(a.v, b.v)}; }
DS_INLINE WidestBits operator-(WidestBits a, WidestBits b) { return {_mm512_sub_epi32(a.v, b.v)}; }
template <int kCount>
DS_METHOD WidestBits shift_left(WidestBits a) {
    return {_mm512_slli_epi32(a.v, kCount)};
}
template <int kCount>
DS_METHOD WidestBits shift_right(WidestBits a) {
    return {_mm512_srli_epi32(a.v, kCount)};
}

#endif

// ---- What networks need of a number type

template <class Float>
concept FusedLanes = FloatLanes<Float> && requires(Float a, typename Float::Bits bits) {
    { multiply_add(a, a, a) } -> SameAs<Float>;
    { bits + bits - (bits & bits ^ bits | bits) } -> SameAs<typename Float::Bits>;
    { shift_left<1>(shift_right<1>(bits)) } -> SameAs<typename Float::Bits>;
};
static_assert(FusedLanes<NarrowFloat>);
#if defined(__AVX2__) && defined(__FMA__)
static_assert(FusedLanes<WideFloat>);
#endif
#if defined(__AVX512F__) && defined(__AVX512DQ__)
static_assert(FusedLanes<WidestFloat>);
#endif

}  // namespace doorstep
