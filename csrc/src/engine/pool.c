/* pool.c: the threads of a pool, and how they wait. */
#include <signal.h>
#include <time.h>

#include "engine.h"

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

void pto_run_open(pto_pool *pool)
{
    atomic_store(&pool->open, 1);
    pto_pool_wake(pool, pool->n_start - 1);
}

void pto_run_close(pto_pool *pool)
{
    atomic_store(&pool->open, 0);
    for (int32_t spins = 0; atomic_load(&pool->n_inside) != 0; spins++) {
        if (spins < 1000) {
            pto_pause(4);
        } else {
            struct timespec nap = {0, 20000};  /* a helper is in a long kernel after a cancel, or not scheduled */
            nanosleep(&nap, NULL);
        }
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
    pthread_mutex_lock(&pool->sleep_lock);
    wake(pool, 0, pool->n_workers, pool->n_workers);
    pthread_mutex_unlock(&pool->sleep_lock);
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
