/* pto_math.h: what one element of every tile operation means in C.

   Every function is branch-free where the machine allows it, so a loop over it vectorises. Numbers: max, min and relu propagate
   NaN; integers wrap (compile with -fwrapv); // and % floor; an integer divided by zero gives 0; a shift by the width or more
   gives 0; float to integer saturates and NaN gives 0; round is half to even.
   No system header: this text is compiled with every program. Needs gcc or clang, -fno-math-errno. */
#ifndef PTO_MATH_H
#define PTO_MATH_H
#include <stdint.h>

#define PTO_INLINE static inline __attribute__((always_inline, unused))
#define PTO_NAN __builtin_nanf("")
#define PTO_INF __builtin_inff()

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define PTO_FMA(a, b, c) __builtin_fmaf(a, b, c)
#define PTO_FMA64(a, b, c) __builtin_fma(a, b, c)
#else
#define PTO_FMA(a, b, c) ((a) * (b) + (c))
#define PTO_FMA64(a, b, c) ((a) * (b) + (c))
#endif

PTO_INLINE int32_t pto_bits_f32(float x) { int32_t b; __builtin_memcpy(&b, &x, 4); return b; }
PTO_INLINE float pto_from_bits_f32(int32_t b) { float x; __builtin_memcpy(&x, &b, 4); return x; }
PTO_INLINE int64_t pto_bits_f64(double x) { int64_t b; __builtin_memcpy(&b, &x, 8); return b; }
PTO_INLINE double pto_from_bits_f64(int64_t b) { double x; __builtin_memcpy(&x, &b, 8); return x; }

/* ---- arithmetic, one definition for every integer type; s is its unsigned twin, n its bits ---- */

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

PTO_SIGNED_(i8, int8_t, uint8_t, 8)
PTO_SIGNED_(i32, int32_t, uint32_t, 32)
PTO_SIGNED_(i64, int64_t, uint64_t, 64)
PTO_INTEGER_(u8, uint8_t, uint8_t, 8)
PTO_INLINE uint8_t pto_abs_u8(uint8_t a) { return a; }
PTO_INLINE uint8_t pto_sign_u8(uint8_t a) { return a != 0; }
PTO_INLINE uint8_t pto_floordiv_u8(uint8_t a, uint8_t b) { return b == 0 ? 0 : (uint8_t)(a / (b == 0 ? 1 : b)); }
PTO_INLINE uint8_t pto_mod_u8(uint8_t a, uint8_t b) { return b == 0 ? 0 : (uint8_t)(a % (b == 0 ? 1 : b)); }
PTO_INLINE uint8_t pto_not_bool(uint8_t a) { return a ^ 1; }

#define PTO_FLOAT_(t, T, f)                                                                                          \
    PTO_INLINE T pto_maximum_##t(T a, T b) { T m = a > b ? a : b; return a != a ? a : m; }                               \
    PTO_INLINE T pto_minimum_##t(T a, T b) { T m = a < b ? a : b; return a != a ? a : m; }                               \
    PTO_INLINE T pto_abs_##t(T a) { return __builtin_fabs##f(a); }                                                   \
    PTO_INLINE T pto_floor_##t(T a) { return __builtin_floor##f(a); }                                                \
    PTO_INLINE T pto_ceil_##t(T a) { return __builtin_ceil##f(a); }                                                  \
    PTO_INLINE T pto_round_##t(T a) { return __builtin_rint##f(a); }                                                 \
    PTO_INLINE T pto_sign_##t(T a) { return a != a ? a : (T)((a > 0) - (a < 0)); }                                   \
    PTO_INLINE T pto_relu_##t(T a) { return a <= 0 ? (T)0 : a; }                                                     \
    PTO_INLINE T pto_sqrt_##t(T a) { return __builtin_sqrt##f(a); }                                                  \
    PTO_INLINE T pto_rsqrt_##t(T a) { return 1 / __builtin_sqrt##f(a); }                                             \
    PTO_INLINE T pto_recip_##t(T a) { return 1 / a; }                                                                \
    PTO_INLINE T pto_pow_##t(T a, T b) { return __builtin_pow##f(a, b); }                                            \
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
PTO_WHERE_(f32, float) PTO_WHERE_(f64, double) PTO_WHERE_(i8, int8_t) PTO_WHERE_(i32, int32_t)
PTO_WHERE_(i64, int64_t) PTO_WHERE_(u8, uint8_t) PTO_WHERE_(bool, _Bool)

