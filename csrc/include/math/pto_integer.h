/* pto_integer.h: arithmetic of one integer element, for every integer type, and of one mask. */
#ifndef PTO_INTEGER_H
#define PTO_INTEGER_H
#include <stdint.h>
#include "pto_bits.h"

/* t: the dtype, T: its C type, U: the unsigned type of its n bits */

#define PTO_INTEGER_(t, T, U, n)                                                                                     \
    PTO_INLINE T pto_maximum_##t(T a, T b) { return a > b ? a : b; }                                                 \
    PTO_INLINE T pto_minimum_##t(T a, T b) { return a < b ? a : b; }                                                 \
    PTO_INLINE T pto_not_##t(T a) { return (T)~a; }                                                                  \
    PTO_INLINE T pto_shl_##t(T a, T b) { return (U)b >= n ? (T)0 : (T)((U)a << ((U)b & (n - 1))); }                  \
    PTO_INLINE T pto_shr_##t(T a, T b) { return (U)b >= n ? (T)0 : (T)(a >> ((U)b & (n - 1))); }                     \
    PTO_INLINE T pto_relu_##t(T a) { return a > 0 ? a : (T)0; }
#define PTO_SIGNED_(t, T, U, n)                                                                                      \
    PTO_INTEGER_(t, T, U, n)                                                                                         \
    PTO_INLINE T pto_abs_##t(T a) { return (T)(a < 0 ? -a : a); }                                                    \
    PTO_INLINE T pto_sign_##t(T a) { return (T)((a > 0) - (a < 0)); }                                                \
    PTO_INLINE T pto_floordiv_##t(T a, T b)                                                                          \
    {   /* the smallest number divided by -1 would trap: it wraps */                                                 \
        T d = (T)(b == 0 || b == -1 ? 1 : b), q = (T)(a / d), r = (T)(a - q * d);                                    \
        q = (T)(q - (r != 0 && (r < 0) != (d < 0)));                                                                 \
        return b == 0 ? (T)0 : b == -1 ? (T)-a : q;                                                                  \
    }                                                                                                                \
    PTO_INLINE T pto_mod_##t(T a, T b)                                                                               \
    {                                                                                                                \
        T d = (T)(b == 0 || b == -1 ? 1 : b), r = (T)(a % d);                                                        \
        return (T)(r != 0 && (r < 0) != (d < 0) ? r + d : r);                                                        \
    }

#define PTO_UNSIGNED_(t, T, n)                                                                                       \
    PTO_INTEGER_(t, T, T, n)                                                                                         \
    PTO_INLINE T pto_abs_##t(T a) { return a; }                                                                      \
    PTO_INLINE T pto_sign_##t(T a) { return a != 0; }                                                                \
    PTO_INLINE T pto_floordiv_##t(T a, T b) { return b == 0 ? (T)0 : (T)(a / (b == 0 ? 1 : b)); }                    \
    PTO_INLINE T pto_mod_##t(T a, T b) { return b == 0 ? (T)0 : (T)(a % (b == 0 ? 1 : b)); }

PTO_SIGNED_(i8, int8_t, uint8_t, 8)
PTO_SIGNED_(i16, int16_t, uint16_t, 16)
PTO_SIGNED_(i32, int32_t, uint32_t, 32)
PTO_SIGNED_(i64, int64_t, uint64_t, 64)
PTO_UNSIGNED_(u8, uint8_t, 8)
PTO_UNSIGNED_(u16, uint16_t, 16)
PTO_UNSIGNED_(u32, uint32_t, 32)
PTO_UNSIGNED_(u64, uint64_t, 64)
PTO_INLINE uint8_t pto_not_bool(uint8_t a) { return a ^ 1; }

#endif
