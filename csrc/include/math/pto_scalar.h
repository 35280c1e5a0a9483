/* pto_scalar.h: scalar expressions: 64-bit integers and doubles, as Python computes them. */
#ifndef PTO_SCALAR_H
#define PTO_SCALAR_H
#include <stdint.h>
#include "pto_integer.h"

PTO_INLINE int64_t pto_scalar_min_i64(int64_t a, int64_t b) { return b < a ? b : a; }
PTO_INLINE int64_t pto_scalar_max_i64(int64_t a, int64_t b) { return b > a ? b : a; }
PTO_INLINE int64_t pto_scalar_floordiv_i64(int64_t a, int64_t b) { return pto_floordiv_i64(a, b); }
PTO_INLINE int64_t pto_scalar_mod_i64(int64_t a, int64_t b) { return pto_mod_i64(a, b); }

/* Of numbers of which one is unsigned: exact, and the result wraps. */
__extension__ typedef __int128 pto_wide;
PTO_INLINE int64_t pto_wide_min(pto_wide a, pto_wide b) { return (int64_t)(b < a ? b : a); }
PTO_INLINE int64_t pto_wide_max(pto_wide a, pto_wide b) { return (int64_t)(b > a ? b : a); }
PTO_INLINE int64_t pto_wide_mod(pto_wide a, pto_wide b)
{
    pto_wide rest = b == 0 ? 0 : a % b;
    return (int64_t)(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
}
PTO_INLINE int64_t pto_wide_floordiv(pto_wide a, pto_wide b)
{
    pto_wide quotient = b == 0 ? 0 : a / b;
    return (int64_t)(b != 0 && quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient);
}
PTO_INLINE double pto_scalar_min_f64(double a, double b) { return a != a || b != b ? (double)PTO_NAN : b < a ? b : a; }
PTO_INLINE double pto_scalar_max_f64(double a, double b) { return a != a || b != b ? (double)PTO_NAN : b > a ? b : a; }
PTO_INLINE double pto_scalar_mod_f64(double a, double b)
{   /* with the sign of b, as Python and NumPy have it */
    if (b == 0.0)
        return (double)PTO_NAN;
    double rest = __builtin_fmod(a, b);
    if (rest == 0.0)
        return __builtin_copysign(0.0, b);
    return (b < 0.0) != (rest < 0.0) ? rest + b : rest;
}
PTO_INLINE double pto_scalar_floordiv_f64(double a, double b)
{
    if (b == 0.0)
        return a / b;
    double rest = pto_scalar_mod_f64(a, b), quotient = (a - rest) / b;
    if (quotient == 0.0)
        return __builtin_copysign(0.0, a / b);
    double whole = __builtin_floor(quotient);
    return quotient - whole > 0.5 ? whole + 1.0 : whole;
}

#endif
