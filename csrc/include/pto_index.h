/* pto_index.h: elements picked by an index: gather, scatter, scatter_add.

   Elements are moved by their width; steps are in elements and may be 0 (what broadcasts). An index must lie in 0 .. extent - 1:
   else the function writes what is wrong to `fault` and returns 1. */
#ifndef PTO_INDEX_H
#define PTO_INDEX_H
#include <stdint.h>
#include <string.h>
#include "math/pto_half.h"
#include "pto_move.h"
#include "pto_wsp.h"

static __attribute__((unused, noinline, cold)) int32_t pto_index_fault(pto_fault *fault, int64_t row, int64_t col, int64_t value,
                                                                       int64_t extent)
{
    fault->row = row, fault->col = col, fault->value = value;
    fault->lower = 0, fault->upper = extent - 1;
    return 1;
}

/* Whether `cols` columns from `col` on leave a region of `extent` columns: then the fault has row -1 and the number of columns. */
static inline __attribute__((unused)) int32_t pto_columns_outside(int64_t col, int64_t cols, int64_t extent, pto_fault *fault)
{
    if (pto_inside(col, cols, extent))
        return 0;
    pto_index_fault(fault, -1, col, cols, extent);
    return 1;
}

/* Whether all indices are inside, first of all: nothing is moved by an index that is not. */
#define PTO_INDEX_CHECK_(I)                                                                                          \
    PTO_TILE_FUNCTION int32_t pto_index_check_##I(const I *index, int64_t index_row, int64_t index_col, int64_t rows,\
                                                  int64_t cols, int64_t extent, pto_fault *fault)                    \
    {                                                                                                                \
        cols = index_col ? cols : 1, rows = index_row ? rows : 1;                                                    \
        for (int64_t r = 0; r < rows; ++r) {                                                                         \
            const I *row = index + r * index_row;                                                                    \
            int outside = 0;                                                                                         \
            if (index_col == 1)                                                                                      \
                for (int64_t c = 0; c < cols; ++c)                                                                   \
                    outside |= (row[c] < 0) | (row[c] >= extent);                                                    \
            else                                                                                                     \
                for (int64_t c = 0; c < cols; ++c)                                                                   \
                    outside |= (row[c * index_col] < 0) | (row[c * index_col] >= extent);                            \
            for (int64_t c = 0; outside && c < cols; ++c)                                                            \
                if (row[c * index_col] < 0 || row[c * index_col] >= extent)                                          \
                    return pto_index_fault(fault, r, c, row[c * index_col], extent);                                 \
        }                                                                                                            \
        return 0;                                                                                                    \
    }

