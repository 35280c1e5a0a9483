/* pto_matmul_int.h: products of i8 (in i32), i32 and i64: sums wrap.

   i8 goes four elements a word where the CPU has dot products of u8 by s8 (AVX512_VNNI, AVX_VNNI): a is read as a + 128, and
   128 times the column sums of b is taken off where a block starts. Elsewhere on x86, two elements a word through pmaddwd; else
   one. */
#ifdef PTO_USES_MATMUL_I8
#define PTO_MM_DTYPE i8
#define PTO_MM_ELEMENT int8_t
#define PTO_MM_SUM int32_t
#define PTO_MM_IN_PLACE 0
#if PTO_VECTOR_BYTES == 64 ? defined(__AVX512VNNI__) : PTO_VECTOR_BYTES == 32 && defined(__AVXVNNI__)
#define PTO_MM_WORD int32_t
#define PTO_MM_PER_WORD 4
#define PTO_MM_BIAS_LEFT (int32_t)0x80808080
#if PTO_VECTOR_BYTES == 64
#define PTO_DOT_U8_S8 "vpdpbusd %2, %1, %0"
#else
#define PTO_DOT_U8_S8 "%{vex%} vpdpbusd %2, %1, %0"
#endif
PTO_MATMUL_INLINE int32_t pto_word_i8(const int8_t *x, int64_t step)
{
    return (int32_t)((uint32_t)(uint8_t)x[0] | (uint32_t)(uint8_t)x[step] << 8 | (uint32_t)(uint8_t)x[2 * step] << 16 |
                     (uint32_t)(uint8_t)x[3 * step] << 24);
}
#define PTO_MM_STEP(sum, x, row)                                                                                     \
    __asm__(PTO_DOT_U8_S8 : "+v"(sum) : "v"((PTO_MM(words)){0} + (x)), "v"(row))
#elif defined(__SSE2__) && (PTO_VECTOR_BYTES < 64 || defined(__AVX512BW__))
#define PTO_MM_WORD int32_t
#define PTO_MM_PER_WORD 2
PTO_MATMUL_INLINE int32_t pto_word_i8(const int8_t *x, int64_t step)
{
    return (int32_t)((uint32_t)(uint16_t)x[0] | (uint32_t)x[step] << 16);
}
#if PTO_VECTOR_BYTES > 16
#define PTO_DOT_S16(products, x, row) __asm__("vpmaddwd %2, %1, %0" : "=v"(products) : "v"(x), "v"(row))
#else
#define PTO_DOT_S16(products, x, row) __asm__("pmaddwd %1, %0" : "=x"(products) : "x"(row), "0"(x))
#endif
#define PTO_MM_STEP(sum, x, row)                                                                                     \
    do {                                                                                                             \
        PTO_MM(words) left = (PTO_MM(words)){0} + (x), products;                                                     \
        PTO_DOT_S16(products, left, row);                                                                            \
        (sum) += products;                                                                                           \
    } while (0)
#else
#define PTO_MM_WORD int32_t
#define PTO_MM_PER_WORD 1
PTO_MATMUL_INLINE int32_t pto_word_i8(const int8_t *x, int64_t step)
{
    (void)step;
    return *x;
}
#define PTO_MM_STEP(sum, x, row) ((sum) += (x) * (row))
#endif
#include "pto_matmul_dtype.h"
#endif

#ifdef PTO_USES_MATMUL_I32
#define PTO_MM_DTYPE i32
#define PTO_MM_ELEMENT int32_t
#define PTO_MM_SUM int32_t
#define PTO_MM_WORD int32_t
#define PTO_MM_PER_WORD 1
#define PTO_MM_IN_PLACE 1
#define PTO_MM_STEP(sum, x, row) ((sum) += (x) * (row))
PTO_MATMUL_INLINE int32_t pto_word_i32(const int32_t *x, int64_t step)
{
    (void)step;
    return *x;
}
#include "pto_matmul_dtype.h"
#endif

#ifdef PTO_USES_MATMUL_I64
#define PTO_MM_DTYPE i64
#define PTO_MM_ELEMENT int64_t
#define PTO_MM_SUM int64_t
#define PTO_MM_WORD int64_t
#define PTO_MM_PER_WORD 1
#define PTO_MM_IN_PLACE 1
#define PTO_MM_STEP(sum, x, row) ((sum) += (x) * (row))
PTO_MATMUL_INLINE int64_t pto_word_i64(const int64_t *x, int64_t step)
{
    (void)step;
    return *x;
}
#include "pto_matmul_dtype.h"
#endif
