/* pto_scalar.h: scalar expressions: 64-bit integers and doubles, as Python computes them. */
#ifndef PTO_SCALAR_H
#define PTO_SCALAR_H
#include <stdint.h>
#include "pto_integer.h"

PTO_INLINE int64_t pto_scalar_min_i64(int64_t a, int64_t b) { return b < a ? b : a; }
PTO_INLINE int64_t pto_scalar_max_i64(int64_t a, int64_t b) { return b > a ? b : a; }
PTO_INLINE int64_t pto_scalar_floordiv_i64(int64_t a, int64_t b) { return pto_floordiv_i64(a, b); }
PTO_INLINE int64_t pto_scalar_mod_i64(int64_t a, int64_t b) { return pto_mod_i64(a, b); }
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