/* pto_gather_bits_index: to[r][c] = from[r * from_row + c * from_col + along * index(r, c)]; `to` is rows x cols without gaps. */
#define PTO_GATHER_(bits, i, I)                                                                                      \
    PTO_TILE_FUNCTION int32_t pto_gather_##bits##_##i(                                                               \
        void *restrict to, int64_t rows, int64_t cols, const void *restrict from, int64_t from_row, int64_t from_col,\
        int64_t along, const I *restrict index, int64_t index_row, int64_t index_col, int64_t extent, pto_fault *fault)\
    {                                                                                                                \
        typedef pto_bits##bits T;                                                                                    \
        if (pto_index_check_##I(index, index_row, index_col, rows, cols, extent, fault))                             \
            return 1;                                                                                                \
        for (int64_t r = 0; r < rows; ++r) {                                                                         \
            T *restrict row = (T *)to + r * cols;                                                                    \
            const T *restrict at = (const T *)from + r * from_row;                                                   \
            const I *restrict pick = index + r * index_row;                                                          \
            if (index_col == 0 && from_col == 1)                                                                     \
                memcpy(row, at + (int64_t)pick[0] * along, (size_t)cols * sizeof(T));                                \
            else if (along == 1 && from_col == 0 && index_col == 1)                                                  \
                for (int64_t c = 0; c < cols; ++c)                                                                   \
                    row[c] = at[pick[c]];                                                                            \
            else                                                                                                     \
                for (int64_t c = 0; c < cols; ++c)                                                                   \
                    row[c] = at[c * from_col + (int64_t)pick[c * index_col] * along];                                \
        }                                                                                                            \
        return 0;                                                                                                    \
    }

/* pto_scatter_bits_index: to[r * to_row + c * to_col + along * index(r, c)] = from(r, c), row by row, so the last one stays;
   pto_scatter_add_t_index adds in that order. */
#define PTO_SCATTER_(name, T, i, I, STORE)                                                                           \
    PTO_TILE_FUNCTION int32_t pto_##name##_##i(                                                                      \
        void *restrict to, int64_t to_row, int64_t to_col, int64_t along, int64_t rows, int64_t cols,                \
        const I *restrict index, int64_t index_row, int64_t index_col, const void *restrict from, int64_t from_row,  \
        int64_t from_col, int64_t extent, pto_fault *fault)                                                          \
    {                                                                                                                \
        if (pto_index_check_##I(index, index_row, index_col, rows, cols, extent, fault))                             \
            return 1;                                                                                                \
        for (int64_t r = 0; r < rows; ++r) {                                                                         \
            T *restrict row = (T *)to + r * to_row;                                                                  \
            const T *restrict at = (const T *)from + r * from_row;                                                   \
            const I *restrict pick = index + r * index_row;                                                          \
            if (index_col == 0 && to_col == 1 && from_col == 1) {                                                    \
                row += (int64_t)pick[0] * along;                                                                     \
                for (int64_t c = 0; c < cols; ++c)                                                                   \
                    STORE(row[c], at[c]);                                                                            \
            } else {                                                                                                 \
                for (int64_t c = 0; c < cols; ++c)                                                                   \
                    STORE(row[c * to_col + (int64_t)pick[c * index_col] * along], at[c * from_col]);                 \
            }                                                                                                        \
        }                                                                                                            \
        return 0;                                                                                                    \
    }

#define PTO_SCATTER_SET_(to, value) (to) = (value)
#define PTO_SCATTER_ADD_(to, value) (to) = (__typeof__(to))((to) + (value))

#define PTO_SCATTER_ADD_F16_(to, value) (to) = pto_narrow_f16(pto_round_f16(pto_widen_f16(to) + pto_widen_f16(value)))
#define PTO_SCATTER_ADD_BF16_(to, value) (to) = pto_narrow_bf16(pto_round_bf16(pto_widen_bf16(to) + pto_widen_bf16(value)))

typedef float pto_float32 __attribute__((may_alias));
typedef double pto_float64 __attribute__((may_alias));

#define PTO_INDEX_(i, I)                                                                                             \
    PTO_INDEX_CHECK_(I)                                                                                              \
    PTO_GATHER_(8, i, I)                                                                                             \
    PTO_GATHER_(16, i, I)                                                                                            \
    PTO_GATHER_(32, i, I)                                                                                            \
    PTO_GATHER_(64, i, I)                                                                                            \
    PTO_SCATTER_(scatter_8, pto_bits8, i, I, PTO_SCATTER_SET_)                                                       \
    PTO_SCATTER_(scatter_16, pto_bits16, i, I, PTO_SCATTER_SET_)                                                     \
    PTO_SCATTER_(scatter_32, pto_bits32, i, I, PTO_SCATTER_SET_)                                                     \
    PTO_SCATTER_(scatter_64, pto_bits64, i, I, PTO_SCATTER_SET_)                                                     \
    PTO_SCATTER_(scatter_add_f32, pto_float32, i, I, PTO_SCATTER_ADD_)                                               \
    PTO_SCATTER_(scatter_add_f64, pto_float64, i, I, PTO_SCATTER_ADD_)                                               \
    PTO_SCATTER_(scatter_add_f16, pto_bits16, i, I, PTO_SCATTER_ADD_F16_)                                            \
    PTO_SCATTER_(scatter_add_bf16, pto_bits16, i, I, PTO_SCATTER_ADD_BF16_)                                          \
    PTO_SCATTER_(scatter_add_i8, pto_bits8, i, I, PTO_SCATTER_ADD_)                                                  \
    PTO_SCATTER_(scatter_add_u8, pto_bits8, i, I, PTO_SCATTER_ADD_)                                                  \
    PTO_SCATTER_(scatter_add_i16, pto_bits16, i, I, PTO_SCATTER_ADD_)                                                \
    PTO_SCATTER_(scatter_add_u16, pto_bits16, i, I, PTO_SCATTER_ADD_)                                                \
    PTO_SCATTER_(scatter_add_i32, pto_bits32, i, I, PTO_SCATTER_ADD_)                                                \
    PTO_SCATTER_(scatter_add_u32, pto_bits32, i, I, PTO_SCATTER_ADD_)                                                \
    PTO_SCATTER_(scatter_add_i64, pto_bits64, i, I, PTO_SCATTER_ADD_)                                                \
    PTO_SCATTER_(scatter_add_u64, pto_bits64, i, I, PTO_SCATTER_ADD_)

PTO_INDEX_(i32, int32_t)
PTO_INDEX_(i64, int64_t)

#endif
