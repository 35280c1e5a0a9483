/* fma_peak.c: how many f32 fused multiply-adds this machine does, on n threads: the limit that benchmarks quote. */
#include <pthread.h>
#include <stdint.h>

typedef float lanes __attribute__((vector_size(64)));
enum { CHAINS = 24, MAX_THREADS = 64 };

static void *spin(void *arg)
{
    const int64_t rounds = *(int64_t *)arg;
    lanes sums[CHAINS];
    for (int k = 0; k < CHAINS; ++k)
        sums[k] = (lanes){0} + (float)k;
    const lanes scale = (lanes){0} + 0.999f, step = (lanes){0} + 1e-6f;
    for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 24
        for (int k = 0; k < CHAINS; ++k)
            sums[k] = sums[k] * scale + step;
    }
    volatile float sink = 0;
    for (int k = 0; k < CHAINS; ++k)
        sink += sums[k][0];
    return 0;
}

/* Runs rounds on every thread; returns the floating-point operations done. */
double pto_bench_fma(int64_t rounds, int32_t threads)
{
    pthread_t ids[MAX_THREADS];
    for (int32_t k = 1; k < threads; ++k)
        pthread_create(&ids[k], 0, spin, &rounds);
    spin(&rounds);
    for (int32_t k = 1; k < threads; ++k)
        pthread_join(ids[k], 0);
    return 2.0 * 16 * CHAINS * (double)rounds * threads;
}
