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
