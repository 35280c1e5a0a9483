/* pto_matmul.h: c[m][n] = a[m][k] b[k][n], or += with `accumulate`; row-major, leading dimensions in elements.

   Floats: blocks of 2 vectors x up to PTO_MR rows stay in registers over k, then meet memory once; the sum over k runs in order,
   in steps of PTO_KC whose sums are added to c. B is read in place, or panel by panel through `pack` (k rows of 128 bytes) where
   its rows lie 4 KiB or more apart or its last panel is narrow. Integers: wrapping sums. c overlaps neither a nor b. */
#ifndef PTO_MATMUL_H
#define PTO_MATMUL_H
#include <stdint.h>

#if defined(__AVX512F__)
#define PTO_VECTOR_BYTES 64
#define PTO_MR 12
#elif defined(__AVX__)
#define PTO_VECTOR_BYTES 32
#define PTO_MR 6
#else
#define PTO_VECTOR_BYTES 16
#define PTO_MR 4
#endif
#define PTO_KC 256
#if defined(__clang__)
#define PTO_MATMUL_FUNCTION static __attribute__((unused, noinline))
#else
#define PTO_MATMUL_FUNCTION static __attribute__((unused, noinline, noclone))
#endif

#if defined(__clang__)
#pragma clang fp contract(fast)
#else
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast", "no-tree-vectorize")
#endif

#define PTO_BLOCK_ROWS_(t, h)                                                                                        \
    for (; r + h <= m; r += h)                                                                                       \
        pto_block_##t(c + r * ldc, ldc, a + r * lda, lda, panel, step, kc, h, add);

