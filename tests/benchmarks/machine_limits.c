/* machine_limits.c: how fast this machine moves memory and multiplies bytes, on n threads: limits that benchmarks quote.

   Threads start once and pass through a barrier before and after each repetition; what is returned is the least time of one. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

enum { MAX_THREADS = 64, CHAINS = 16, LANES = 16 };
typedef float lanes __attribute__((vector_size(64)));
typedef float lanes_anywhere __attribute__((vector_size(64), aligned(4)));

enum work { COPY, COPY_AROUND_CACHE, TRIAD, TRIAD_AROUND_CACHE, INT8 };

typedef struct {
    enum work work;
    const float *x, *y;
    float *out;
    int64_t count, repeats;
    int32_t threads;
    atomic_int_fast64_t arrived;
} crew;

typedef struct {
    crew *all;
    int32_t index;
    double best_s;
} member;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void meet(crew *all, int64_t meeting)
{
    atomic_fetch_add(&all->arrived, 1);
    while (atomic_load(&all->arrived) < meeting * all->threads)
        ;
}

static void store(float *at, lanes value, int around_cache)
{
#ifdef __AVX512F__
    if (around_cache) {
        _mm512_stream_ps(at, (__m512)value);
        return;
    }
#endif
    (void)around_cache;
    *(lanes_anywhere *)at = value;
}

static void move(const crew *all, int64_t first, int64_t last, int two, int around_cache)
{
    const lanes scale = (lanes){0} + 3.0f;
    for (int64_t k = first; k < last; k += LANES) {
        lanes value = *(const lanes_anywhere *)(all->x + k);
        if (two)
            value += scale * *(const lanes_anywhere *)(all->y + k);
        store(all->out + k, value, around_cache);
    }
}

/* count rounds of CHAINS independent products of bytes; 128 operations each with AVX-512 VNNI */
static void multiply_bytes(int64_t count)
{
#ifdef __AVX512VNNI__
    __m512i sums[CHAINS];
    const __m512i ones = _mm512_set1_epi8(1), twos = _mm512_set1_epi8(2);
    for (int k = 0; k < CHAINS; ++k)
        sums[k] = _mm512_set1_epi32(k);
    for (int64_t r = 0; r < count; ++r) {
#pragma GCC unroll 16
        for (int k = 0; k < CHAINS; ++k)
            sums[k] = _mm512_dpbusd_epi32(sums[k], ones, twos);
        __asm__ volatile("");
    }
    volatile int32_t sink = 0;
    for (int k = 0; k < CHAINS; ++k)
        sink += _mm512_reduce_add_epi32(sums[k]);
#else
    int16_t left[2 * LANES], right[2 * LANES];
    int32_t sums[CHAINS] = {0};
    for (int k = 0; k < 2 * LANES; ++k)
        left[k] = (int16_t)(k + 1), right[k] = 2;
    for (int64_t r = 0; r < count; ++r) {
        __asm__ volatile("" : "+m"(left), "+m"(right));
        for (int k = 0; k < 2 * LANES; ++k)
            sums[k % CHAINS] += left[k] * right[k];
    }
    volatile int32_t sink = sums[0];
    (void)sink;
#endif
}

/* Returns the operations of one round of multiply_bytes. */
double pto_bench_int8_operations(void)
{
#ifdef __AVX512VNNI__
    return 2.0 * 64 * CHAINS;
#else
    return 2.0 * 2 * LANES;
#endif
}

static void *work_along(void *arg)
{
    member *me = arg;
    crew *all = me->all;
    const int64_t part = (all->count / all->threads + LANES - 1) / LANES * LANES;
    const int64_t first = part * me->index;
    const int64_t last = me->index == all->threads - 1 || first + part > all->count ? all->count : first + part;
    me->best_s = 1e30;
    for (int64_t r = 0; r < all->repeats; ++r) {
        meet(all, 2 * r + 1);
        const double started = now_s();
        if (all->work == INT8)
            multiply_bytes(all->count);
        else
            move(all, first, last, all->work >= TRIAD, all->work == COPY_AROUND_CACHE || all->work == TRIAD_AROUND_CACHE);
        meet(all, 2 * r + 2);
        const double took = now_s() - started;
        me->best_s = took < me->best_s ? took : me->best_s;
    }
    return 0;
}

/* Returns the least seconds of one repetition. `count`: elements, a multiple of 16, of arrays at a cache line; rounds for INT8. */
double pto_bench_limit(int32_t work, const float *x, const float *y, float *out, int64_t count, int64_t repeats, int32_t threads)
{
    crew all = {.work = (enum work)work, .x = x, .y = y, .out = out, .count = count, .repeats = repeats, .threads = threads};
    pthread_t ids[MAX_THREADS];
    member members[MAX_THREADS];
    for (int32_t k = 0; k < threads; ++k)
        members[k] = (member){.all = &all, .index = k};
    for (int32_t k = 1; k < threads; ++k)
        pthread_create(&ids[k], 0, work_along, &members[k]);
    work_along(&members[0]);
    for (int32_t k = 1; k < threads; ++k)
        pthread_join(ids[k], 0);
    return members[0].best_s;
}
