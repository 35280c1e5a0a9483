/* rank_worker.c: the thread that moves copies, see rank_worker.h. No allocation here. */
#include "rank_worker.h"

#include "deque.h"
#include "heap.h"
#include "node.h"
#include "ranges.h"
#include "ranks.h"

#define LOOK_NS 200000                 /* between two looks at copies under way while other workers run tasks */
#define ASK_NS 20000000                /* after which `progress` is called though it has nothing to begin */

static void note_run(pto_worker *worker)
{
    atomic_store_explicit(&worker->n_run, atomic_load_explicit(&worker->n_run, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* A task of many bytes: another worker finds it, or this one if it is alone. */
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

/* The node has ended: go on from its successors. */
static void release(pto_worker *worker, uint32_t at)
{
    pto_pool *pool = worker->pool;
    worker->n_done++;
    for (int64_t s = pool->graph->nodes[at].succ; s < pool->graph->nodes[at + 1].succ; s++)
        if (pto_arrive(pool, pool->graph->succ[s]))
            go_on(worker, pool->graph->succ[s]);
}

static void end_copies(pto_worker *worker, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        note_run(worker);
        release(worker, (uint32_t)worker->pool->ranks->ended[i]);
    }
}

/* Run the first ready task of this rank. All ranks run their tasks in about the same order, so that both sides of a copy are ready. */
static bool run_one(pto_worker *worker)
{
    pto_pool *pool = worker->pool;
    uint32_t node = pool->priority != NULL ? pto_heap_pop(&worker->heap) : pto_deque_steal(worker);
    if (node == PTO_NO_NODE && pool->priority == NULL)
        node = pto_overflow_take(pool);
    if (node == PTO_NO_NODE)
        return false;
    if (pto_run_node(worker, node, PTO_RANKED))
        release(worker, node);
    return true;
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
    const pto_ranks_options *o = &ranks->options;
    const bool is_alone = pool->limit == 1;
    int64_t n_asked = 0, asked_ns = pto_now_ns(), idle_since_ns = asked_ns;    /* n_asked: copies that progress has begun, under way */
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
        int64_t n_new = pto_ranks_begin(ranks), n_ended = pto_ranks_test(ranks);
        if (ranks->error != 0) {
            atomic_fetch_or(&pool->stop, PTO_STOP_CANCELLED);
            break;
        }
        end_copies(worker, n_ended);
        bool goes_on = n_ended > 0 || n_new > 0;
        if (is_alone)
            goes_on |= run_one(worker);
        else if (!goes_on && n_busy(worker) > 0) {
            pto_ranks_sleep(ranks, ranks->n_open + n_asked > 0 ? LOOK_NS : ASK_NS);
            goes_on = true;
        }
        int64_t now_ns = pto_now_ns();
        if (goes_on)
            idle_since_ns = now_ns;
        int64_t idle_ns = now_ns - idle_since_ns;
        bool may_pass = idle_ns > o->spin_ns;
        if (n_new > 0 || n_asked > 0 || may_pass || now_ns - asked_ns > ASK_NS) {
            asked_ns = now_ns;
            n_ended = o->progress(o->user, ranks->given, n_new, ranks->ended, may_pass ? idle_ns : 0);
            if (n_ended < 0) {
                atomic_fetch_or(&pool->stop, PTO_STOP_CANCELLED);
                break;
            }
            n_asked += n_new - n_ended;
            if (n_ended > 0)
                idle_since_ns = now_ns;
            end_copies(worker, n_ended);
        } else if (idle_ns > 0) {
            pto_pause(1);
        }
    }
}
