/* pool.c: the threads of a pool, who holds it, and the begin and end of a run. */
#include "pool.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wait.h"
#include "worker.h"

void pto_run_open(pto_pool *pool)
{
    atomic_store(&pool->open, 1);
    pto_pool_wake(pool, pool->n_start - 1);
}

void pto_run_close(pto_pool *pool)
{
    atomic_store(&pool->open, 0);
    for (int32_t spins = 0; atomic_load(&pool->n_inside) != 0; spins++) {
        if (spins < 1000)
            pto_pause(4);
        else
            pto_nap();                 /* a helper is in a long kernel after a cancel, or not scheduled */
    }
}

/* ---- helper threads ---- */

static bool help(pto_worker *worker)
{
    pto_pool *pool = worker->pool;
    bool ran = false;
    if (!atomic_load(&pool->open))
        return false;
    atomic_fetch_add(&pool->n_inside, 1);
    if (atomic_load(&pool->open) && worker->index < pool->limit)    /* still open: the run waits for us now */
        ran = pto_worker_work(worker);
    atomic_fetch_sub(&pool->n_inside, 1);
    return ran;
}

static void *helper_main(void *user)
{
    pto_worker *worker = user;
    pto_pool *pool = worker->pool;
    int64_t idle_since = pto_now_ns();
    while (!atomic_load(&pool->shut_down)) {
        if (help(worker)) {
            idle_since = pto_now_ns();
        } else if (pto_now_ns() - idle_since > PTO_SPIN_NS) {
            pto_worker_sleep(worker);
            idle_since = pto_now_ns();
        } else {
            pto_pause(8);
        }
    }
    return NULL;
}

/* Helpers block every signal, so that Ctrl-C reaches the thread that can handle it. */
static bool start_helper(pto_worker *worker)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&worker->thread, NULL, helper_main, worker) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* ---- life ---- */

pto_pool *pto_pool_new(int32_t threads)
{
    if (threads < 1)
        threads = 1;
    pto_pool *pool = aligned_alloc(PTO_CACHE_LINE, sizeof *pool);
    pto_worker *workers = aligned_alloc(PTO_CACHE_LINE, (size_t)threads * sizeof *workers);
    if (pool == NULL || workers == NULL) {
        free(pool);
        free(workers);
        return NULL;
    }
    memset(pool, 0, sizeof *pool);
    memset(workers, 0, (size_t)threads * sizeof *workers);
    pool->workers = workers;
    pool->n_workers = threads;
    pool->limit = threads;
    pthread_mutex_init(&pool->run_lock, NULL);
    pthread_mutex_init(&pool->sleep_lock, NULL);
    pthread_mutex_init(&pool->overflow_lock, NULL);
    pthread_mutex_init(&pool->failure_lock, NULL);
    for (int32_t i = 0; i < threads; i++) {
        workers[i].pool = pool;
        workers[i].index = i;
        atomic_init(&workers[i].inbox, PTO_NO_NODE);
        pthread_cond_init(&workers[i].wake, NULL);
    }
    for (int32_t i = 1; i < threads; i++) {
        if (!start_helper(&workers[i])) {
            pto_pool_free(pool);
            return NULL;
        }
        pool->n_started++;
    }
    return pool;
}

void pto_pool_free(pto_pool *pool)
{
    if (pool == NULL)
        return;
    atomic_store(&pool->shut_down, 1);
    pto_pool_wake_all(pool);
    for (int32_t i = 1; i <= pool->n_started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    for (int32_t i = 0; i < pool->n_workers; i++) {
        pthread_cond_destroy(&pool->workers[i].wake);
        free(pool->workers[i].scratch);
        free(pool->workers[i].batch);
    }
    pthread_mutex_destroy(&pool->run_lock);
    pthread_mutex_destroy(&pool->sleep_lock);
    pthread_mutex_destroy(&pool->overflow_lock);
    pthread_mutex_destroy(&pool->failure_lock);
    free(pool->pending);
    free(pool->ready);
    free(pool->below);
    free(pool->heaps);
    free(pool->overflow);
    free(pool->workers);
    free(pool);
}

int32_t pto_pool_threads(const pto_pool *pool)
{
    return pool->n_workers;
}

/* Only atomics, so a signal handler may call these two: whoever runs a task sees it afterwards. */
void pto_pool_cancel(pto_pool *pool)
{
    __atomic_store_n(&pool->own_cancel, 1, __ATOMIC_SEQ_CST);
    atomic_fetch_or(&pool->stop, PTO_STOP_CANCELLED);
}

int64_t pto_pool_n_run(pto_pool *pool, const int32_t *cancel)
{
    int64_t n = 0;
    if (atomic_load(&pool->cancel) == cancel)
        for (int32_t i = 0; i < pool->n_workers; i++)
            n += atomic_load_explicit(&pool->workers[i].n_run, memory_order_relaxed);
    return n;
}

/* A run that comes next makes another `stop`, so it is never the one that ends. */
void pto_pool_cancel_run(pto_pool *pool, int32_t *cancel)
{
    __atomic_store_n(cancel, 1, __ATOMIC_SEQ_CST);
    uint32_t stop = atomic_load(&pool->stop);
    while (atomic_load(&pool->cancel) == cancel && (stop & PTO_STOP_CANCELLED) == 0)
        if (atomic_compare_exchange_weak(&pool->stop, &stop, stop | PTO_STOP_CANCELLED))
            break;
}

bool pto_pool_cancelled(pto_pool *pool)
{
    return (atomic_load(&pool->stop) & PTO_STOP_CANCELLED) != 0;
}

bool pto_pool_hold(pto_pool *pool, int32_t *cancel)
{
    while (pthread_mutex_trylock(&pool->run_lock) != 0) {
        if (cancel != NULL && __atomic_load_n(cancel, __ATOMIC_SEQ_CST) != 0)
            return false;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += PTO_CANCEL_SEEN_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_mutex_timedlock(&pool->run_lock, &until) == 0)
            break;
    }
    uint32_t generation = (atomic_load(&pool->stop) / PTO_STOP_GENERATION + 1) * PTO_STOP_GENERATION;
    atomic_store(&pool->stop, generation);
    __atomic_store_n(&pool->own_cancel, 0, __ATOMIC_SEQ_CST);
    atomic_store(&pool->cancel, cancel != NULL ? cancel : &pool->own_cancel);
    if (cancel != NULL && __atomic_load_n(cancel, __ATOMIC_SEQ_CST) != 0)
        atomic_fetch_or(&pool->stop, PTO_STOP_CANCELLED);
    return true;
}

void pto_pool_release(pto_pool *pool)
{
    atomic_store(&pool->cancel, NULL);
    pthread_mutex_unlock(&pool->run_lock);
}
