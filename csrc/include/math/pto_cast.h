/* pto_cast.h: one element from one dtype to another: float to integer, integer to integer, anything to a mask.

   pto_cast_f_t: float to integer drops the fraction and saturates, NaN gives 0; integer to integer wraps; to a float it rounds half
   to even. pto_wrap_f_t: float to integer modulo 2^width, NaN and infinities give 0. pto_rint, pto_away, pto_floor, pto_ceil,
   pto_trunc and pto_odd make a float whole before it becomes an integer. */
#ifndef PTO_CAST_H
#define PTO_CAST_H
#include <stdint.h>
#include "pto_bits.h"

/* An integer made of a float, kept from gcc: without traps it takes (float)(int)x for trunc(x), which keeps the sign of -0.3. */
#if defined __GNUC__ && !defined __clang__ && __GNUC__ >= 12
#define PTO_OPAQUE(x) __builtin_assoc_barrier(x)
#else
#define PTO_OPAQUE(x) (x)
#endif

/* M(…, t, T, MIN, MAX) for every integer type */
#define PTO_EACH_INTEGER_(M, ...)                                                                                    \
    M(__VA_ARGS__, i8, int8_t, INT8_MIN, INT8_MAX) M(__VA_ARGS__, i16, int16_t, INT16_MIN, INT16_MAX)                \
    M(__VA_ARGS__, i32, int32_t, INT32_MIN, INT32_MAX) M(__VA_ARGS__, i64, int64_t, INT64_MIN, INT64_MAX)            \
    M(__VA_ARGS__, u8, uint8_t, 0, UINT8_MAX) M(__VA_ARGS__, u16, uint16_t, 0, UINT16_MAX)                           \
    M(__VA_ARGS__, u32, uint32_t, 0, UINT32_MAX) M(__VA_ARGS__, u64, uint64_t, 0, UINT64_MAX)

#define PTO_CAST_(f, F, t, T, MIN, MAX) PTO_INLINE T pto_cast_##f##_##t(F x) { return (T)x; }
#define PTO_TO_OTHERS_(f, F)                                                                                         \
    PTO_INLINE float pto_cast_##f##_f32(F x) { return (float)x; }                                                    \
    PTO_INLINE double pto_cast_##f##_f64(F x) { return (double)x; }                                                  \
    PTO_INLINE _Bool pto_cast_##f##_bool(F x) { return x != 0; }

/* ---- floats: MAX + 1 is a power of two, so that it is a float where MAX may be none ---- */

#define PTO_SATURATE_(f, F, t, T, MIN, MAX)                                                                          \
    PTO_INLINE T pto_cast_##f##_##t(F x)                                                                             \
    {                                                                                                                \
        const F too_large = (F)(MAX / 2 + 1) * 2;                                                                    \
        return x != x ? (T)0 : x >= too_large ? (T)MAX : x <= (F)MIN ? (T)MIN : PTO_OPAQUE((T)x);                    \
    }
#define PTO_WRAP_(f, F, t, T, MIN, MAX)                                                                              \
    PTO_INLINE T pto_wrap_##f##_##t(F x)                                                                             \
    {                                                                                                                \
        double a = __builtin_fabs((double)x), rest = a - __builtin_trunc(a * 0x1p-64) * 0x1p64;                      \
        uint64_t whole = rest < 0x1p64 ? (uint64_t)rest : 0;                                                         \
        return (T)(x < 0 ? 0 - whole : whole);                                                                       \
    }
#define PTO_WHOLE_(f, F, s)                                                                                          \
    PTO_INLINE F pto_trunc_##f(F x) { return __builtin_trunc##s(x); }                                                \
    PTO_INLINE F pto_away_##f(F x)                                                                                   \
    {   /* to the nearest, halves away from zero */                                                                  \
        F t = __builtin_trunc##s(x), rest = __builtin_fabs##s(x - t);                                                \
        return rest >= (F)0.5 ? t + __builtin_copysign##s(1, x) : t;                                                 \
    }                                                                                                                \
    PTO_INLINE F pto_odd_##f(F x)                                                                                    \
    {   /* what is not whole, to its odd neighbour */                                                                \
        F t = __builtin_trunc##s(x), half = t * (F)0.5;                                                              \
        return t != x && __builtin_trunc##s(half) == half ? t + __builtin_copysign##s(1, x) : t;                     \
    }                                                                                                                \
    PTO_INLINE F pto_limit_##f(F x, F largest) { return x > largest ? largest : x < -largest ? -largest : x; }

PTO_TO_OTHERS_(f32, float) PTO_EACH_INTEGER_(PTO_SATURATE_, f32, float) PTO_EACH_INTEGER_(PTO_WRAP_, f32, float)
PTO_TO_OTHERS_(f64, double) PTO_EACH_INTEGER_(PTO_SATURATE_, f64, double) PTO_EACH_INTEGER_(PTO_WRAP_, f64, double)
PTO_WHOLE_(f32, float, f)
PTO_WHOLE_(f64, double, )

/* ---- integers and masks ---- */

PTO_TO_OTHERS_(bool, _Bool) PTO_EACH_INTEGER_(PTO_CAST_, bool, _Bool)
#define PTO_OF_(f, F) PTO_TO_OTHERS_(f, F) PTO_EACH_INTEGER_(PTO_CAST_, f, F)
PTO_OF_(i8, int8_t) PTO_OF_(i16, int16_t) PTO_OF_(i32, int32_t) PTO_OF_(i64, int64_t)
PTO_OF_(u8, uint8_t) PTO_OF_(u16, uint16_t) PTO_OF_(u32, uint32_t) PTO_OF_(u64, uint64_t)

#endif
