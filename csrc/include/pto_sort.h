/* pto_sort.h: the order of the elements of each row: argsort, topk, rowargmax, rowargmin.

   An element becomes an unsigned key that orders as NumPy does: -0.0 equals 0.0, NaN is the largest. Equal keys keep the order of
   their columns. Keys are sorted by radix, digit by digit; memory to work in is given by the caller and 64-byte aligned. */
#ifndef PTO_SORT_H
#define PTO_SORT_H
#include <stdint.h>
#include <string.h>
#include "pto_move.h"

#define PTO_SORT_SMALL 24    /* elements up to which insertion is faster than radix */

/* pto_key_t: `flip` is xored to the key of a number, `nan` is the key of a NaN. */
#define PTO_KEY_FLOAT_(t, U, K, SIGN, INF)                                                                           \
    static inline __attribute__((always_inline, unused)) K pto_key_##t(U bits, K flip, K nan)                        \
    {                                                                                                                \
        U magnitude = bits & (U)~SIGN;                                                                               \
        U ordered = (U)(bits ^ ((U)-(bits >> (8 * sizeof(U) - 1)) | SIGN));                                          \
        K plain = (K)((K)(magnitude == 0 ? SIGN : ordered) ^ flip), is_nan = (K)-(K)(magnitude > INF);               \
        return (plain & ~is_nan) | (nan & is_nan);                                                                   \
    }
#define PTO_KEY_INT_(t, U, K, SIGN)                                                                                  \
    static inline __attribute__((always_inline, unused)) K pto_key_##t(U bits, K flip, K nan)                        \
    {                                                                                                                \
        (void)nan;                                                                                                   \
        return (K)((K)(U)(bits ^ SIGN) ^ flip);                                                                      \
    }

/* Sort n keys of `digits` bytes with their columns, stably. Returns the buffer that holds the result: 0 or 1. */
#define PTO_RADIX_(K)                                                                                                \
    PTO_TILE_FUNCTION int pto_radix_##K(K *const *keys, int32_t *const *at, int64_t n, int digits)                   \
    {                                                                                                                \
        int from = 0;                                                                                                \
        if (n <= PTO_SORT_SMALL) {                                                                                   \
            K *key = keys[0];                                                                                        \
            int32_t *col = at[0];                                                                                    \
            for (int64_t i = 1; i < n; ++i) {                                                                        \
                K held = key[i];                                                                                     \
                int32_t held_col = col[i];                                                                           \
                int64_t k = i;                                                                                       \
                for (; k > 0 && key[k - 1] > held; --k)                                                              \
                    key[k] = key[k - 1], col[k] = col[k - 1];                                                        \
                key[k] = held, col[k] = held_col;                                                                    \
            }                                                                                                        \
            return 0;                                                                                                \
        }                                                                                                            \
        uint32_t count[sizeof(K)][256];                                                                              \
        memset(count, 0, sizeof(count[0]) * (size_t)digits);                                                         \
        for (int64_t i = 0; i < n; ++i)                                                                              \
            for (int digit = 0; digit < digits; ++digit)                                                             \
                ++count[digit][keys[0][i] >> 8 * digit & 255];                                                       \
        for (int digit = 0; digit < digits; ++digit) {                                                               \
            const K *key = keys[from];                                                                               \
            const int32_t *col = at[from];                                                                           \
            uint32_t *begin = count[digit], sum = 0;                                                                 \
            if (begin[key[0] >> 8 * digit & 255] == (uint32_t)n)                                                     \
                continue;                                                                                            \
            for (int b = 0; b < 256; ++b) {                                                                          \
                uint32_t here = begin[b];                                                                            \
                begin[b] = sum;                                                                                      \
                sum += here;                                                                                         \
            }                                                                                                        \
            from = !from;                                                                                            \
            K *to = keys[from];                                                                                      \
            int32_t *to_col = at[from];                                                                              \
            for (int64_t i = 0; i < n; ++i) {                                                                        \
                uint32_t place = begin[key[i] >> 8 * digit & 255]++;                                                 \
                to[place] = key[i];                                                                                  \
                to_col[place] = col[i];                                                                              \
            }                                                                                                        \
        }                                                                                                            \
        return from;                                                                                                 \
    }

/* Keep the keys that may be among the k smallest, less the smallest, in the order of their columns: `kept`, `col`. The limit is
   found by halving the range of keys, and each count is one pass that vectorises. Returns how many: k or more. */
#define PTO_SELECT_(K)                                                                                               \
    PTO_TILE_FUNCTION int64_t pto_select_##K(const K *restrict key, int64_t n, int64_t k, K *restrict kept,          \
                                             int32_t *restrict col, int *digits)                                     \
    {                                                                                                                \
        K low = key[0], high = key[0];                                                                               \
        for (int64_t i = 0; i < n; ++i)                                                                              \
            low = key[i] < low ? key[i] : low, high = key[i] > high ? key[i] : high;                                 \
        const K least = low;                                                                                         \
        while (low < high) {                                                                                         \
            const K middle = low + (high - low) / 2;                                                                 \
            K below = 0;                /* as wide as a key, so that lanes of a vector stay aligned */               \
            for (int64_t i = 0; i < n; ++i)                                                                          \
                below += key[i] <= middle;                                                                           \
            if ((int64_t)below < k) {                                                                                \
                low = middle + 1;                                                                                    \
                continue;                                                                                            \
            }                                                                                                        \
            high = middle;                                                                                           \
            if ((int64_t)below <= k + k / 8)                                                                         \
                break;                                                                                               \
        }                                                                                                            \
        int64_t n_kept = 0;                                                                                          \
        for (int64_t i = 0; i < n; ++i) {                                                                            \
            col[n_kept] = (int32_t)i;                                                                                \
            n_kept += key[i] <= high;                                                                                \
        }                                                                                                            \
        for (int64_t i = 0; i < n_kept; ++i)                                                                         \
            kept[i] = key[col[i]] - least;                                                                           \
        for (*digits = 1; (high - least) >> (8 * *digits - 1) >> 1; ++*digits)                                       \
            ;                                                                                                        \
        return n_kept;                                                                                               \
    }

