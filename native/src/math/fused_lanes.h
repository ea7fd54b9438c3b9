// Lanes for networks: the number types of lanes.h with a fused multiply-add. All give the same bits per lane.
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

DS_INLINE WidestFloat multiply_add(WidestFloat a, WidestFloat b, WidestFloat c) {
    return _mm512_fmadd_ps(a.v, b.v, c.v);
}
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