/* An integer made of a float, kept from gcc: without traps it takes (float)(int)x for trunc(x), which keeps the sign of -0.3. */
#if defined __GNUC__ && !defined __clang__ && __GNUC__ >= 12
#define PTO_OPAQUE(x) __builtin_assoc_barrier(x)
#else
#define PTO_OPAQUE(x) (x)
#endif

/* ---- conversions: float to integer drops the fraction and saturates, NaN gives 0; integer to integer wraps ---- */

#define PTO_FROM_(f, F, t, T) PTO_INLINE T pto_cast_##f##_##t(F x) { return (T)x; }
#define PTO_SATURATE_(f, F, t, T, TOO_LARGE, MIN, MAX)                                                               \
    PTO_INLINE T pto_cast_##f##_##t(F x)                                                                             \
    {                                                                                                                \
        return x != x ? (T)0 : x >= (F)TOO_LARGE ? (T)MAX : x <= (F)MIN ? (T)MIN : PTO_OPAQUE((T)x);                 \
    }
#define PTO_TO_INTEGERS_(f, F)                                                                                       \
    PTO_FROM_(f, F, i8, int8_t) PTO_FROM_(f, F, i32, int32_t) PTO_FROM_(f, F, i64, int64_t) PTO_FROM_(f, F, u8, uint8_t)
#define PTO_SATURATES_(f, F)                                                                                         \
    PTO_SATURATE_(f, F, i8, int8_t, 128.0, INT8_MIN, INT8_MAX)                                                       \
    PTO_SATURATE_(f, F, i32, int32_t, 2147483648.0, INT32_MIN, INT32_MAX)                                            \
    PTO_SATURATE_(f, F, i64, int64_t, 9223372036854775808.0, INT64_MIN, INT64_MAX)                                   \
    PTO_SATURATE_(f, F, u8, uint8_t, 256.0, 0, UINT8_MAX)
#define PTO_TO_FLOATS_(f, F)                                                                                         \
    PTO_FROM_(f, F, f32, float) PTO_FROM_(f, F, f64, double)                                                         \
    PTO_INLINE uint8_t pto_cast_##f##_bool(F x) { return x != 0; }

PTO_TO_FLOATS_(f32, float) PTO_SATURATES_(f32, float)
PTO_TO_FLOATS_(f64, double) PTO_SATURATES_(f64, double)
PTO_TO_FLOATS_(i8, int8_t) PTO_TO_INTEGERS_(i8, int8_t)
PTO_TO_FLOATS_(i32, int32_t) PTO_TO_INTEGERS_(i32, int32_t)
PTO_TO_FLOATS_(i64, int64_t) PTO_TO_INTEGERS_(i64, int64_t)
PTO_TO_FLOATS_(u8, uint8_t) PTO_TO_INTEGERS_(u8, uint8_t)
PTO_TO_FLOATS_(bool, uint8_t) PTO_TO_INTEGERS_(bool, uint8_t)

/* ---- scalar expressions: 64-bit integers and doubles, as Python computes them ---- */

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

/* ---- f32 functions of our own; ulp over all of f32 as the tests measure them ---- */

