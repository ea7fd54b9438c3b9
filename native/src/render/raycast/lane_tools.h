// Lane operations for pictures beyond math/lanes.h: choices by sign bits, integers, and stores of pixels. Both lane
// types give the same bits.
#pragma once

#include <string.h>

#include "math/lanes.h"

namespace doorstep {

// ---- One float per lane

// `yes` where the sign bit of `signs` is set.
DS_INLINE NarrowFloat select_signed(NarrowBits signs, NarrowFloat yes, NarrowFloat no) {
    return static_cast<int32_t>(signs.v) < 0 ? yes : no;
}
DS_INLINE NarrowBits select_signed(NarrowBits signs, NarrowBits yes, NarrowBits no) {
    return static_cast<int32_t>(signs.v) < 0 ? yes : no;
}
DS_INLINE NarrowBits select(NarrowMask mask, NarrowBits yes, NarrowBits no) { return mask.v ? yes : no; }
DS_INLINE uint32_t sign_bits(NarrowBits signs) { return signs.v >> 31; }
DS_INLINE NarrowBits without(NarrowBits a, NarrowBits removed) { return {a.v & ~removed.v}; }
template <int Places>
DS_INLINE NarrowBits shift_left(NarrowBits a) {
    return {a.v << Places};
}
template <int Places>
DS_INLINE NarrowBits shift_right(NarrowBits a) {
    return {a.v >> Places};
}
DS_INLINE NarrowBits load_bits(NarrowFloat, const uint32_t* from) { return {*from}; }
// Element of any table per lane.
DS_INLINE NarrowFloat gather(NarrowFloat, const float* table, NarrowBits index) { return table[index.v]; }
DS_INLINE NarrowBits gather(NarrowFloat, const uint32_t* table, NarrowBits index) { return {table[index.v]}; }

// Stores write the first `count` lanes, 1 .. kLanes.
DS_INLINE void store_first(NarrowFloat a, float* to, int) { *to = a.v; }
DS_INLINE void store_first(NarrowBits a, uint32_t* to, int) { *to = a.v; }
// The low halves.
DS_INLINE void store_halves(NarrowBits a, uint16_t* to, int) { *to = static_cast<uint16_t>(a.v); }

#if defined(__AVX2__)

// ---- Eight floats per lane type

DS_INLINE WideFloat select_signed(WideBits signs, WideFloat yes, WideFloat no) {
    return _mm256_blendv_ps(no.v, yes.v, _mm256_castsi256_ps(signs.v));
}
DS_INLINE WideBits select_signed(WideBits signs, WideBits yes, WideBits no) {
    return bits_of(select_signed(signs, float_of(yes), float_of(no)));
}
DS_INLINE WideBits select(WideMask mask, WideBits yes, WideBits no) {
    return select_signed(mask_bits(mask), yes, no);
}
DS_INLINE uint32_t sign_bits(WideBits signs) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(signs.v)));
}
DS_INLINE WideBits without(WideBits a, WideBits removed) { return {_mm256_andnot_si256(removed.v, a.v)}; }
template <int Places>
DS_INLINE WideBits shift_left(WideBits a) {
    return {_mm256_slli_epi32(a.v, Places)};
}
template <int Places>
DS_INLINE WideBits shift_right(WideBits a) {
    return {_mm256_srli_epi32(a.v, Places)};
}
DS_INLINE WideBits load_bits(WideFloat, const uint32_t* from) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))};
}
DS_INLINE WideFloat gather(WideFloat, const float* table, WideBits index) {
    return _mm256_i32gather_ps(table, index.v, 4);
}
DS_INLINE WideBits gather(WideFloat, const uint32_t* table, WideBits index) {
    return {_mm256_i32gather_epi32(reinterpret_cast<const int*>(table), index.v, 4)};
}

DS_INLINE void store_first(WideBits a, uint32_t* to, int count) {
    if (count == WideFloat::kLanes) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a.v);
        return;
    }
    uint32_t lanes[WideFloat::kLanes];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), a.v);
    for (int i = 0; i < count; i++) to[i] = lanes[i];
}
DS_INLINE void store_first(WideFloat a, float* to, int count) {
    if (count == WideFloat::kLanes) {
        a.store(to);
        return;
    }
    float lanes[WideFloat::kLanes];
    a.store(lanes);
    for (int i = 0; i < count; i++) to[i] = lanes[i];
}
DS_INLINE void store_halves(WideBits a, uint16_t* to, int count) {
    if (count == WideFloat::kLanes) {
        const __m256i halves = _mm256_and_si256(a.v, _mm256_set1_epi32(0xFFFF));
        const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(halves, halves), 0x88);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(packed));
        return;
    }
    uint32_t lanes[WideFloat::kLanes];
    store_first(a, lanes, WideFloat::kLanes);
    for (int i = 0; i < count; i++) to[i] = static_cast<uint16_t>(lanes[i]);
}

#endif

}  // namespace doorstep