#define PTO_MATMUL_(t, T)                                                                                            \
    typedef T pto_vector_##t __attribute__((vector_size(PTO_VECTOR_BYTES)));                                         \
    typedef T pto_vector_at_##t __attribute__((vector_size(PTO_VECTOR_BYTES), aligned(sizeof(T)), may_alias));       \
    static inline __attribute__((always_inline)) void pto_block_##t(T *c, int64_t ldc, const T *a, int64_t lda,      \
                                                                    const T *b, int64_t ldb, int64_t k, int h,       \
                                                                    int add)                                         \
    {                                                                                                                \
        enum { LANES = PTO_VECTOR_BYTES / sizeof(T) };                                                               \
        pto_vector_##t left[PTO_MR], right[PTO_MR];                                                                  \
        _Pragma("GCC unroll 12") for (int i = 0; i < h; ++i) left[i] = right[i] = (pto_vector_##t){0};               \
        for (int64_t p = 0; p < k; ++p) {                                                                            \
            pto_vector_##t b0 = *(const pto_vector_at_##t *)(b + p * ldb);                                           \
            pto_vector_##t b1 = *(const pto_vector_at_##t *)(b + p * ldb + LANES);                                   \
            _Pragma("GCC unroll 12") for (int i = 0; i < h; ++i)                                                     \
            {                                                                                                        \
                T x = a[i * lda + p];                                                                                \
                left[i] += x * b0;                                                                                   \
                right[i] += x * b1;                                                                                  \
            }                                                                                                        \
        }                                                                                                            \
        _Pragma("GCC unroll 12") for (int i = 0; i < h; ++i)                                                         \
        {                                                                                                            \
            pto_vector_at_##t *row = (pto_vector_at_##t *)(c + i * ldc);                                             \
            pto_vector_at_##t *next = (pto_vector_at_##t *)(c + i * ldc + LANES);                                    \
            if (add)                                                                                                 \
                left[i] += *row, right[i] += *next;                                                                  \
            *row = left[i], *next = right[i];                                                                        \
        }                                                                                                            \
    }                                                                                                                \
    PTO_MATMUL_FUNCTION void pto_panel_##t(T *c, int64_t ldc, const T *a, int64_t lda, const T *panel, int64_t step, \
                                           int64_t m, int64_t kc, int add)                                           \
    {                                                                                                                \
        int64_t r = 0;                                                                                               \
        PTO_BLOCK_ROWS_(t, PTO_MR)                                                                                   \
        PTO_REST_ROWS_(t)                                                                                            \
    }                                                                                                                \
    PTO_MATMUL_FUNCTION void pto_matmul_##t(T *c, int64_t ldc, const T *a, int64_t lda, const T *b, int64_t ldb,     \
                                            int64_t m, int64_t n, int64_t k, int accumulate, char *pack)             \
    {                                                                                                                \
        enum { LANES = PTO_VECTOR_BYTES / sizeof(T), WIDTH = 2 * LANES };                                            \
        for (int64_t k0 = 0; k0 < k; k0 += PTO_KC) {                                                                 \
            int64_t kc = k - k0 < PTO_KC ? k - k0 : PTO_KC;                                                          \
            int add = accumulate || k0 > 0;                                                                          \
            for (int64_t j = 0; j < n; j += WIDTH) {                                                                 \
                const T *panel = b + k0 * ldb + j;                                                                   \
                int64_t step = ldb, width = n - j < WIDTH ? n - j : WIDTH;                                           \
                if (width < WIDTH || (m > 2 * PTO_MR && (ldb >= (int64_t)(4096 / sizeof(T)) || ldb < 0))) {          \
                    T *packed = (T *)pack;                                                                           \
                    for (int64_t p = 0; p < kc; ++p, panel += ldb)                                                   \
                        if (width == WIDTH) {                                                                        \
                            pto_vector_at_##t *to = (pto_vector_at_##t *)(packed + p * WIDTH);                       \
                            to[0] = *(const pto_vector_at_##t *)panel;                                               \
                            to[1] = *(const pto_vector_at_##t *)(panel + LANES);                                     \
                        } else                                                                                       \
                            for (int64_t x = 0; x < WIDTH; ++x)                                                      \
                                packed[p * WIDTH + x] = x < width ? panel[x] : 0;                                    \
                    panel = packed, step = WIDTH;                                                                    \
                }                                                                                                    \
                if (width == WIDTH) {                                                                                \
                    pto_panel_##t(c + j, ldc, a + k0, lda, panel, step, m, kc, add);                                 \
                    continue;                                                                                        \
                }                                                                                                    \
                for (int64_t r = 0; r < m; r += PTO_MR) {                                                            \
                    T edge[PTO_MR * WIDTH] __attribute__((aligned(PTO_VECTOR_BYTES)));                               \
                    int64_t h = m - r < PTO_MR ? m - r : PTO_MR;                                                     \
                    pto_panel_##t(edge, WIDTH, a + r * lda + k0, lda, panel, step, h, kc, 0);                        \
                    for (int64_t i = 0; i < h; ++i)                                                                  \
                        for (int64_t x = 0; x < width; ++x) {                                                        \
                            T *to = c + (r + i) * ldc + j + x;                                                       \
                            *to = add ? *to + edge[i * WIDTH + x] : edge[i * WIDTH + x];                             \
                        }                                                                                            \
                }                                                                                                    \
            }                                                                                                        \
        }                                                                                                            \
    }
#if PTO_MR == 12
#define PTO_REST_ROWS_(t) PTO_BLOCK_ROWS_(t, 4) PTO_BLOCK_ROWS_(t, 1)
#elif PTO_MR == 6
#define PTO_REST_ROWS_(t) PTO_BLOCK_ROWS_(t, 4) PTO_BLOCK_ROWS_(t, 2) PTO_BLOCK_ROWS_(t, 1)
#else
#define PTO_REST_ROWS_(t) PTO_BLOCK_ROWS_(t, 2) PTO_BLOCK_ROWS_(t, 1)
#endif

#ifdef PTO_USES_MATMUL_F32
PTO_MATMUL_(f32, float)
#endif
#ifdef PTO_USES_MATMUL_F64
PTO_MATMUL_(f64, double)
#endif

#if !defined(__clang__)
#pragma GCC pop_options
#endif

#define PTO_MATMUL_INT_(t, T, S)                                                                                     \
    PTO_MATMUL_FUNCTION void pto_matmul_##t(S *restrict c, int64_t ldc, const T *restrict a, int64_t lda,            \
                                            const T *restrict b, int64_t ldb, int64_t m, int64_t n, int64_t k,       \
                                            int accumulate, char *pack)                                              \
    {                                                                                                                \
        (void)pack;                                                                                                  \
        for (int64_t i = 0; i < m; ++i) {                                                                            \
            S *restrict row = c + i * ldc;                                                                           \
            if (!accumulate)                                                                                         \
                for (int64_t j = 0; j < n; ++j)                                                                      \
                    row[j] = 0;                                                                                      \
            for (int64_t p = 0; p < k; ++p) {                                                                        \
                S x = a[i * lda + p];                                                                                \
                for (int64_t j = 0; j < n; ++j)                                                                      \
                    row[j] += x * (S)b[p * ldb + j];                                                                 \
            }                                                                                                        \
        }                                                                                                            \
    }
#ifdef PTO_USES_MATMUL_I8
PTO_MATMUL_INT_(i8, int8_t, int32_t)
#endif
#ifdef PTO_USES_MATMUL_I32
PTO_MATMUL_INT_(i32, int32_t, int32_t)
#endif
#ifdef PTO_USES_MATMUL_I64
PTO_MATMUL_INT_(i64, int64_t, int64_t)
#endif

#endif