PTO_RADIX_(uint32_t)
PTO_RADIX_(uint64_t)
PTO_SELECT_(uint32_t)
PTO_SELECT_(uint64_t)

/* pto_order_t: the columns of the first k elements of each row in order, ascending or descending.
   work: 2 * cols keys of K, then 2 * cols columns.
   pto_rowarg_t: the column of the first element that is largest, or smallest; a NaN comes before any number. */
#define PTO_ORDER_(t, U, K)                                                                                          \
    PTO_TILE_FUNCTION void pto_order_##t(int32_t *restrict to, int64_t rows, int64_t cols, int64_t k,                \
                                         const void *restrict from, int64_t from_row, int descending,                \
                                         char *restrict work)                                                        \
    {                                                                                                                \
        typedef U bits_t __attribute__((may_alias));                                                                 \
        K *const keys[2] = {(K *)work, (K *)work + cols};                                                            \
        int32_t *const at[2] = {(int32_t *)((K *)work + 2 * cols), (int32_t *)((K *)work + 2 * cols) + cols};        \
        const K ones = (K)(U)~(U)0, flip = descending ? ones : 0, nan = descending ? 0 : ones;                       \
        const int select = cols > 4 * PTO_SORT_SMALL && k <= cols / 2;                                               \
        K *const *first = select ? (K *const[2]){keys[1], keys[0]} : keys;                                           \
        for (int64_t r = 0; r < rows; ++r) {                                                                         \
            const bits_t *row = (const bits_t *)from + r * from_row;                                                 \
            int64_t n = cols;                                                                                        \
            int digits = sizeof(U);                                                                                  \
            for (int64_t c = 0; c < cols; ++c)                                                                       \
                keys[0][c] = pto_key_##t(row[c], flip, nan);                                                         \
            if (select)                                                                                              \
                n = pto_select_##K(keys[0], cols, k, keys[1], at[0], &digits);                                       \
            else                                                                                                     \
                for (int64_t c = 0; c < cols; ++c)                                                                   \
                    at[0][c] = (int32_t)c;                                                                           \
            memcpy(to + r * k, at[pto_radix_##K(first, at, n, digits)], (size_t)k * sizeof(int32_t));                \
        }                                                                                                            \
    }                                                                                                                \
    PTO_TILE_FUNCTION void pto_rowarg_##t(int32_t *restrict to, int64_t rows, int64_t cols,                          \
                                          const void *restrict from, int64_t from_row, int smallest)                 \
    {                                                                                                                \
        typedef U bits_t __attribute__((may_alias));                                                                 \
        const K ones = (K)(U)~(U)0, flip = smallest ? ones : 0;                                                      \
        for (int64_t r = 0; r < rows; ++r) {                                                                         \
            const bits_t *row = (const bits_t *)from + r * from_row;                                                 \
            K best = 0;                                                                                              \
            for (int64_t c = 0; c < cols; ++c) {                                                                     \
                K key = pto_key_##t(row[c], flip, ones);                                                             \
                best = key > best ? key : best;                                                                      \
            }                                                                                                        \
            int64_t found = 0;                                                                                       \
            for (int any = 0; found + 64 <= cols; found += 64) {                                                     \
                for (int64_t c = found; c < found + 64; ++c)                                                         \
                    any |= pto_key_##t(row[c], flip, ones) == best;                                                  \
                if (any)                                                                                             \
                    break;                                                                                           \
            }                                                                                                        \
            while (pto_key_##t(row[found], flip, ones) != best)                                                      \
                ++found;                                                                                             \
            to[r] = (int32_t)found;                                                                                  \
        }                                                                                                            \
    }

#define PTO_SORT_FLOAT_(t, U, K, SIGN, INF)                                                                          \
    PTO_KEY_FLOAT_(t, U, K, SIGN, INF)                                                                               \
    PTO_ORDER_(t, U, K)
#define PTO_SORT_INT_(t, U, K, SIGN)                                                                                 \
    PTO_KEY_INT_(t, U, K, SIGN)                                                                                      \
    PTO_ORDER_(t, U, K)

PTO_SORT_FLOAT_(f64, uint64_t, uint64_t, 0x8000000000000000u, 0x7FF0000000000000u)
PTO_SORT_FLOAT_(f32, uint32_t, uint32_t, 0x80000000u, 0x7F800000u)
PTO_SORT_FLOAT_(f16, uint16_t, uint32_t, 0x8000u, 0x7C00u)
PTO_SORT_FLOAT_(bf16, uint16_t, uint32_t, 0x8000u, 0x7F80u)
PTO_SORT_INT_(i64, uint64_t, uint64_t, 0x8000000000000000u)
PTO_SORT_INT_(i32, uint32_t, uint32_t, 0x80000000u)
PTO_SORT_INT_(i16, uint16_t, uint32_t, 0x8000u)
PTO_SORT_INT_(i8, uint8_t, uint32_t, 0x80u)
PTO_SORT_INT_(u64, uint64_t, uint64_t, 0u)
PTO_SORT_INT_(u32, uint32_t, uint32_t, 0u)
PTO_SORT_INT_(u16, uint16_t, uint32_t, 0u)
PTO_SORT_INT_(u8, uint8_t, uint32_t, 0u)
PTO_SORT_INT_(bool, uint8_t, uint32_t, 0u)

#endif
