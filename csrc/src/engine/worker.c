/* worker.c: one worker: find a node, run it, release its successors. No allocation here. */
#include "../sanitizer/sanitize.h"
#include "deque.h"

#define PTO_MAX_BLOCK 32               /* ready nodes claimed at once */

/* There are two loops over tasks, and a compiler leaves out of line what both use: that would double what a small task costs. */
#define PTO_INLINE inline __attribute__((always_inline))

/* ---- one task ---- */

static void note_failure(pto_worker *worker, uint32_t node, int32_t code)
{
    pto_pool *pool = worker->pool;
    pthread_mutex_lock(&pool->failure_lock);
    if (node < atomic_load(&pool->failed_node)) {
        atomic_store(&pool->failed_node, node);
        pool->failed_guard = code - 1;
        pool->fault = worker->context.fault;
    }
    pthread_mutex_unlock(&pool->failure_lock);
    worker->context.fault = (pto_fault){0};    /* the next one may have nothing to add */
    atomic_fetch_or(&pool->stop, PTO_STOP_FAILED);
}

/* How a task is run: the choice is made once for many of them, so that a plain one does not pay for it. */
typedef enum manner { PLAIN, WATCHED, TIMED } manner;

static PTO_INLINE int32_t call(pto_worker *worker, uint32_t at)
{
    pto_pool *pool = worker->pool;
    const pto_graph_node *node = &pool->graph->nodes[at];
    return pool->kernels[node->kernel].entry(pool->args + node->arg, pool->scalars + node->scalar, worker->scratch, &worker->context);
}

static int32_t call_by_the_clock(pto_worker *worker, uint32_t at)
{
    int64_t start_ns = pto_now_ns();
    int32_t code = call(worker, at);
    pto_wall_note(&worker->pool->wall[worker->pool->node_task[at]], start_ns, worker->index);
    return code;
}

static PTO_INLINE bool run_node(pto_worker *worker, uint32_t at, manner how)
{
    pto_pool *pool = worker->pool;
    const pto_graph_node *node = &pool->graph->nodes[at];
    uint32_t stop = atomic_load_explicit(&pool->stop, memory_order_relaxed) % PTO_STOP_GENERATION;
    if (__builtin_expect(stop != 0, 0)) {      /* tasks before one that failed still run: the first failure is the same every time */
        if ((stop & PTO_STOP_CANCELLED) != 0)
            return false;
        if (at > atomic_load(&pool->failed_node))
            return true;
    }
    if (node->kernel >= 0) {
        worker->context.node = pool->graph->begin + at;
        int32_t code = how == WATCHED ? pto_sanitize_task(worker, at) : how == TIMED ? call_by_the_clock(worker, at) : call(worker, at);
        if (code == PTO_CANCELLED) {   /* whoever set what it has seen may not have told the pool yet */
            atomic_fetch_or(&pool->stop, PTO_STOP_CANCELLED);
            return false;
        }
        if (code != 0) {
            note_failure(worker, at, code);
            return true;
        }
        worker->n_run++;
    }
    return true;
}

static bool run_plain(pto_worker *worker, uint32_t at)
{
    return run_node(worker, at, PLAIN);
}

static bool run_watched(pto_worker *worker, uint32_t at)
{
    return run_node(worker, at, WATCHED);
}

static bool run_timed(pto_worker *worker, uint32_t at)
{
    return run_node(worker, at, TIMED);
}

pto_run_node_fn pto_run_node_of(const pto_pool *pool)
{
    return pool->sanitizer != NULL ? run_watched : pool->wall != NULL ? run_timed : run_plain;
}

/* ---- finding work ---- */

uint32_t pto_worker_claim(pto_worker *worker)
{
    uint64_t range = atomic_load_explicit(&worker->range, memory_order_acquire);
    for (;;) {
        uint32_t begin = (uint32_t)(range >> 32), end = (uint32_t)range;
        if (begin >= end)
            return PTO_NO_NODE;
        uint32_t n = (end - begin + 7) / 8;    /* smaller towards the end, for balance */
        n = n > PTO_MAX_BLOCK ? PTO_MAX_BLOCK : n;
        if (atomic_compare_exchange_weak(&worker->range, &range, (uint64_t)(begin + n) << 32 | end)) {
            worker->block = begin + 1;
            worker->block_end = begin + n;
            return worker->pool->start[begin];
        }
    }
}

/* Take the back half of a range. A range value never comes back with other nodes behind it, so comparing is enough. */
bool pto_worker_steal_range(pto_worker *worker, pto_worker *victim)
{
    uint64_t range = atomic_load(&victim->range);
    for (;;) {
        uint32_t begin = (uint32_t)(range >> 32), end = (uint32_t)range;
        if (begin >= end)
            return false;
        uint32_t middle = begin + (end - begin) / 2;
        if (atomic_compare_exchange_weak(&victim->range, &range, (uint64_t)begin << 32 | middle)) {
            atomic_store(&worker->range, (uint64_t)middle << 32 | end);
            pto_pool_wake(worker->pool, (int64_t)end - middle - 1);
            return true;
        }
    }
}

static PTO_INLINE uint32_t take(pto_worker *worker)
{
    pto_pool *pool = worker->pool;
    uint32_t node = pto_deque_pop(worker);
    if (node != PTO_NO_NODE)
        return node;
    if (worker->block < worker->block_end)
        return pool->start[worker->block++];
    if ((node = pto_worker_claim(worker)) != PTO_NO_NODE || (node = pto_overflow_take(pool)) != PTO_NO_NODE)
        return node;
    for (int32_t i = 1; i < pool->limit; i++) {
        int32_t other = worker->index + i;
        pto_worker *victim = &pool->workers[other < pool->limit ? other : other - pool->limit];
        if ((node = pto_deque_steal(victim)) != PTO_NO_NODE)
            return node;
        if (pto_worker_steal_range(worker, victim) && (node = pto_worker_claim(worker)) != PTO_NO_NODE)
            return node;
    }
    return PTO_NO_NODE;
}

/* ---- completing ---- */

/* Release the successors; returns the first that became ready, the others are shared. */
static PTO_INLINE uint32_t complete(pto_worker *worker, uint32_t at)
{
    pto_pool *pool = worker->pool;
    const pto_graph_node *node = &pool->graph->nodes[at];
    uint32_t next = PTO_NO_NODE;
    pto_pushes pushes = {0};
    worker->n_done++;
    for (int64_t s = node[0].succ; s < node[1].succ; s++) {
        uint32_t succ = pool->graph->succ[s];
        if (!pto_arrive(pool, succ))
            continue;
        if (next == PTO_NO_NODE)
            next = succ;
        else
            pto_deque_push(worker, &pushes, succ);
    }
    pto_deque_publish(worker, &pushes);
    return next;
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

static PTO_INLINE bool work(pto_worker *worker, manner how)
{
    pto_pool *pool = worker->pool;
    bool ran = false;
    while (!pto_must_stop(pool)) {
        uint32_t node = take(worker);
        if (node == PTO_NO_NODE)
            break;
        ran = true;
        while (node != PTO_NO_NODE && run_node(worker, node, how))
            node = complete(worker, node);
    }
    if (ran)
        pto_worker_settle(worker);
    return ran;
}

bool pto_worker_work(pto_worker *worker)
{
    if (worker->pool->follows)
        return pto_worker_follow(worker);
    if (worker->pool->has_queues)
        return pto_queues_work(worker);
    return worker->pool->wall != NULL ? work(worker, TIMED) : work(worker, PLAIN);
}
