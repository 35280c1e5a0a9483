/* pto_functions.h: functions of one f32 or f64 element; the f32 ones are our own, with their error in ulp as the tests measure it over
   all of f32. */
#ifndef PTO_FUNCTIONS_H
#define PTO_FUNCTIONS_H
#include <stdint.h>
#include "pto_float.h"

#define PTO_EXP_POLYNOMIAL_(p, r) /* e^r for |r| <= ln2 / 2 */                                                       \
    float p = 0x1.694p-10f;                                                                                          \
    p = PTO_FMA(p, r, 0x1.125edcp-7f);                                                                               \
    p = PTO_FMA(p, r, 0x1.555b5ap-5f);                                                                               \
    p = PTO_FMA(p, r, 0x1.55545p-3f);                                                                                \
    p = PTO_FMA(p, r, 0x1.fffff6p-2f);                                                                               \
    p = PTO_FMA(p, r, 1.0f);                                                                                         \
    p = PTO_FMA(p, r, 1.0f);

PTO_INLINE float pto_exp_times_(float x, float m)
{   /* m e^x, good to subnormal results. e^x = 2^k * e^r with k = rint(x / ln 2), |r| <= ln2 / 2, by a polynomial of degree 6. Adding
       1.5 * 2^23 rounds and leaves k in the low bits, ready to be added to an exponent; below 0 in two steps, of which the second
       rounds what is subnormal. Bits of the sign rather than comparisons: fewer of the units that multiply. */
    float t = PTO_FMA(x, 0x1.715476p0f, 0x1.8p23f), k = t - 0x1.8p23f;
    float r = PTO_FMA(k, -0x1.62e4p-1f, x);
    r = PTO_FMA(k, -0x1.7f7d1cp-20f, r);
    PTO_EXP_POLYNOMIAL_(p, r)
    int32_t lift = (pto_bits_f32(x) >> 31) & 64 << 23;
    p = m * pto_from_bits_f32((int32_t)((uint32_t)pto_bits_f32(p) + ((uint32_t)pto_bits_f32(t) << 23) + (uint32_t)lift));
    p = x < -130.0f ? m * 0.0f : p;
    return p * pto_from_bits_f32(0x3f800000 - lift);
}
PTO_INLINE float pto_exp_f32(float x)
{   /* 1 ulp */
    float p = pto_exp_times_(x, 1.0f);
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
{   /* sin(x + quarter * pi / 2), in double: exact to the last bit of f32 or so while |x| < 2^30; beyond, where neighbouring x lie many
       turns apart, the angle counts as 0 */
    double y = __builtin_fabsf(x) < 0x1p30f ? x : 0.0f, k = y * 0x1.45f306dc9c883p-1 + 0x1.8p52 - 0x1.8p52;
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

PTO_INLINE double pto_exp2_(double x)
{   /* 4e-11: 2^k * 2^f, |f| <= 1/2, of x in [-1000, 1000] */
    double t = x + 0x1.8p52, f = x - (t - 0x1.8p52);
    double p = 0x1.fe176e429bcb2p-17;
    p = PTO_FMA64(p, f, 0x1.446a1fbfc1df8p-13);
    p = PTO_FMA64(p, f, 0x1.5d8a709b20b54p-10);
    p = PTO_FMA64(p, f, 0x1.3b29dc40ff1a6p-7);
    p = PTO_FMA64(p, f, 0x1.c6b08aaf1c38dp-5);
    p = PTO_FMA64(p, f, 0x1.ebfbe0a4be446p-3);
    p = PTO_FMA64(p, f, 0x1.62e42ff116313p-1);
    p = PTO_FMA64(p, f, 0x1.ffffffffabbcbp-1);
    return pto_from_bits_f64((int64_t)((uint64_t)pto_bits_f64(p) + ((uint64_t)pto_bits_f64(t) << 52)));
}

PTO_INLINE double pto_log2_(double x)
{   /* 3e-14 of the result: x = 2^k * m with m in [sqrt 1/2, sqrt 2), by an odd polynomial in (m - 1) / (m + 1) */
    int64_t bits = pto_bits_f64(x), e = (bits - 0x3fe6a09e667f3bcd) & (int64_t)0xfff0000000000000;
    double m = pto_from_bits_f64(bits - e), s = (m - 1) / (m + 1), z = s * s;
    double p = 0x1.21b0161ee52f5p-2;
    p = PTO_FMA64(p, z, 0x1.479564f75bd85p-2);
    p = PTO_FMA64(p, z, 0x1.a61a2e6dc56c3p-2);
    p = PTO_FMA64(p, z, 0x1.2776c293b2687p-1);
    p = PTO_FMA64(p, z, 0x1.ec709dc53c08ap-1);
    p = PTO_FMA64(p, z, 0x1.71547652b824ep+1);
    return PTO_FMA64(p, s, (double)(e >> 52));
}

PTO_INLINE float pto_pow_f32(float x, float y)
{   /* 1 ulp; 2^(y log2 |x|) in double. An odd y keeps the sign of x; a y that is not whole makes NaN of a negative x. */
    float a = __builtin_fabsf(x), whole = __builtin_truncf(y), half = y * 0.5f;
    double l = pto_log2_(a);
    l = a == 0.0f ? -(double)PTO_INF : a - a == 0.0f ? l : (double)a;
    double z = y * l;
    z = z > 200.0 ? 200.0 : z < -200.0 ? -200.0 : z;
    float r = (float)pto_exp2_(z);
    int odd = whole == y && __builtin_truncf(half) != half;
    r = x < 0.0f && x - x == 0.0f && whole != y ? PTO_NAN : odd ? __builtin_copysignf(r, x) : r;
    r = x != x || y != y ? PTO_NAN : r;
    return y == 0.0f || x == 1.0f || (a == 1.0f && y - y != 0.0f && y == y) ? 1.0f : r;
}
PTO_INLINE double pto_pow_f64(double x, double y) { return __builtin_pow(x, y); }

PTO_INLINE float pto_exp2_f32(float x)
{   /* 0.6 ulp; in double */
    double z = x > 200.0f ? 200.0 : x < -200.0f ? -200.0 : (double)x;
    float r = (float)pto_exp2_(z);
    return x == x ? r : x;
}

PTO_INLINE float pto_log2_f32(float x)
{   /* 0.6 ulp; in double */
    float r = (float)pto_log2_(x);
    r = x == 0.0f ? -PTO_INF : r;
    return x < 0.0f ? PTO_NAN : x - x == 0.0f ? r : x;
}
PTO_INLINE double pto_exp2_f64(double x) { return __builtin_exp2(x); }
PTO_INLINE double pto_log2_f64(double x) { return __builtin_log2(x); }

PTO_INLINE float pto_exp_down_(float x)
{   /* e^-x for a sum with 1, where what is below the normal numbers is 0. No limit on x: gcc would compute the quotients of sigmoid
       and silu once more for where it holds. */
    float y = -x, t = PTO_FMA(y, 0x1.715476p0f, 0x1.8p23f), k = t - 0x1.8p23f;
    float r = PTO_FMA(k, -0x1.62e4p-1f, y);
    r = PTO_FMA(k, -0x1.7f7d1cp-20f, r);
    PTO_EXP_POLYNOMIAL_(p, r)
    p = pto_from_bits_f32((int32_t)((uint32_t)pto_bits_f32(p) + ((uint32_t)pto_bits_f32(t) << 23)));
    p = y < -0x1.5d589ep6f ? 0.0f : p;
    return y <= 0x1.62e42ep6f ? p : y + PTO_INF;
}
PTO_INLINE float pto_sigmoid_f32(float x) { return 1 / (1 + pto_exp_down_(x)); }   /* 3 ulp, 0 below -88.72 */
PTO_INLINE float pto_silu_f32(float x) { return x / (1 + pto_exp_down_(x)); }      /* 3 ulp, -0 below -88.72 */
PTO_INLINE double pto_sigmoid_f64(double x) { return 1 / (1 + pto_exp_f64(-x)); }
PTO_INLINE double pto_silu_f64(double x) { return x / (1 + pto_exp_f64(-x)); }

PTO_INLINE float pto_exp_wide_(double x, float m)
{   /* m e^x where an error of x in f32 would be too large; x <= 0 */
    double cut = x > -200.0 ? x : -200.0;
    float hi = (float)cut, lo = (float)(cut - hi);
    return pto_exp_times_(hi, PTO_FMA(m, lo, m));
}
PTO_INLINE float pto_gelu_f32(float x)
{   /* 8 ulp; x Phi(x), where Phi(-a) = e^(-a^2 / 2) t P(1 - t) with t = 1 / (1 + 0.35 a) */
    float a = __builtin_fabsf(x), t = 1.0f / PTO_FMA(0.35f, a, 1.0f), u = 1.0f - t;
    float p = -0x1.950f04p-9f;
    p = PTO_FMA(p, u, -0x1.2012f2p-6f);
    p = PTO_FMA(p, u, 0x1.23605cp-4f);
    p = PTO_FMA(p, u, -0x1.8f63c8p-5f);
    p = PTO_FMA(p, u, -0x1.836d42p-6f);
    p = PTO_FMA(p, u, -0x1.fba2bcp-5f);
    p = PTO_FMA(p, u, 0x1.a2ecfcp-4f);
    p = PTO_FMA(p, u, 0x1.0b575p-2f);
    p = PTO_FMA(p, u, -0x1.47983p-1f);
    p = PTO_FMA(p, u, 0.5f);
    float tail = pto_exp_wide_((double)a * a * -0.5, p * t * (x < 0.0f ? x : 1.0f));
    return x < 0.0f ? tail : x * (1.0f - tail);
}
PTO_INLINE double pto_gelu_f64(double x) { return 0.5 * x * __builtin_erfc(x * -0.70710678118654752440); }
PTO_INLINE float pto_gelu_tanh_f32(float x)
{   /* 4 ulp; x / (1 + e^-2u), which is x (1 + tanh u) / 2 */
    double y = x, u = y * (1.5957691216057308 + 0.07135481627260025 * y * y);
    double down = -__builtin_fabs(u);
    return (x < 0.0f ? pto_exp_wide_(down, x) : x) / (1.0f + pto_exp_wide_(down, 1.0f));
}
PTO_INLINE double pto_gelu_tanh_f64(double x)
{
    return x * pto_sigmoid_f64(x * (1.5957691216057308 + 0.07135481627260025 * x * x));
}

#endif
