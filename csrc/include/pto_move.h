/* pto_move.h: blocks of elements from one place to another, whatever they mean: transpose, slices, concat, pad and reshape.

   Steps are in elements and may be 0 or negative; source and target never overlap. Elements are moved by their width, so a
   pointer to any dtype of that width is taken. */
#ifndef PTO_MOVE_H
#define PTO_MOVE_H
#include <stdint.h>
#include <string.h>
#include "pto_tile.h"

typedef uint8_t pto_bits8 __attribute__((may_alias));
typedef uint16_t pto_bits16 __attribute__((may_alias));
typedef uint32_t pto_bits32 __attribute__((may_alias));
typedef uint64_t pto_bits64 __attribute__((may_alias));

#define PTO_MOVE_ROW_(to_step, from_step)                                                                            \
    for (int64_t c = 0; c < cols; ++c)                                                                               \
        row[c * (to_step)] = at[c * (from_step)];

/* pto_move_bits: element (r, c) of rows x cols goes from from[r * from_row + c * from_col] to to[r * to_row + c * to_col]. */
#define PTO_MOVE_(bits, BLOCK)                                                                                       \
    PTO_TILE_FUNCTION void pto_move_##bits(void *restrict to, int64_t to_row, int64_t to_col,                        \
                                           const void *restrict from, int64_t from_row, int64_t from_col,            \
                                           int64_t rows, int64_t cols)                                               \
    {                                                                                                                \
        typedef pto_bits##bits T;                                                                                    \
        T *restrict dst = (T *)to;                                                                                   \
        const T *restrict src = (const T *)from;                                                                     \
        if (cols == 1) {                                                                                             \
            cols = rows, to_col = to_row, from_col = from_row;                                                       \
            rows = 1;                                                                                                \
        }                                                                                                            \
        if (to_col == 1 && from_col == 1 && (rows == 1 || (to_row == cols && from_row == cols))) {                   \
            memcpy(dst, src, (size_t)(rows * cols) * sizeof(T));                                                     \
            return;                                                                                                  \
        }                                                                                                            \
        int64_t r0 = 0;                                                                                              \
        if (to_col == 1 && from_row == 1 && from_col != 1)                                                           \
            for (; r0 + PTO_TILE_BLOCK <= rows; r0 += PTO_TILE_BLOCK) {                                              \
                int64_t c0 = 0;                                                                                      \
                for (; c0 + PTO_TILE_BLOCK <= cols; c0 += PTO_TILE_BLOCK)                                            \
                    BLOCK(dst + r0 * to_row + c0, to_row, src + r0 + c0 * from_col, from_col);                       \
                for (int64_t r = r0; r < r0 + PTO_TILE_BLOCK; ++r)                                                   \
                    for (int64_t c = c0; c < cols; ++c)                                                              \
                        dst[r * to_row + c] = src[r + c * from_col];                                                 \
            }                                                                                                        \
        for (int64_t r = r0; r < rows; ++r) {                                                                        \
            T *restrict row = dst + r * to_row;                                                                      \
            const T *restrict at = src + r * from_row;                                                               \
            if (to_col == 1 && from_col == 1)                                                                        \
                memcpy(row, at, (size_t)cols * sizeof(T));                                                           \
            else if (to_col == 1 && from_col == 2) {                                                                 \
                PTO_MOVE_ROW_(1, 2)                                                                                  \
            } else if (to_col == 1 && from_col == -1) {                                                              \
                PTO_MOVE_ROW_(1, -1)                                                                                 \
            } else if (to_col == 2 && from_col == 1) {                                                               \
                PTO_MOVE_ROW_(2, 1)                                                                                  \
            } else {                                                                                                 \
                PTO_MOVE_ROW_(to_col, from_col)                                                                      \
            }                                                                                                        \
        }                                                                                                            \
    }

PTO_MOVE_(8, PTO_BLOCK_PLAIN_)
PTO_MOVE_(16, PTO_BLOCK_PLAIN_)
PTO_MOVE_(32, PTO_BLOCK_32)
PTO_MOVE_(64, PTO_BLOCK_PLAIN_)

/* pto_fill_bits: rows x cols elements become the one at `value`; neighbours in a row are neighbours in memory. */
#define PTO_FILL_(bits)                                                                                              \
    PTO_TILE_FUNCTION void pto_fill_##bits(void *restrict to, int64_t to_row, int64_t rows, int64_t cols, const void *restrict value) \
    {                                                                                                                \
        typedef pto_bits##bits T;                                                                                    \
        T *restrict dst = (T *)to;                                                                                   \
        const T held = *(const T *)value;                                                                            \
        for (int64_t r = 0; r < rows; ++r)                                                                           \
            for (int64_t c = 0; c < cols; ++c)                                                                       \
                dst[r * to_row + c] = held;                                                                          \
    }

PTO_FILL_(8)
PTO_FILL_(16)
PTO_FILL_(32)
PTO_FILL_(64)

#endif
