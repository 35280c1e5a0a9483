/* node.h: run one node of the graph. In a header because both loops over tasks have it inline. No allocation. */
#ifndef PTO_NODE_H
#define PTO_NODE_H
#include "ranks.h"

#pragma GCC visibility push(hidden)

/* There are two loops over tasks, and a compiler leaves out of line what both use: that would double what a small task costs. */
#define PTO_INLINE inline __attribute__((always_inline))

typedef bool (*pto_run_node_fn)(pto_worker *worker, uint32_t at);      /* false when cancelled; a join or mark has nothing to run */

pto_run_node_fn pto_run_node_of(const pto_pool *pool);     /* plainly, with the pool's sanitizer or with its wall-clock trace */
void pto_note_failure(pto_worker *worker, uint32_t node, int32_t code);
int32_t pto_call_by_the_clock(pto_worker *worker, uint32_t at);
int32_t pto_call_for_rank(pto_worker *worker, uint32_t at);

/* How the engine runs tasks: plainly, under the sanitizer, with wall times, or for one rank. The engine chooses once for many tasks, so that a plain
   task does not pay for the choice. */
typedef enum pto_manner { PTO_PLAIN, PTO_WATCHED, PTO_TIMED, PTO_RANKED } pto_manner;

static PTO_INLINE int32_t pto_call_kernel(pto_worker *worker, uint32_t at)
{
    pto_pool *pool = worker->pool;
    const pto_graph_node *node = &pool->graph->nodes[at];
    return pool->kernels[node->kernel].entry(pool->args + node->arg, pool->scalars + node->scalar, worker->scratch, &worker->context);
}

static PTO_INLINE bool pto_run_node(pto_worker *worker, uint32_t at, pto_manner how)
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
    if (how == PTO_RANKED && pto_side_of(worker, at) == PTO_SIDE_MOVE) {
        pto_ranks_defer(worker, at);
        return false;
    }
    if (node->kernel >= 0) {
        worker->context.node = pool->graph->begin + at;
        int32_t code = how == PTO_WATCHED ? pool->watch(worker, at) : how == PTO_TIMED ? pto_call_by_the_clock(worker, at)
                       : how == PTO_RANKED ? pto_call_for_rank(worker, at) : pto_call_kernel(worker, at);
        if (code == PTO_CANCELLED) {   /* whoever set what it has seen may not have told the pool yet */
            atomic_fetch_or(&pool->stop, PTO_STOP_CANCELLED);
            return false;
        }
        if (code != 0) {
            pto_note_failure(worker, at, code);
            return true;
        }
        atomic_store_explicit(&worker->n_run, atomic_load_explicit(&worker->n_run, memory_order_relaxed) + 1, memory_order_relaxed);
    }
    return true;
}

#pragma GCC visibility pop

#endif
