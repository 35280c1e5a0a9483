/* pto_tile.h: tiles between memory and scratch: the valid part is copied, the rest is filled.

   A tile in scratch is row-major without gaps. Steps are in elements and may be 0 or negative; scratch and the memory that a
   tile is copied from or to never overlap. */
#ifndef PTO_TILE_H
#define PTO_TILE_H
#include <stdint.h>
#include "pto_wsp.h"

#if defined(__clang__)
#define PTO_TILE_FUNCTION static __attribute__((unused, noinline))
#else
#define PTO_TILE_FUNCTION static __attribute__((unused, noinline, noclone))
#endif
#define PTO_TILE_BLOCK 16

/* Whether [at, at + count) lies inside [0, extent). */
static inline __attribute__((always_inline, unused)) int pto_inside(int64_t at, int64_t count, int64_t extent)
{
    return at >= 0 && count >= 0 && at <= extent - count;
}

/* Run-time guard: whether the piece [rows, cols] at (row, col) leaves what is bound; an empty piece lies anywhere. */
static inline __attribute__((always_inline, unused)) int pto_leaves(const pto_arg *arg, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    return rows > 0 && cols > 0 && !(pto_inside(row, rows, arg->extent[0]) && pto_inside(col, cols, arg->extent[1]));
}

/* A guard that failed: tell where the piece starts and the last row and column that it may start at, and return the code. */
static __attribute__((noinline, cold, unused)) int32_t pto_outside(pto_context *context, int32_t code, const pto_arg *arg, int64_t row,
                                                                   int64_t rows, int64_t col, int64_t cols)
{
    context->fault = (pto_fault){.row = row, .col = col, .lower = arg->extent[0] - rows, .upper = arg->extent[1] - cols};
    return code;
}

/* Whether a tile of rows x cols has no element [row, col]: then the fault says where it would be, and the last row and column. */
static inline __attribute__((always_inline, unused)) int pto_element_leaves(pto_context *context, int64_t row, int64_t rows, int64_t col,
                                                                            int64_t cols)
{
    if (row >= 0 && row < rows && col >= 0 && col < cols)
        return 0;
    context->fault = (pto_fault){.row = row, .col = col, .lower = rows - 1, .upper = cols - 1};
    return 1;
}

static inline __attribute__((always_inline, unused)) int64_t pto_clamp(int64_t count, int64_t limit)
{
    return count < 0 ? 0 : count < limit ? count : limit;
}

/* Fold 64 lanes into lanes[0], always in the same order; `combine` is written with lo and hi. A loop that gcc unrolls first, it
   no longer vectorises. */
#define PTO_FOLD_HALF_(lanes, n, combine)                                                                            \
    _Pragma("GCC unroll 1") for (int l = 0; l < n; ++l) {                                                            \
        __typeof__(lanes[0]) lo = lanes[l], hi = lanes[l + n];                                                       \
        lanes[l] = combine;                                                                                          \
    }
#define PTO_FOLD(lanes, combine)                                                                                     \
    do {                                                                                                             \
        PTO_FOLD_HALF_(lanes, 32, combine)                                                                           \
        PTO_FOLD_HALF_(lanes, 16, combine)                                                                           \
        PTO_FOLD_HALF_(lanes, 8, combine)                                                                            \
        PTO_FOLD_HALF_(lanes, 4, combine)                                                                            \
        PTO_FOLD_HALF_(lanes, 2, combine)                                                                            \
        PTO_FOLD_HALF_(lanes, 1, combine)                                                                            \
    } while (0)

#if defined(__GNUC__) && !defined(__clang__)
/* dst[c][r] = src[r][c] for one block of 16 x 16 words: four rounds that interleave rows k and k + 8 */
typedef uint32_t pto_words16 __attribute__((vector_size(64), may_alias));
typedef uint32_t pto_words16_at __attribute__((vector_size(64), aligned(4), may_alias));
static inline __attribute__((unused)) void pto_transpose_block_32(uint32_t *dst, int64_t dst_step, const uint32_t *src, int64_t src_step)
{
    const pto_words16 low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
    const pto_words16 high = {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    pto_words16 a[16], b[16];
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r)
        a[r] = *(const pto_words16_at *)(src + r * src_step);
#pragma GCC unroll 4
    for (int round = 0; round < 4; ++round) {
#pragma GCC unroll 8
        for (int k = 0; k < 8; ++k) {
            b[2 * k] = __builtin_shuffle(a[k], a[k + 8], low);
            b[2 * k + 1] = __builtin_shuffle(a[k], a[k + 8], high);
        }
#pragma GCC unroll 16
        for (int r = 0; r < 16; ++r)
            a[r] = b[r];
    }
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r)
        *(pto_words16_at *)(dst + r * dst_step) = a[r];
}
#define PTO_BLOCK_32(dst, dst_step, src, src_step)                                                                   \
    pto_transpose_block_32((uint32_t *)(dst), dst_step, (const uint32_t *)(src), src_step)
#endif

