/* pto_half.h: f16, bf16 and the two fp8 formats, as bits in memory and as the float that they stand for.

   pto_widen_t: bits to float, exact. pto_round_t: any float to the nearest value of t, half to even, still as a float; beyond the
   largest finite value that is an infinity (fp8e4m3 has none: NaN). pto_narrow_t: a float that is a value of t to its bits.
   pto_fit_t: any double to a value of t by a rounding mode. pto_cast_f_t: another dtype to t, rounded once.
   Arithmetic is bits and f32 alone, so that a loop over it vectorises on any machine. */
#ifndef PTO_HALF_H
#define PTO_HALF_H
#include <stdint.h>
#include "pto_bits.h"
#include "pto_cast.h"

#define PTO_LARGEST_F16 65504.0f
#define PTO_LARGEST_BF16 0x1.fep127f
#define PTO_LARGEST_FP8E5M2 57344.0f
#define PTO_LARGEST_FP8E4M3 448.0f

#define PTO_MASK_(condition) (0u - (uint32_t)(condition))   /* all bits where it holds */

/* t: B its bits' type, m mantissa bits, `low` the exponent of the smallest normal number, `largest` finite value; inf and nan are
   bits of t, `beyond` those of the f32 that lies past the largest. No choice is made between constants: gcc would follow each of them
   into what comes next and leave branches in the loop. */
#define PTO_FORMAT_(t, B, m, low, largest, beyond, inf, nan)                                                         \
    PTO_INLINE float pto_round_##t(float x)                                                                          \
    {                                                                                                                \
        const uint32_t dropped = (1u << (23 - m)) - 1;                                                               \
        const float step = pto_from_bits_f32((int32_t)((127 + 23 + low - m) << 23));   /* its ulp is the smallest t */ \
        uint32_t bits = (uint32_t)pto_bits_f32(x), a = bits & 0x7fffffffu;                                           \
        uint32_t nearest = (a + (dropped >> 1) + (a >> (23 - m) & 1)) & ~dropped;                                    \
        uint32_t small = (uint32_t)pto_bits_f32((pto_from_bits_f32((int32_t)a) + step) - step);                      \
        uint32_t y = a < ((uint32_t)(127 + low) << 23) ? small : nearest;                                            \
        uint32_t past = PTO_MASK_(y > (uint32_t)pto_bits_f32(largest));                                              \
        y = (y & ~past) | (beyond & past) | (0x7fc00000u & PTO_MASK_(a > 0x7f800000u));                              \
        return pto_from_bits_f32((int32_t)(y | (bits ^ a)));                                                         \
    }                                                                                                                \
    PTO_INLINE B pto_narrow_##t(float x)                                                                             \
    {                                                                                                                \
        const uint32_t step = (uint32_t)(127 + 23 + low - m) << 23;                                                  \
        uint32_t bits = (uint32_t)pto_bits_f32(x), a = bits & 0x7fffffffu;                                           \
        uint32_t small = (uint32_t)pto_bits_f32(pto_from_bits_f32((int32_t)a) + pto_from_bits_f32((int32_t)step)) - step; \
        uint32_t normal = (a - ((uint32_t)(126 + low) << 23)) >> (23 - m);                                           \
        uint32_t y = a < ((uint32_t)(127 + low) << 23) ? small : normal;                                             \
        uint32_t past = PTO_MASK_(y > inf);                                                                          \
        y = (y & ~past) | (inf & past) | (nan & PTO_MASK_(a > 0x7f800000u));                                         \
        return (B)(y | (bits >> 31) << (8 * sizeof(B) - 1));                                                         \
    }                                                                                                                \
    PTO_INLINE float pto_widen_##t(B x)                                                                              \
    {                                                                                                                \
        const float smallest = pto_from_bits_f32((int32_t)((127 + low - m) << 23));                                  \
        uint32_t sign = (uint32_t)x >> (8 * sizeof(B) - 1) << 31, a = x & ((1u << (8 * sizeof(B) - 1)) - 1);         \
        uint32_t normal = (a << (23 - m)) + ((uint32_t)(126 + low) << 23);                                           \
        uint32_t small = (uint32_t)pto_bits_f32((float)(int32_t)a * smallest);                                       \
        uint32_t y = a < (1u << m) ? small : normal;                                                                 \
        return pto_from_bits_f32((int32_t)(y | (0x7f800000u & PTO_MASK_(a >= inf)) | sign));                         \
    }

PTO_FORMAT_(f16, uint16_t, 10, -14, PTO_LARGEST_F16, 0x7f800000u, 0x7c00u, 0x7e00u)
PTO_FORMAT_(fp8e5m2, uint8_t, 2, -14, PTO_LARGEST_FP8E5M2, 0x7f800000u, 0x7cu, 0x7eu)
PTO_FORMAT_(fp8e4m3, uint8_t, 3, -6, PTO_LARGEST_FP8E4M3, 0x7fc00000u, 0x7fu, 0x7fu)

