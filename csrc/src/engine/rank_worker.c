/* rank_worker.c: the thread that moves copies, see rank_worker.h. No allocation here. */
#include "rank_worker.h"

#include "deque.h"
#include "heap.h"
#include "node.h"
#include "ranges.h"
#include "ranks.h"

static void note_run(pto_worker *worker)
{
    atomic_store_explicit(&worker->n_run, atomic_load_explicit(&worker->n_run, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* A task of many bytes: another worker finds it. */
static void hand_over(pto_worker *worker, uint32_t node)
{
    pto_pool *pool = worker->pool;
    if (pool->priority != NULL) {
        pto_batch one = {.first = node, .last = node, .n = 1};
        pto_heap_push(pool, &worker->heap, &one);
        pto_pool_wake_for(pool, 1, 1);
        return;
    }
    pto_pushes pushes = {0};
    pto_deque_push(worker, &pushes, node);
    pto_deque_publish(worker, &pushes);
}

/* Go on from a node that is ready: through what takes no time and what is small; the rest is handed over. */
static void go_on(pto_worker *worker, uint32_t node)
{
    pto_pool *pool = worker->pool;
    pto_ranks *ranks = pool->ranks;
    int64_t n = 0;
    ranks->todo[n++] = node;
    while (n > 0 && !pto_must_stop(pool)) {
        uint32_t at = ranks->todo[--n];
        switch (pto_side_of(worker, at)) {
        case PTO_SIDE_RUN:
            hand_over(worker, at);
            continue;
        case PTO_SIDE_MOVE:
            pto_ranks_defer(worker, at);
            continue;
        default:
            if (!pto_run_node(worker, at, PTO_RANKED))
                return;
        }
        worker->n_done++;
        for (int64_t s = pool->graph->nodes[at].succ; s < pool->graph->nodes[at + 1].succ; s++)
            if (pto_arrive(pool, pool->graph->succ[s]))
                ranks->todo[n++] = pool->graph->succ[s];
    }
}

/* The copy has ended: go on from its successors. */
static void end(pto_worker *worker, uint32_t at)
{
    pto_pool *pool = worker->pool;
    note_run(worker);
    worker->n_done++;
    for (int64_t s = pool->graph->nodes[at].succ; s < pool->graph->nodes[at + 1].succ; s++)
        if (pto_arrive(pool, pool->graph->succ[s]))
            go_on(worker, pool->graph->succ[s]);
}

/* How many of the others run a task, or find one that they have not begun: this thread must leave them its core. */
static int32_t n_busy(pto_worker *worker)
{
    pto_pool *pool = worker->pool;
    bool is_left = atomic_load(&worker->top) < atomic_load(&worker->bottom) || atomic_load(&pool->n_overflow) > 0 ||
                   atomic_load(&worker->heap.n) > 0;
    return atomic_load(&pool->ranks->n_busy) + is_left;
}

void pto_rank_worker_work(pto_worker *worker)
{
    pto_pool *pool = worker->pool;
    pto_ranks *ranks = pool->ranks;
    uint32_t node;
    if (pool->priority == NULL)
        while ((node = worker->block < worker->block_end ? pool->start[worker->block++] : pto_worker_claim(worker)) != PTO_NO_NODE)
            go_on(worker, node);
    while (!pto_must_stop(pool)) {
        pto_worker_settle(worker);
        if (atomic_load(&pool->remaining) == 0)
            break;
        if ((atomic_load(&pool->stop) & PTO_STOP_FAILED) != 0) {       /* the other ranks hear of it, and nobody waits for a copy */
            atomic_fetch_or(&pool->stop, PTO_STOP_CANCELLED);
            break;
        }
        int64_t n = 0;
        if (atomic_load(&ranks->n_waiting) > 0) {
            pthread_mutex_lock(&ranks->lock);
            pto_transfer *ready = ranks->ready;
            int64_t capacity = ranks->ready_capacity;
            n = ranks->n_ready;
            ranks->ready = ranks->given;
            ranks->ready_capacity = ranks->given_capacity;
            ranks->given = ready;
            ranks->given_capacity = capacity;
            ranks->n_ready = 0;
            atomic_store(&ranks->n_waiting, 0);
            pthread_mutex_unlock(&ranks->lock);
        }
        int64_t n_ended = ranks->options.progress(ranks->options.user, ranks->given, n, ranks->ended, n_busy(worker));
        if (n_ended < 0)
            atomic_fetch_or(&pool->stop, PTO_STOP_CANCELLED);
        for (int64_t i = 0; i < n_ended; i++)
            end(worker, (uint32_t)ranks->ended[i]);
    }
}
