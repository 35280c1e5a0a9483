/* queues.c: ready nodes by home and by priority.

   With homes, nodes that are ready at the start stand in the range of their worker. One that becomes ready later goes to the deque of the
   worker that made it ready, or to the inbox of another one, where it is at home; but for one that the worker which made it ready goes on
   with, of its own where there is one: what it reads has just been written. With priorities, each worker has a heap in place of all these,
   and always takes the first of it; without homes all nodes are in that of worker 0. A worker without work takes from others, so that no task waits for a home that is busy while somebody is idle.
   Joins, marks and gates have nothing to run: whoever makes them ready passes them at once. */
#include "queues.h"

#include "../collections/array.h"
#include "deque.h"
#include "heap.h"
#include "node.h"
#include "ranges.h"

static inline int32_t home_of(const pto_pool *pool, uint32_t node)
{
    if (!pool->has_homes || pool->graph->nodes[node].kernel < 0)
        return 0;
    return (int32_t)((uint64_t)pool->record->task_worker[pool->node_task[node]] % (uint64_t)pool->limit);
}

static void append(pto_pool *pool, pto_batch *batch, uint32_t node)
{
    if (batch->n++ == 0)
        batch->first = node;
    else
        atomic_store_explicit(&pool->below[batch->last], node, memory_order_relaxed);
    batch->last = node;
}

/* ---- inboxes: stacks. One with the same node on top as before is the same as before, because no node enters one twice in a run ---- */

static void send(pto_pool *pool, pto_worker *to, const pto_batch *batch)
{
    if (pool->priority != NULL) {
        pto_heap_push(pool, &to->heap, batch);
        return;
    }
    uint32_t top = atomic_load_explicit(&to->inbox, memory_order_relaxed);
    do
        atomic_store_explicit(&pool->below[batch->last], top, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&to->inbox, &top, batch->first));
}

static uint32_t steal_from_inbox(pto_pool *pool, pto_worker *victim)
{
    uint32_t top = atomic_load_explicit(&victim->inbox, memory_order_acquire);
    while (top != PTO_NO_NODE) {
        uint32_t below = atomic_load_explicit(&pool->below[top], memory_order_relaxed);
        if (atomic_compare_exchange_weak(&victim->inbox, &top, below))
            break;
    }
    return top;
}

/* Move all that is in it to the deque, where it is in nobody's way; returns the last. */
static uint32_t empty_inbox(pto_pool *pool, pto_worker *worker)
{
    if (atomic_load_explicit(&worker->inbox, memory_order_relaxed) == PTO_NO_NODE)
        return PTO_NO_NODE;
    pto_pushes pushes = {0};
    uint32_t node = atomic_exchange(&worker->inbox, PTO_NO_NODE), below;
    for (; node != PTO_NO_NODE; node = below) {
        below = atomic_load_explicit(&pool->below[node], memory_order_relaxed);
        if (below == PTO_NO_NODE)
            break;
        pto_deque_push(worker, &pushes, node);
    }
    pto_deque_publish(worker, &pushes);
    return node;
}

/* ---- the start ---- */

bool pto_queues_reserve(pto_pool *pool)
{
    int64_t n = pool->graph->n_nodes;
    if (!PTO_RESERVE(pool->below, pool->below_capacity, n) ||
        (pool->priority != NULL && !PTO_RESERVE(pool->heaps, pool->heaps_capacity, n)))
        return false;
    for (int32_t i = 0; i < pool->limit; i++) {
        pto_worker *w = &pool->workers[i];
        if (!PTO_RESERVE(w->batch, w->batch_capacity, pool->limit))
            return false;
        memset(w->batch, 0, (size_t)pool->limit * sizeof *w->batch);
    }
    return true;
}

static void start_heaps(pto_pool *pool)
{
    pto_batch *part = pool->workers[0].batch;
    for (uint32_t i = 0; i < pool->graph->n_nodes; i++)
        part[home_of(pool, i)].n++;
    pto_ready *rows = pool->heaps;
    for (int32_t k = 0; k < pool->limit; k++) {
        pto_heap_clear(&pool->workers[k].heap, rows);
        rows += part[k].n;
        part[k].n = 0;
    }
    for (int64_t i = 0; i < pool->n_start; i++)
        append(pool, &part[home_of(pool, pool->start[i])], pool->start[i]);
    for (int32_t k = 0; k < pool->limit; k++) {
        send(pool, &pool->workers[k], &part[k]);
        part[k].n = 0;
        atomic_store(&pool->workers[k].range, 0);
    }
}

