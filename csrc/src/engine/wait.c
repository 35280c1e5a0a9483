/* wait.c: how workers wait and wake each other, see wait.h. */
#include "wait.h"

#include <time.h>

int64_t pto_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void pto_pause(int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#else
        atomic_signal_fence(memory_order_seq_cst);
#endif
    }
}

void pto_nap(void)
{
    struct timespec nap = {0, 20000};
    nanosleep(&nap, NULL);
}

/* ---- sleeping and waking ---- */

static bool is_left(pto_worker *w)
{
    uint64_t range = atomic_load(&w->range);
    return (uint32_t)(range >> 32) < (uint32_t)range || atomic_load(&w->top) < atomic_load(&w->bottom) ||
           atomic_load(&w->inbox) != PTO_NO_NODE || atomic_load(&w->heap.n) > 0;
}

static bool has_work(pto_worker *worker)
{
    pto_pool *pool = worker->pool;
    if (pool->follows)
        return is_left(worker);
    if (atomic_load(&pool->n_overflow) > 0)
        return true;
    for (int32_t i = 0; i < pool->limit; i++)
        if (is_left(&pool->workers[i]))
            return true;
    return false;
}

/* Is there a reason for this worker not to sleep? Under sleep_lock, so that limit stands still. */
static bool must_stay_awake(pto_worker *worker)
{
    pto_pool *pool = worker->pool;
    if (atomic_load(&pool->shut_down))
        return true;
    if (worker->index == 0 && pto_run_over(pool))
        return true;
    return atomic_load(&pool->open) && worker->index < pool->limit && !pto_run_over(pool) && has_work(worker);
}

void pto_worker_sleep(pto_worker *worker)
{
    pto_pool *pool = worker->pool;
    pthread_mutex_lock(&pool->sleep_lock);
    worker->asleep = true;
    if (worker->index < pool->limit)
        atomic_fetch_add(&pool->n_asleep, 1);
    if (must_stay_awake(worker)) {
        worker->asleep = false;
        if (worker->index < pool->limit)
            atomic_fetch_sub(&pool->n_asleep, 1);
    }
    while (worker->asleep)
        pthread_cond_wait(&worker->wake, &pool->sleep_lock);
    pthread_mutex_unlock(&pool->sleep_lock);
}

/* Up to n of the workers before `end`, from `first` on and round. */
static void wake(pto_pool *pool, int32_t first, int32_t end, int64_t n)
{
    for (int32_t k = 0; k < end && n > 0; k++) {
        int32_t i = first + k < end ? first + k : first + k - end;
        pto_worker *w = &pool->workers[i];
        if (!w->asleep)
            continue;
        w->asleep = false;
        if (i < pool->limit)
            atomic_fetch_sub(&pool->n_asleep, 1);
        pthread_cond_signal(&w->wake);
        n--;
    }
}

void pto_pool_wake_for(pto_pool *pool, int32_t worker, int64_t n)
{
    if (n <= 0 || atomic_load(&pool->n_asleep) == 0)
        return;
    pthread_mutex_lock(&pool->sleep_lock);
    wake(pool, worker, pool->limit, n);
    pthread_mutex_unlock(&pool->sleep_lock);
}

void pto_pool_wake(pto_pool *pool, int64_t n)
{
    pto_pool_wake_for(pool, 0, n);
}

void pto_pool_wake_all(pto_pool *pool)
{
    pthread_mutex_lock(&pool->sleep_lock);
    wake(pool, 0, pool->n_workers, pool->n_workers);
    pthread_mutex_unlock(&pool->sleep_lock);
}

void pto_worker_settle(pto_worker *worker)
{
    pto_pool *pool = worker->pool;
    if (worker->n_done > 0) {
        atomic_fetch_sub(&pool->remaining, worker->n_done);
        worker->n_done = 0;
    }
    if (worker->index != 0 && pto_run_over(pool))
        pto_pool_wake(pool, 1);        /* worker 0 is looked at first */
}