/* pto_stage_t: dst[rows][cols] = the valid part of src, `fill` elsewhere; pto_unstage_t: the valid part of dst = src. */
#define PTO_TILE_(t, T, BLOCK)                                                                                       \
    PTO_TILE_FUNCTION void pto_stage_##t(T *restrict dst, int64_t rows, int64_t cols, const T *restrict src,         \
                                       int64_t row_step, int64_t col_step, int64_t valid_rows, int64_t valid_cols,   \
                                       T fill)                                                                       \
    {                                                                                                                \
        valid_rows = pto_clamp(valid_rows, rows), valid_cols = pto_clamp(valid_cols, cols);                          \
        int64_t r0 = 0;                                                                                              \
        if (row_step == 1 && col_step != 1)                                                                          \
            for (; r0 + PTO_TILE_BLOCK <= valid_rows; r0 += PTO_TILE_BLOCK) {                                        \
                int64_t c = 0;                                                                                       \
                for (; c + PTO_TILE_BLOCK <= valid_cols; c += PTO_TILE_BLOCK)                                        \
                    BLOCK(dst + r0 * cols + c, cols, src + r0 + c * col_step, col_step);                             \
                for (int64_t r = r0; r < r0 + PTO_TILE_BLOCK; ++r)                                                   \
                    for (int64_t k = c; k < cols; ++k)                                                               \
                        dst[r * cols + k] = k < valid_cols ? src[r + k * col_step] : fill;                           \
            }                                                                                                        \
        for (int64_t r = r0; r < rows; ++r) {                                                                        \
            T *restrict row = dst + r * cols;                                                                        \
            const T *restrict from = src + r * row_step;                                                             \
            int64_t n = r < valid_rows ? valid_cols : 0;                                                             \
            if (col_step == 1)                                                                                       \
                for (int64_t c = 0; c < n; ++c)                                                                      \
                    row[c] = from[c];                                                                                \
            else                                                                                                     \
                for (int64_t c = 0; c < n; ++c)                                                                      \
                    row[c] = from[c * col_step];                                                                     \
            for (int64_t c = n; c < cols; ++c)                                                                       \
                row[c] = fill;                                                                                       \
        }                                                                                                            \
    }                                                                                                                \
    PTO_TILE_FUNCTION void pto_unstage_##t(T *restrict dst, int64_t row_step, int64_t col_step,                      \
                                           const T *restrict src,                                                    \
                                         int64_t rows, int64_t cols, int64_t valid_rows, int64_t valid_cols)         \
    {                                                                                                                \
        valid_rows = pto_clamp(valid_rows, rows), valid_cols = pto_clamp(valid_cols, cols);                          \
        for (int64_t r = 0; r < valid_rows; ++r) {                                                                   \
            T *restrict to = dst + r * row_step;                                                                     \
            if (col_step == 1)                                                                                       \
                for (int64_t c = 0; c < valid_cols; ++c)                                                             \
                    to[c] = src[r * cols + c];                                                                       \
            else                                                                                                     \
                for (int64_t c = 0; c < valid_cols; ++c)                                                             \
                    to[c * col_step] = src[r * cols + c];                                                            \
        }                                                                                                            \
    }

#define PTO_BLOCK_PLAIN_(dst, dst_step, src, src_step)                                                               \
    for (int64_t i = 0; i < PTO_TILE_BLOCK; ++i)                                                                     \
        for (int64_t k = 0; k < PTO_TILE_BLOCK; ++k)                                                                 \
            (dst)[i * (dst_step) + k] = (src)[k * (src_step) + i]
#ifndef PTO_BLOCK_32
#define PTO_BLOCK_32 PTO_BLOCK_PLAIN_
#endif

PTO_TILE_(f32, float, PTO_BLOCK_32)
PTO_TILE_(i32, int32_t, PTO_BLOCK_32)
PTO_TILE_(u32, uint32_t, PTO_BLOCK_32)
PTO_TILE_(f64, double, PTO_BLOCK_PLAIN_)
PTO_TILE_(i64, int64_t, PTO_BLOCK_PLAIN_)
PTO_TILE_(u64, uint64_t, PTO_BLOCK_PLAIN_)
PTO_TILE_(i16, int16_t, PTO_BLOCK_PLAIN_)
PTO_TILE_(u16, uint16_t, PTO_BLOCK_PLAIN_)
PTO_TILE_(i8, int8_t, PTO_BLOCK_PLAIN_)
PTO_TILE_(u8, uint8_t, PTO_BLOCK_PLAIN_)

/* what lies in memory as bits moves as them */
#define pto_stage_f16 pto_stage_u16
#define pto_unstage_f16 pto_unstage_u16
#define pto_stage_bf16 pto_stage_u16
#define pto_unstage_bf16 pto_unstage_u16
#define pto_stage_fp8e4m3 pto_stage_u8
#define pto_unstage_fp8e4m3 pto_unstage_u8
#define pto_stage_fp8e5m2 pto_stage_u8
#define pto_unstage_fp8e5m2 pto_unstage_u8
#define pto_stage_bool pto_stage_u8
#define pto_unstage_bool pto_unstage_u8

#endif
