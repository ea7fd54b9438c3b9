// QuadFloat: four floats in an SSE register, half of a WideFloat, for rows that are too few for one. It has what
// networks need of a number type (fused_lanes.h), with the same bits per lane.
#pragma once

#include "math/fused_lanes.h"

#if defined(__AVX2__) && defined(__FMA__)

namespace doorstep {

struct QuadMask {
    __m128 v;
};
struct QuadBits {
    __m128i v;
};
struct QuadFloat {
    using Mask = QuadMask;
    using Bits = QuadBits;
    static constexpr int kLanes = 4;
    __m128 v;
    QuadFloat() = default;
    DS_METHOD QuadFloat(__m128 value) : v(value) {}
    DS_METHOD QuadFloat(float value) : v(_mm_set1_ps(value)) {}
    static DS_METHOD QuadFloat load(const float* from) { return _mm_loadu_ps(from); }
    DS_METHOD void store(float* to) const { _mm_storeu_ps(to, v); }
};

DS_INLINE QuadFloat operator+(QuadFloat a, QuadFloat b) { return _mm_add_ps(a.v, b.v); }
DS_INLINE QuadFloat operator-(QuadFloat a, QuadFloat b) { return _mm_sub_ps(a.v, b.v); }
DS_INLINE QuadFloat operator*(QuadFloat a, QuadFloat b) { return _mm_mul_ps(a.v, b.v); }
DS_INLINE QuadFloat operator/(QuadFloat a, QuadFloat b) { return _mm_div_ps(a.v, b.v); }
DS_INLINE QuadFloat operator-(QuadFloat a) { return _mm_xor_ps(a.v, _mm_set1_ps(-0.f)); }
DS_INLINE QuadFloat multiply_add(QuadFloat a, QuadFloat b, QuadFloat c) { return _mm_fmadd_ps(a.v, b.v, c.v); }
DS_INLINE QuadFloat minimum(QuadFloat a, QuadFloat b) { return _mm_min_ps(a.v, b.v); }
DS_INLINE QuadFloat maximum(QuadFloat a, QuadFloat b) { return _mm_max_ps(a.v, b.v); }
DS_INLINE QuadFloat square_root(QuadFloat a) { return _mm_sqrt_ps(a.v); }
DS_INLINE QuadFloat absolute(QuadFloat a) { return _mm_andnot_ps(_mm_set1_ps(-0.f), a.v); }
DS_INLINE QuadMask operator<(QuadFloat a, QuadFloat b) { return {_mm_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
DS_INLINE QuadMask operator<=(QuadFloat a, QuadFloat b) { return {_mm_cmp_ps(a.v, b.v, _CMP_LE_OQ)}; }
DS_INLINE QuadMask equal(QuadFloat a, QuadFloat b) { return {_mm_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
DS_INLINE QuadMask operator&(QuadMask a, QuadMask b) { return {_mm_and_ps(a.v, b.v)}; }
DS_INLINE QuadMask operator|(QuadMask a, QuadMask b) { return {_mm_or_ps(a.v, b.v)}; }
DS_INLINE QuadMask operator~(QuadMask a) { return {_mm_xor_ps(a.v, _mm_castsi128_ps(_mm_set1_epi32(-1)))}; }
DS_INLINE QuadFloat select(QuadMask mask, QuadFloat yes, QuadFloat no) { return _mm_blendv_ps(no.v, yes.v, mask.v); }
DS_INLINE uint32_t lane_bits(QuadMask mask) { return static_cast<uint32_t>(_mm_movemask_ps(mask.v)); }

DS_INLINE QuadBits bits_of(QuadFloat a) { return {_mm_castps_si128(a.v)}; }
DS_INLINE QuadFloat float_of(QuadBits bits) { return _mm_castsi128_ps(bits.v); }
DS_INLINE QuadBits all_lanes(QuadFloat, uint32_t bits) { return {_mm_set1_epi32(static_cast<int>(bits))}; }
DS_INLINE QuadBits operator+(QuadBits a, QuadBits b) { return {_mm_add_epi32(a.v, b.v)}; }
DS_INLINE QuadBits operator-(QuadBits a, QuadBits b) { return {_mm_sub_epi32(a.v, b.v)}; }
DS_INLINE QuadBits operator&(QuadBits a, QuadBits b) { return {_mm_and_si128(a.v, b.v)}; }
DS_INLINE QuadBits operator|(QuadBits a, QuadBits b) { return {_mm_or_si128(a.v, b.v)}; }
DS_INLINE QuadBits operator^(QuadBits a, QuadBits b) { return {_mm_xor_si128(a.v, b.v)}; }
template <int kCount>
DS_METHOD QuadBits shift_left(QuadBits a) {
    return {_mm_slli_epi32(a.v, kCount)};
}
template <int kCount>
DS_METHOD QuadBits shift_right(QuadBits a) {
    return {_mm_srli_epi32(a.v, kCount)};
}
static_assert(FusedLanes<QuadFloat>);

// ---- Halves of eight lanes

DS_INLINE WideFloat join(QuadFloat low, QuadFloat high) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(low.v), high.v, 1);
}
DS_INLINE QuadFloat low_half(WideFloat a) { return _mm256_castps256_ps128(a.v); }
DS_INLINE QuadFloat high_half(WideFloat a) { return _mm256_extractf128_ps(a.v, 1); }

}  // namespace doorstep

#endif