/* Worker by worker, otherwise in the order that they have. */
static void start_ranges(pto_pool *pool)
{
    pto_batch *part = pool->workers[0].batch;
    uint32_t begin = 0;
    for (int64_t i = 0; i < pool->n_start; i++)
        part[home_of(pool, pool->start[i])].n++;
    for (int32_t k = 0; k < pool->limit; k++) {
        uint32_t end = begin + (uint32_t)part[k].n;
        atomic_store(&pool->workers[k].range, (uint64_t)begin << 32 | end);
        part[k] = (pto_batch){.first = begin};
        begin = end;
    }
    for (int64_t i = 0; i < pool->n_start; i++)
        pool->overflow[part[home_of(pool, pool->start[i])].first++] = pool->start[i];
    memcpy(pool->ready, pool->overflow, (size_t)pool->n_start * sizeof *pool->ready);
    pool->start = pool->ready;
}

void pto_queues_start(pto_pool *pool)
{
    if (pool->priority != NULL)
        start_heaps(pool);
    else
        start_ranges(pool);
}

/* ---- running ---- */

static uint32_t take(pto_worker *worker)
{
    pto_pool *pool = worker->pool;
    uint32_t node;
    if ((node = pto_deque_pop(worker)) != PTO_NO_NODE || (node = empty_inbox(pool, worker)) != PTO_NO_NODE)
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
        if ((node = steal_from_inbox(pool, victim)) != PTO_NO_NODE)
            return node;
    }
    return PTO_NO_NODE;
}

static uint32_t take_by_priority(pto_worker *worker)
{
    pto_pool *pool = worker->pool;
    uint32_t node = PTO_NO_NODE;
    for (int32_t i = 0; i < pool->limit && node == PTO_NO_NODE; i++) {
        int32_t k = worker->index + i;
        node = pto_heap_pop(&pool->workers[k < pool->limit ? k : k - pool->limit].heap);
    }
    return node;
}

static void send_all(pto_worker *worker, int64_t n)
{
    pto_pool *pool = worker->pool;
    for (int32_t i = 1; n > 0; i++) {
        int32_t k = worker->index + i < pool->limit ? worker->index + i : worker->index + i - pool->limit;
        pto_batch *batch = &worker->batch[k];
        if (batch->n > 0) {
            send(pool, &pool->workers[k], batch);
            pto_pool_wake_for(pool, k, batch->n);
            n -= batch->n;
            batch->n = 0;
        }
    }
}

/* Release the successors; returns the one to go on with. What is for others is sent first, so that they need not take ours. */
static uint32_t complete(pto_worker *worker, uint32_t at)
{
    pto_pool *pool = worker->pool;
    uint32_t next = PTO_NO_NODE, passing = PTO_NO_NODE;    /* the latter a stack of joins */
    int32_t here = worker->index, next_home = -1;
    int64_t n_sent = 0;
    pto_pushes pushes = {0};
    for (;;) {
        const pto_graph_node *node = &pool->graph->nodes[at];
        worker->n_done++;
        for (int64_t s = node[0].succ; s < node[1].succ; s++) {
            uint32_t succ = pool->graph->succ[s];
            if (!pto_arrive(pool, succ))
                continue;
            if (pool->graph->nodes[succ].kernel < 0) {
                atomic_store_explicit(&pool->below[succ], passing, memory_order_relaxed);
                passing = succ;
                continue;
            }
            int32_t home = home_of(pool, succ);
            if (pool->priority == NULL && (next == PTO_NO_NODE || (home == here && next_home != here))) {
                uint32_t before = next;
                int32_t home_before = next_home;
                next = succ;
                next_home = home;
                if (before == PTO_NO_NODE)
                    continue;
                succ = before;
                home = home_before;
            }
            if (pool->priority == NULL && home == here) {
                pto_deque_push(worker, &pushes, succ);
            } else {
                append(pool, &worker->batch[home], succ);
                n_sent++;
            }
        }
        if (passing == PTO_NO_NODE)
            break;
        at = passing;
        passing = atomic_load_explicit(&pool->below[at], memory_order_relaxed);
    }
    send_all(worker, n_sent);
    pto_deque_publish(worker, &pushes);
    return next;
}

bool pto_queues_work(pto_worker *worker)
{
    pto_pool *pool = worker->pool;
    pto_run_node_fn run_node = pto_run_node_of(pool);
    bool ran = false;
    while (!pto_must_stop(pool)) {
        uint32_t node = pool->priority != NULL ? take_by_priority(worker) : take(worker);
        if (node == PTO_NO_NODE)
            break;
        ran = true;
        while (node != PTO_NO_NODE && run_node(worker, node))
            node = complete(worker, node);
    }
    if (ran)
        pto_worker_settle(worker);
    return ran;
}
