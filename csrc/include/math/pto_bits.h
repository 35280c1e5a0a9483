/* pto_bits.h: what the headers of single elements share: spellings for the compiler, and floats as their bits. */
#ifndef PTO_BITS_H
#define PTO_BITS_H
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

#endif
