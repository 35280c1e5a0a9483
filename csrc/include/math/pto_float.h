/* pto_float.h: arithmetic of one f32 or f64 element, and the choice by a mask for every type. */
#ifndef PTO_FLOAT_H
#define PTO_FLOAT_H
#include <stdint.h>
#include "pto_bits.h"

/* A NaN of the maximum and the minimum: of a, because no comparison with it holds; of b, as a constant, because gcc would merge a choice
   of b with that of the larger one into two comparisons whose masks it joins. Where `a` is what a loop carries, only one operation waits. */
#define PTO_FLOAT_(t, T, f)                                                                                          \
    PTO_INLINE T pto_maximum_##t(T a, T b) { T m = b > a ? b : a; return b != b ? (T)PTO_NAN : m; }                      \
    PTO_INLINE T pto_minimum_##t(T a, T b) { T m = b < a ? b : a; return b != b ? (T)PTO_NAN : m; }                      \
    PTO_INLINE T pto_abs_##t(T a) { return __builtin_fabs##f(a); }                                                   \
    PTO_INLINE T pto_floor_##t(T a) { return __builtin_floor##f(a); }                                                \
    PTO_INLINE T pto_ceil_##t(T a) { return __builtin_ceil##f(a); }                                                  \
    PTO_INLINE T pto_rint_##t(T a) { return __builtin_rint##f(a); }                                                  \
    PTO_INLINE T pto_sign_##t(T a) { return a != a ? a : (T)((a > 0) - (a < 0)); }                                   \
    PTO_INLINE T pto_relu_##t(T a) { return a <= 0 ? (T)0 : a; }                                                     \
    PTO_INLINE T pto_sqrt_##t(T a) { return __builtin_sqrt##f(a); }                                                  \
    PTO_INLINE T pto_rsqrt_##t(T a) { return 1 / __builtin_sqrt##f(a); }                                             \
    PTO_INLINE T pto_recip_##t(T a) { return 1 / a; }                                                                \
    PTO_INLINE T pto_mod_##t(T a, T b)                                                                               \
    {   /* the remainder with the divisor's sign, as Python and NumPy define it */                                   \
        T r = __builtin_fmod##f(a, b);                                                                               \
        return r != 0 ? ((b < 0) != (r < 0) ? r + b : r) : __builtin_copysign##f(0, b);                              \
    }                                                                                                                \
    PTO_INLINE T pto_floordiv_##t(T a, T b)                                                                          \
    {                                                                                                                \
        T r = __builtin_fmod##f(a, b), q = (a - r) / b;                                                              \
        q = r != 0 && (b < 0) != (r < 0) ? q - 1 : q;                                                                \
        T whole = __builtin_floor##f(q);                                                                             \
        whole = q - whole > (T)0.5 ? whole + 1 : whole;                                                              \
        return b == 0 ? a / b : q != 0 ? whole : __builtin_copysign##f(0, a / b);                                    \
    }

PTO_FLOAT_(f32, float, f)
PTO_FLOAT_(f64, double, )

/* A choice between values that have both been read. `mask ? p[k] : q[k]` reads one of them, and gcc 12 then makes masked loads of which
   it confuses the masks when it vectorises an outer loop. */
#define PTO_WHERE_(t, T) PTO_INLINE T pto_where_##t(_Bool mask, T then, T other) { return mask ? then : other; }
PTO_WHERE_(f32, float) PTO_WHERE_(f64, double) PTO_WHERE_(bool, _Bool)
PTO_WHERE_(i8, int8_t) PTO_WHERE_(i16, int16_t) PTO_WHERE_(i32, int32_t) PTO_WHERE_(i64, int64_t)
PTO_WHERE_(u8, uint8_t) PTO_WHERE_(u16, uint16_t) PTO_WHERE_(u32, uint32_t) PTO_WHERE_(u64, uint64_t)

#endif
