/* pto_matmul_half.h: products of f16 and bf16, summed in f32.

   bf16 goes two elements a word where the CPU has dot products of them (AVX512_BF16); else, and for f16 everywhere, elements are
   widened to f32 as they are packed, whose products of two halves are exact. */
#if defined(PTO_USES_MATMUL_F16) || defined(PTO_USES_MATMUL_BF16)
#include "math/pto_half.h"
#endif

#ifdef PTO_USES_MATMUL_F16
#define PTO_MM_DTYPE f16
#define PTO_MM_ELEMENT uint16_t
#define PTO_MM_SUM float
#define PTO_MM_WORD float
#define PTO_MM_PER_WORD 1
#define PTO_MM_IN_PLACE 0
#define PTO_MM_STEP(sum, x, row) ((sum) += (x) * (row))
PTO_MATMUL_INLINE float pto_word_f16(const uint16_t *x, int64_t step)
{
    (void)step;
    return pto_widen_f16(*x);
}
#include "pto_matmul_dtype.h"
#endif

#ifdef PTO_USES_MATMUL_BF16
#define PTO_MM_DTYPE bf16
#define PTO_MM_ELEMENT uint16_t
#define PTO_MM_SUM float
#define PTO_MM_IN_PLACE 0
#if PTO_VECTOR_BYTES == 64 && defined(__AVX512BF16__)
#define PTO_MM_WORD uint32_t
#define PTO_MM_PER_WORD 2
PTO_MATMUL_INLINE uint32_t pto_word_bf16(const uint16_t *x, int64_t step)
{
    return (uint32_t)x[0] | (uint32_t)x[step] << 16;
}
#define PTO_MM_CAREFUL
/* The largest exponents of two elements a word, as they lie in their fields. */
PTO_MATMUL_INLINE uint32_t pto_top_bf16(const uint32_t *words, int64_t n)
{
    uint32_t low = 0, high = 0;
    for (int64_t i = 0; i < n; ++i) {
        const uint32_t l = words[i] & UINT32_C(0x7f80), h = words[i] & UINT32_C(0x7f800000);
        low = l > low ? l : low;
        high = h > high ? h : high;
    }
    return low >> 7 > high >> 23 ? low >> 7 : high >> 23;
}
/* Sums of 512 terms stay far below what overflows f32 where the exponents of two factors add up to no more. */
#define PTO_MM_TOP 370
/* The terms in order, 256 at a time, as they are summed without dot products: what overflows first decides what comes out. */
PTO_MATMUL_FUNCTION void pto_careful_bf16(float *c, int64_t c_row, int64_t c_col, const uint32_t *a, int64_t lda, const uint32_t *b,
                                          int64_t ldb, int64_t m, int64_t n, int64_t words, int add)
{
    for (int64_t i = 0; i < m; ++i)
        for (int64_t x = 0; x < n; ++x)
            for (int64_t begin = 0; begin < words; begin += 128) {
                float sum = 0, *to = c + i * c_row + x * c_col;
                for (int64_t w = begin; w < words && w < begin + 128; ++w) {
                    const uint32_t p = a[i * lda + w], q = b[w * ldb + x];
                    sum = __builtin_fmaf(pto_widen_bf16((uint16_t)p), pto_widen_bf16((uint16_t)q), sum);
                    sum = __builtin_fmaf(pto_widen_bf16((uint16_t)(p >> 16)), pto_widen_bf16((uint16_t)(q >> 16)), sum);
                }
                *to = add || begin > 0 ? *to + sum : sum;
            }
}
#define PTO_MM_STEP(sum, x, row) __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"((PTO_MM(words)){0} + (x)), "v"(row))
#else
#define PTO_MM_WORD float
#define PTO_MM_PER_WORD 1
PTO_MATMUL_INLINE float pto_word_bf16(const uint16_t *x, int64_t step)
{
    (void)step;
    return pto_widen_bf16(*x);
}
#define PTO_MM_STEP(sum, x, row) ((sum) += (x) * (row))
#endif
#include "pto_matmul_dtype.h"
#endif