PTO_INLINE float pto_exp_f32(float x)
{   /* 1 ulp; a result below the smallest normal number (x < -87.34) is 0. 2^k * e^r with k = rint(x / ln 2), |r| <= ln2 / 2, by a
       polynomial of degree 6. Adding 1.5 * 2^23 rounds and leaves k in the low bits, ready to be added to an exponent. */
    float t = PTO_FMA(x, 0x1.715476p0f, 0x1.8p23f), k = t - 0x1.8p23f;
    float r = PTO_FMA(k, -0x1.62e4p-1f, x);
    r = PTO_FMA(k, -0x1.7f7d1cp-20f, r);
    float p = 0x1.694p-10f;
    p = PTO_FMA(p, r, 0x1.125edcp-7f);
    p = PTO_FMA(p, r, 0x1.555b5ap-5f);
    p = PTO_FMA(p, r, 0x1.55545p-3f);
    p = PTO_FMA(p, r, 0x1.fffff6p-2f);
    p = PTO_FMA(p, r, 1.0f);
    p = PTO_FMA(p, r, 1.0f);
    p = pto_from_bits_f32((int32_t)((uint32_t)pto_bits_f32(p) + ((uint32_t)pto_bits_f32(t) << 23)));
    p = x < -0x1.5d589ep6f ? 0.0f : p;
    return x <= 0x1.62e42ep6f ? p : x + PTO_INF;
}

PTO_INLINE float pto_log_f32(float x)
{   /* 1 ulp; x = 2^k * (1 + m) with 1 + m in [2/3, 4/3), by a polynomial in m */
    float tiny = x < 0x1p-126f ? 0x1p23f : 1.0f, shift = x < 0x1p-126f ? -23.0f : 0.0f;
    int32_t bits = pto_bits_f32(x * tiny), e = (bits - 0x3f2aaaab) & (int32_t)0xff800000;
    float k = PTO_FMA((float)e, 0x1p-23f, shift), m = pto_from_bits_f32(bits - e) - 1.0f, s = m * m;
    float r = -0x1.0aep-3f, t = 0x1.208p-3f;
    r = PTO_FMA(r, s, -0x1.f198b2p-4f);
    t = PTO_FMA(t, s, 0x1.1e574p-3f);
    r = PTO_FMA(r, s, -0x1.55b36cp-3f);
    t = PTO_FMA(t, s, 0x1.99d8b2p-3f);
    r = PTO_FMA(r, s, -0x1.fffe02p-3f);
    r = PTO_FMA(t, m, r);
    r = PTO_FMA(r, m, 0x1.5554fap-2f);
    r = PTO_FMA(r, m, -0.5f);
    r = PTO_FMA(r, s, m);
    r = PTO_FMA(k, 0x1.62e43p-1f, r);
    r = x == 0.0f ? -PTO_INF : r;
    r = x < 0.0f ? PTO_NAN : r;
    return x - x == 0.0f ? r : x < 0.0f ? PTO_NAN : x;
}

PTO_INLINE float pto_tanh_f32(float x)
{   /* 2 ulp; an odd polynomial below 0.625, 1 - 2 / (e^2x + 1) above */
    float a = __builtin_fabsf(x), z = x * x;
    float p = -0x1.75e1bap-8f;
    p = PTO_FMA(p, z, 0x1.522722p-6f);
    p = PTO_FMA(p, z, -0x1.b83c56p-5f);
    p = PTO_FMA(p, z, 0x1.11073ap-3f);
    p = PTO_FMA(p, z, -0x1.55553ep-2f);
    p = PTO_FMA(p * z, x, x);
    float q = 1.0f - 2.0f / (pto_exp_f32(a + a) + 1.0f);
    return __builtin_copysignf(a < 0.625f ? p : q, x);
}

