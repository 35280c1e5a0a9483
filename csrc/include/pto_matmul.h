/* pto_matmul.h: c[m][n] = a[m][k] b[k][n], or += with PTO_MATMUL_ACCUMULATE; leading dimensions in elements.

   With PTO_MATMUL_TRANSPOSE_A memory at a holds [k][m], with PTO_MATMUL_TRANSPOSE_B memory at b holds [n][k]. c overlaps
   neither. `pack` is scratch, 64-byte aligned, of at least pack_bytes() of pto_wsp/passes/kernel/products.py.

   How it works: k is cut into steps of PTO_MATMUL_WORDS words. In a step the columns of b go through panels of two vectors, and a
   block of up to PTO_MATMUL_ROWS rows x 2 vectors of c stays in registers over the step (pto_matmul_block.h). A word is what one
   broadcast of a holds: one element, 2 of bf16, 4 of i8. Panels are packed unless b can be read in place, and so are rows of a
   (pto_matmul_pack.h). Each dtype is one inclusion of pto_matmul_dtype.h.

   Order of sums: an element of c is the sum over k in order within a step, by fused multiply-adds from zero where the CPU has
   them; sums of steps are added to c in order. Neither m, n, the tile, nor the number of threads takes part: same k, same bits.
   bf16 with AVX512_BF16: k in pairs (2p + 1 before 2p), subnormals count as zero. Integers wrap. */
#ifndef PTO_MATMUL_H
#define PTO_MATMUL_H
#include <stdint.h>

#include "pto_tile.h"

enum {
    PTO_MATMUL_ACCUMULATE = 1,
    PTO_MATMUL_TRANSPOSE_A = 2,
    PTO_MATMUL_TRANSPOSE_B = 4,
    PTO_MATMUL_TURN = 8,           /* for a few columns: compute c transposed, so that rows of a fill the vectors */
    PTO_MATMUL_FEW_ROWS = 16       /* for 1 to 3 rows, nothing transposed, elements that are words; needs PTO_USES_FEW_ROWS */
};

#define PTO_MATMUL_WORDS 256       /* of k in a step: a panel of b is 32 KiB */
#define PTO_MATMUL_CHUNK 512       /* rows of a in a step at most, so that they stay in L2 */
#define PTO_MATMUL_PAD 16          /* words between packed rows of a, against rows that fall on the same cache set */

#if defined(__AVX512F__)
#define PTO_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define PTO_VECTOR_BYTES 32
#else
#define PTO_VECTOR_BYTES 16
#endif
#if defined(__AVX512F__) || defined(__aarch64__)
#define PTO_MATMUL_ROWS 12         /* 24 sums in 32 registers */
#elif defined(__AVX2__)
#define PTO_MATMUL_ROWS 6          /* 12 sums in 16 registers */
#else
#define PTO_MATMUL_ROWS 4
#endif

#if defined(__clang__)
#define PTO_MATMUL_FUNCTION static __attribute__((unused, noinline))
#else
#define PTO_MATMUL_FUNCTION static __attribute__((unused, noinline, noclone))
#endif
#define PTO_MATMUL_INLINE static inline __attribute__((always_inline, unused))
#define PTO_JOIN2_(a, b) a##b
#define PTO_JOIN_(a, b) PTO_JOIN2_(a, b)
#define PTO_MM(name) PTO_JOIN_(pto_##name##_, PTO_MM_DTYPE)

/* Fetch into L2 rows that are packed next, while sums are computed: else each line would be waited for. */
PTO_MATMUL_INLINE void pto_fetch(const void *at, int64_t step_bytes, int64_t rows, int64_t row_bytes)
{
    for (const char *row = at; rows > 0; --rows, row += step_bytes)
        for (int64_t byte = 0; byte < row_bytes; byte += 64)
            __builtin_prefetch(row + byte, 0, 2);
}

/* The same, but one or two lines with each word of a block: lines in pairs, so many bytes from pair to pair. */
typedef struct pto_fetch_lines {
    const char *at, *other;
    int64_t step_bytes, n, at_once;    /* n: words; at_once: lines with each */
} pto_fetch_lines;

PTO_MATMUL_INLINE pto_fetch_lines pto_fetch_pairs(const void *at, int64_t gap_bytes, int64_t step_bytes, int64_t lines, int64_t words)
{
    const int64_t at_once = lines > words ? 2 : 1;
    return (pto_fetch_lines){at, (const char *)at + gap_bytes, step_bytes, (lines + at_once - 1) / at_once, at_once};
}

PTO_MATMUL_INLINE void pto_fetch_line(pto_fetch_lines *next)
{
    const char *const at = next->at;
    __builtin_prefetch(at, 0, 2);
    next->at = next->other, next->other = at + next->step_bytes;
}

#include "matmul/pto_matmul_float.h"
#include "matmul/pto_matmul_half.h"
#include "matmul/pto_matmul_int.h"

#endif
