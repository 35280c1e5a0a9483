/* worker.c: one worker: find a node, run it, release its successors. No allocation here. */
#include "worker.h"

#include "calendar.h"
#include "deque.h"
#include "node.h"
#include "queues.h"
#include "ranges.h"

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

static PTO_INLINE bool work(pto_worker *worker, pto_manner how)
{
    pto_pool *pool = worker->pool;
    bool ran = false;
    while (!pto_must_stop(pool)) {
        uint32_t node = take(worker);
        if (node == PTO_NO_NODE)
            break;
        ran = true;
        while (node != PTO_NO_NODE && pto_run_node(worker, node, how))
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
    if (worker->pool->ranks != NULL) {
        bool ran = worker->pool->has_queues ? pto_queues_work(worker) : work(worker, PTO_RANKED);
        if (ran)
            pto_ranks_wake(worker->pool->ranks);
        return ran;
    }
    if (worker->pool->has_queues)
        return pto_queues_work(worker);
    return worker->pool->wall != NULL ? work(worker, PTO_TIMED) : work(worker, PTO_PLAIN);
}