PTO_INLINE float pto_erf_f32(float x)
{   /* 1 ulp; an odd polynomial below 0.9277, 1 - e^(polynomial) above */
    float t = __builtin_fabsf(x), s = x * x;
    float r = PTO_FMA(-0x1.22p-16f, t, 0x1.91cfb2p-12f), u = PTO_FMA(-0x1.fd1438p-9f, t, 0x1.8d6342p-6f);
    r = PTO_FMA(r, s, u);
    r = PTO_FMA(r, t, -0x1.b55cb8p-4f);
    r = PTO_FMA(r, t, -0x1.450aap-1f);
    r = PTO_FMA(r, t, -0x1.079d0cp-3f);
    r = PTO_FMA(r, t, -t);
    r = t > 9.0f ? -128.0f : r;
    float far = __builtin_copysignf(1.0f - pto_exp_f32(r), x);
    float p = -0x1.38ep-11f;
    p = PTO_FMA(p, s, 0x1.471a58p-8f);
    p = PTO_FMA(p, s, -0x1.b691b2p-6f);
    p = PTO_FMA(p, s, 0x1.ce1c44p-4f);
    p = PTO_FMA(p, s, -0x1.8127p-2f);
    p = PTO_FMA(p, s, 0x1.06eba8p-3f);
    p = PTO_FMA(p, x, x);
    return t > 0.927734375f ? far : p;
}

PTO_INLINE float pto_sincos_f32_(float x, double quarter)
{   /* sin(x + quarter * pi / 2), in double: exact to the last bit of f32 or so while |x| < 2^30, a coarser angle beyond */
    double y = x, k = y * 0x1.45f306dc9c883p-1 + 0x1.8p52 - 0x1.8p52;
    double r = y - k * 0x1.921fbp0;   /* 21 bits of pi / 2 twice, times the 30 bits of k: exact without FMA */
    r = r - k * 0x1.5110bp-22;
    r = r - k * 0x1.18469898cc517p-44;
    int64_t n = (int64_t)(k + quarter);
    double z = r * r;
    double s = PTO_FMA64(PTO_FMA64(PTO_FMA64(PTO_FMA64(0x1.71d7264e6b5b4p-19, z, -0x1.a0186079d97a7p-13), z,
                                             0x1.11110f2e25c02p-7), z, -0x1.555555540f6e2p-3), z * r, r);
    double c = PTO_FMA64(PTO_FMA64(PTO_FMA64(PTO_FMA64(0x1.99343027bf8c3p-16, z, -0x1.6c087e89a359dp-10), z,
                                             0x1.55553e1068f19p-5), z, -0x1.ffffffd0c621cp-2), z, 1.0);
    double v = n & 1 ? c : s;
    return (float)(x - x == 0.0f ? (n & 2 ? -v : v) : (double)PTO_NAN);
}
PTO_INLINE float pto_sin_f32(float x) { return x == 0.0f ? x : pto_sincos_f32_(x, 0.0); }
PTO_INLINE float pto_cos_f32(float x) { return pto_sincos_f32_(x, 1.0); }

PTO_INLINE double pto_exp_f64(double x) { return __builtin_exp(x); }
PTO_INLINE double pto_log_f64(double x) { return __builtin_log(x); }
PTO_INLINE double pto_tanh_f64(double x) { return __builtin_tanh(x); }
PTO_INLINE double pto_erf_f64(double x) { return __builtin_erf(x); }
PTO_INLINE double pto_sin_f64(double x) { return __builtin_sin(x); }
PTO_INLINE double pto_cos_f64(double x) { return __builtin_cos(x); }

#define PTO_COMPOSED_(t, T)                                                                                          \
    PTO_INLINE T pto_sigmoid_##t(T x)                                                                                \
    {                                                                                                                \
        T small = pto_exp_##t(-pto_abs_##t(x));                                                                      \
        return (x < 0 ? small : (T)1) / (1 + small);                                                                 \
    }                                                                                                                \
    PTO_INLINE T pto_silu_##t(T x) { return x * pto_sigmoid_##t(x); }                                                \
    PTO_INLINE T pto_gelu_##t(T x) { return (T)0.5 * x * (1 + pto_erf_##t(x * (T)0.7071067811865475244)); }          \
    PTO_INLINE T pto_gelu_tanh_##t(T x)                                                                              \
    {                                                                                                                \
        return (T)0.5 * x * (1 + pto_tanh_##t((T)0.7978845608028653559 * (x + (T)0.044715 * x * x * x)));            \
    }
PTO_COMPOSED_(f32, float)
PTO_COMPOSED_(f64, double)

#endif