/* bf16 is the upper half of an f32 */
PTO_INLINE float pto_round_bf16(float x)
{
    uint32_t bits = (uint32_t)pto_bits_f32(x), y = (bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u;
    return pto_from_bits_f32((int32_t)(y | (0x7fc00000u & PTO_MASK_((bits & 0x7fffffffu) > 0x7f800000u))));
}
PTO_INLINE uint16_t pto_narrow_bf16(float x) { return (uint16_t)((uint32_t)pto_bits_f32(x) >> 16); }
PTO_INLINE float pto_widen_bf16(uint16_t x) { return pto_from_bits_f32((int32_t)((uint32_t)x << 16)); }

/* ---- from every other dtype, rounded once: to f32 first, inexact results to the odd neighbour, so that the second rounding sees them ---- */

PTO_INLINE float pto_single_f32(float x) { return x; }
PTO_INLINE float pto_single_f64(double x)
{
    float y = (float)x;
    int32_t bits = pto_bits_f32(y) - (__builtin_fabs((double)y) > __builtin_fabs(x));
    return pto_from_bits_f32(bits | ((double)pto_from_bits_f32(bits) != x));
}
PTO_INLINE float pto_single_i64(int64_t x)
{
    int64_t few = (x & ~(int64_t)0x7ff) | (int64_t)((x & 0x7ff) != 0) << 11;
    return pto_single_f64((double)(x > -((int64_t)1 << 53) && x < (int64_t)1 << 53 ? x : few));
}
PTO_INLINE float pto_single_u64(uint64_t x)
{
    uint64_t few = (x & ~(uint64_t)0x7ff) | (uint64_t)((x & 0x7ff) != 0) << 11;
    return pto_single_f64((double)(x < (uint64_t)1 << 53 ? x : few));
}
PTO_INLINE float pto_single_i32(int32_t x) { return pto_single_f64(x); }
PTO_INLINE float pto_single_u32(uint32_t x) { return pto_single_f64(x); }
PTO_INLINE float pto_single_i16(int16_t x) { return x; }
PTO_INLINE float pto_single_u16(uint16_t x) { return x; }
PTO_INLINE float pto_single_i8(int8_t x) { return x; }
PTO_INLINE float pto_single_u8(uint8_t x) { return x; }
PTO_INLINE float pto_single_bool(_Bool x) { return x; }

#define PTO_TO_HALVES_(f, F)                                                                                         \
    PTO_INLINE float pto_cast_##f##_f16(F x) { return pto_round_f16(pto_single_##f(x)); }                            \
    PTO_INLINE float pto_cast_##f##_bf16(F x) { return pto_round_bf16(pto_single_##f(x)); }                          \
    PTO_INLINE uint8_t pto_cast_##f##_fp8e4m3(F x) { return pto_narrow_fp8e4m3(pto_round_fp8e4m3(pto_single_##f(x))); } \
    PTO_INLINE uint8_t pto_cast_##f##_fp8e5m2(F x) { return pto_narrow_fp8e5m2(pto_round_fp8e5m2(pto_single_##f(x))); }
PTO_TO_HALVES_(f32, float) PTO_TO_HALVES_(f64, double) PTO_TO_HALVES_(bool, _Bool)
PTO_TO_HALVES_(i8, int8_t) PTO_TO_HALVES_(i16, int16_t) PTO_TO_HALVES_(i32, int32_t) PTO_TO_HALVES_(i64, int64_t)
PTO_TO_HALVES_(u8, uint8_t) PTO_TO_HALVES_(u16, uint16_t) PTO_TO_HALVES_(u32, uint32_t) PTO_TO_HALVES_(u64, uint64_t)

/* ---- by a rounding mode: in units of the last place of the result, where rounding is making whole ---- */

enum { PTO_AWAY, PTO_FLOOR, PTO_CEIL, PTO_TRUNC, PTO_ODD };

PTO_INLINE double pto_fit_(double x, int mode, int digits, int low, double largest, double beyond)
{
    int64_t exponent = (int64_t)((uint64_t)pto_bits_f64(x) >> 52 & 0x7ff) - 1023;
    int64_t unit = (exponent < low ? low : exponent) - digits + 1;
    double y = x * pto_from_bits_f64((1023 - unit) << 52);
    double whole = mode == PTO_FLOOR ? __builtin_floor(y) : mode == PTO_CEIL ? __builtin_ceil(y)
        : mode == PTO_TRUNC ? __builtin_trunc(y) : mode == PTO_ODD ? pto_odd_f64(y) : pto_away_f64(y);
    whole *= pto_from_bits_f64((1023 + unit) << 52);
    int outward = mode == PTO_AWAY || (mode == PTO_FLOOR && x < 0) || (mode == PTO_CEIL && x > 0);
    double past = outward || x - x != 0 ? beyond : largest;
    return __builtin_fabs(whole) > largest ? __builtin_copysign(past, x) : whole;
}
PTO_INLINE float pto_fit_f32(double x, int mode) { return (float)pto_fit_(x, mode, 24, -126, 0x1.fffffep127, PTO_INF); }
PTO_INLINE float pto_fit_f16(double x, int mode) { return (float)pto_fit_(x, mode, 11, -14, PTO_LARGEST_F16, PTO_INF); }
PTO_INLINE float pto_fit_bf16(double x, int mode) { return (float)pto_fit_(x, mode, 8, -126, PTO_LARGEST_BF16, PTO_INF); }
PTO_INLINE float pto_fit_fp8e5m2(double x, int mode) { return (float)pto_fit_(x, mode, 3, -14, PTO_LARGEST_FP8E5M2, PTO_INF); }
PTO_INLINE float pto_fit_fp8e4m3(double x, int mode) { return (float)pto_fit_(x, mode, 4, -6, PTO_LARGEST_FP8E4M3, PTO_NAN); }

#endif
