// Base layer: keywords that differ between host and CUDA compilers, and scalar functions that behave the same on both.
//
// Rules for math/, physics/ and sim/: plain data only, no libm, no allocation, no exceptions, no contraction of a*b+c
// (set by the build), no function whose result depends on the compiler. min and max return their second argument when
// the comparison is false, as the x86 instructions do, so NaN and signed zero give the same result in every lane type.
#pragma once

#if !defined(__CUDACC__)
#include <assert.h>
#endif
#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define DS_INLINE static __device__ __forceinline__
#define DS_METHOD __device__ __forceinline__
#define DS_NOINLINE static __device__ __noinline__
#define DS_ROLLED _Pragma("unroll 1")
#else
#define DS_INLINE static inline __attribute__((always_inline))
#define DS_METHOD inline __attribute__((always_inline))
#define DS_NOINLINE [[maybe_unused]] static __attribute__((noinline))
#define DS_ROLLED
#endif
// DS_ROLLED before a loop: on CUDA, where it iterates over single lanes, the loop is not unrolled, so that a step fits
// the instruction caches.

// What must hold whatever callers pass: checked in the native tests and under sanitizers, nothing elsewhere.
#if defined(__CUDACC__) || defined(NDEBUG)
#define DS_ASSERT(condition) static_cast<void>(sizeof(!(condition)))
#else
#define DS_ASSERT(condition) assert(condition)
#endif

namespace doorstep {

// As std::same_as; CUDA's runtime compiler has no <concepts>.
template <class A, class B>
constexpr bool kIsSame = false;
template <class A>
constexpr bool kIsSame<A, A> = true;
template <class A, class B>
concept SameAs = kIsSame<A, B>;

constexpr float kPi = 3.14159265358979f;

#if defined(__CUDACC__)
DS_INLINE float square_root(float a) { return __fsqrt_rn(a); }
DS_INLINE float absolute(float a) { return fabsf(a); }
DS_INLINE void prefetch(const char*) {}
DS_INLINE int count_bits(uint32_t bits) { return __popc(bits); }
DS_INLINE int lowest_bit(uint32_t bits) { return __ffs(static_cast<int>(bits)) - 1; }
#else
DS_INLINE float square_root(float a) { return __builtin_sqrtf(a); }
DS_INLINE float absolute(float a) { return __builtin_fabsf(a); }
DS_INLINE void prefetch(const char* line) { __builtin_prefetch(line, 0, 2); }  // into the second-level cache
DS_INLINE int count_bits(uint32_t bits) { return __builtin_popcount(bits); }
DS_INLINE int lowest_bit(uint32_t bits) { return __builtin_ctz(bits); }  // bits must not be zero
#endif
DS_INLINE float minimum(float a, float b) { return a < b ? a : b; }
DS_INLINE float maximum(float a, float b) { return a > b ? a : b; }
DS_INLINE bool is_finite(float a) { return a - a == 0.f; }

DS_INLINE int32_t clamp(int32_t value, int32_t low, int32_t high) {
    DS_ASSERT(low <= high);
    return value < low ? low : value > high ? high : value;
}

// The lowest `count` bits, 0 to 32.
constexpr uint32_t low_bits(int count) { return count == 32 ? ~0u : (1u << count) - 1u; }

// Index of the lowest set bit, which is then cleared; bits must not be zero.
DS_INLINE int take_lowest_bit(uint32_t& bits) {
    DS_ASSERT(bits != 0);
    const int index = lowest_bit(bits);
    bits &= bits - 1;
    return index;
}

}  // namespace doorstep
