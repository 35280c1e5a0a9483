/* bench_matmul.c: products of matrices on one core, beside the rate of fused multiply-adds measured between them.

   Each is checked against three loops first. Built like the tests, not run by run.sh:
   cc -std=gnu11 -O3 -march=native -mprefer-vector-width=512 -ffp-contract=off -fno-trapping-math -fwrapv -I csrc/include tests/c/bench_matmul.c -o bench && ./bench

   The limit of bf16 is twice the rate of f32 where the CPU has dot products of bf16, that of i8 four times; elsewhere these
   columns say how products of narrow elements compare with f32. */
#define PTO_USES_MATMUL_F32
#define PTO_USES_MATMUL_F64
#define PTO_USES_MATMUL_F16
#define PTO_USES_MATMUL_BF16
#define PTO_USES_MATMUL_I8
#define PTO_USES_MATMUL_I32
#define PTO_USES_FEW_ROWS
#include "pto_matmul.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef float lanes __attribute__((vector_size(PTO_VECTOR_BYTES)));

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

#if defined(__clang__)
#pragma clang fp contract(fast)
#else
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#endif
/* 10^9 operations a second of f32 multiply-adds in registers. */
static double fma_rate(void)
{
    enum { CHAINS = 10, ROUNDS = 100000 };
    lanes sums[CHAINS];
    for (int k = 0; k < CHAINS; ++k)
        sums[k] = (lanes){0} + (float)k;
    const lanes scale = (lanes){0} + 0.999f, step = (lanes){0} + 1e-6f;
    const double start = now_ns();
    for (int r = 0; r < ROUNDS; ++r)
#pragma GCC unroll 10
        for (int k = 0; k < CHAINS; ++k)
            sums[k] = sums[k] * scale + step;
    const double taken = now_ns() - start;
    volatile float sink = 0;
    for (int k = 0; k < CHAINS; ++k)
        sink += sums[k][0];
    return 2.0 * PTO_VECTOR_BYTES / sizeof(float) * CHAINS * ROUNDS / taken;
}
#if !defined(__clang__)
#pragma GCC pop_options
#endif

static void *room(int64_t bytes)
{
    void *found = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
    if (found == NULL)
        abort();
    return memset(found, 0, (size_t)bytes);
}

/* Small whole numbers, whose sums are exact. `lda`, `ldb`: elements from row to row in memory. */
#define BENCH(t, T, S, MADE, OF, PEAKS)                                                                              \
    static void bench_##t(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int flags)                      \
    {                                                                                                                \
        const int64_t rows_b = flags & PTO_MATMUL_TRANSPOSE_B ? n : k;                                               \
        T *a = room(m * lda * (int64_t)sizeof(T)), *b = room(rows_b * ldb * (int64_t)sizeof(T));                     \
        S *c = room(m * n * (int64_t)sizeof(S));                                                                     \
        char *pack = room(4 << 20);                                                                                  \
        for (int64_t i = 0; i < m * lda; ++i)                                                                        \
            a[i] = MADE(i * 7 % 11 - 5);                                                                             \
        for (int64_t i = 0; i < rows_b * ldb; ++i)                                                                   \
            b[i] = MADE(i * 5 % 13 - 6);                                                                             \
        pto_matmul_##t(c, n, a, lda, b, ldb, m, n, k, flags, pack);                                                  \
        for (int64_t i = 0; i < m; ++i)                                                                              \
            for (int64_t j = i % 7; j < n; j += 7) {                                                                 \
                S sum = 0;                                                                                           \
                for (int64_t p = 0; p < k; ++p)                                                                      \
                    sum += OF(a[i * lda + p]) * OF(b[flags & PTO_MATMUL_TRANSPOSE_B ? j * ldb + p : p * ldb + j]);   \
                if (c[i * n + j] != sum) {                                                                           \
                    printf(#t ": wrong at %d, %d\n", (int)i, (int)j);                                                \
                    exit(1);                                                                                         \
                }                                                                                                    \
            }                                                                                                        \
        double least = 1e30, rate = 0;                                                                               \
        const int repeats = (int)(1.0 + 1e9 / (2.0 * (double)m * (double)n * (double)k));                            \
        for (int round = 0; round < 5; ++round) {                                                                    \
            const double found = fma_rate();                                                                         \
            rate = found > rate ? found : rate;                                                                      \
            for (int r = 0; r < repeats; ++r) {                                                                      \
                const double start = now_ns();                                                                       \
                pto_matmul_##t(c, n, a, lda, b, ldb, m, n, k, flags, pack);                                          \
                const double taken = now_ns() - start;                                                               \
                least = taken < least ? taken : least;                                                               \
            }                                                                                                        \
        }                                                                                                            \
        const double done = 2.0 * (double)m * (double)n * (double)k / least;                                         \
        printf("%-5s%5d x%5d x%5d, rows %5d and %5d apart%s: %7.1f Gop/s, %5.2f of the limit\n", #t, (int)m, (int)n, (int)k, \
               (int)lda, (int)ldb, flags & PTO_MATMUL_TRANSPOSE_B ? ", b transposed" : flags ? ", in place" : "", done, \
               done / (rate * (PEAKS)));                                                                             \
        free(a), free(b), free(c), free(pack);                                                                       \
    }

BENCH(f32, float, float, (float), (float), 1)
BENCH(f64, double, double, (double), (double), 0.5)
BENCH(f16, uint16_t, float, pto_narrow_f16, pto_widen_f16, 1)
BENCH(bf16, uint16_t, float, pto_narrow_bf16, pto_widen_bf16, 2)
BENCH(i8, int8_t, int32_t, (int8_t), (int32_t), 4)
BENCH(i32, int32_t, int32_t, (int32_t), (int32_t), 1)

int main(void)
{
    bench_f32(64, 64, 64, 64, 64, 0);
    bench_f32(64, 64, 64, 64, 64, PTO_MATMUL_TRANSPOSE_B);
    bench_f32(256, 256, 256, 256, 256, 0);
    bench_f32(256, 256, 1024, 1024, 1024, 0);
    bench_f32(15, 128, 512, 512, 1024, 0);
    bench_f32(1, 1024, 256, 256, 1024, PTO_MATMUL_FEW_ROWS);
    bench_f32(3, 1024, 256, 256, 1024, PTO_MATMUL_FEW_ROWS);
    bench_f64(256, 256, 256, 256, 256, 0);
    bench_f16(256, 256, 256, 256, 256, 0);
    bench_bf16(256, 256, 256, 256, 256, 0);
    bench_bf16(64, 256, 128, 128, 128, PTO_MATMUL_TRANSPOSE_B);
    bench_i8(256, 256, 256, 256, 256, 0);
    bench_i8(64, 256, 128, 128, 128, PTO_MATMUL_TRANSPOSE_B);
    bench_i32(256, 256, 256, 256, 256, 0);
    return 0;
}
