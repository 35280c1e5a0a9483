/* pto_functions.h: functions of one f32 or f64 element; the f32 ones are our own, with their error in ulp as the tests measure it over
   all of f32. */
#ifndef PTO_FUNCTIONS_H
#define PTO_FUNCTIONS_H
#include <stdint.h>
#include "pto_float.h"

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
    PTO_INLINE T pto_sigmoid_##t(T x) { return 1 / (1 + pto_exp_##t(-x)); }                                          \
    PTO_INLINE T pto_silu_##t(T x) { return x / (1 + pto_exp_##t(-x)); }                                             \
    PTO_INLINE T pto_gelu_##t(T x) { return (T)0.5 * x * (1 + pto_erf_##t(x * (T)0.7071067811865475244)); }          \
    PTO_INLINE T pto_gelu_tanh_##t(T x)                                                                              \
    {                                                                                                                \
        return (T)0.5 * x * (1 + pto_tanh_##t((T)0.7978845608028653559 * (x + (T)0.044715 * x * x * x)));            \
    }
PTO_COMPOSED_(f32, float)
PTO_COMPOSED_(f64, double)

#endif
