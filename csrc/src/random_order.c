/* random_order.c: run the tasks of a graph in a legal order that a seed gives, to make a missing edge show.

   The same seed gives the same order for the same order between tasks, however many joins and marks stand between them: only
   tasks are drawn, and those that become ready together are entered in program order. */
#include "engine.h"

static int ascending(const void *a, const void *b)
{
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;
    return (first > second) - (first < second);
}

/* Enter the tasks that become ready with the nodes waiting on the stack; joins and marks go through. Returns how many nodes did. */
static int64_t pass_on(pto_pool *pool, int64_t n_stack, int64_t *n_ready)
{
    const pto_graph *graph = pool->graph;
    int64_t n_passed = 0, before = *n_ready;
    while (n_stack > 0) {
        uint32_t node = pool->overflow[--n_stack];
        for (int64_t s = graph->nodes[node].succ; s < graph->nodes[node + 1].succ; s++) {
            uint32_t next = graph->succ[s];
            if (!pto_arrive(pool, next))
                continue;
            if (graph->nodes[next].kernel >= 0) {
                pool->ready[(*n_ready)++] = next;
            } else {
                pool->overflow[n_stack++] = next;
                n_passed++;
            }
        }
    }
    if (*n_ready - before > 1)
        qsort(pool->ready + before, (size_t)(*n_ready - before), sizeof *pool->ready, ascending);
    return n_passed;
}

static uint64_t draw(uint64_t *state)          /* splitmix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int32_t pto_run_in_random_order(pto_worker *worker, uint64_t seed)
{
    pto_pool *pool = worker->pool;
    const pto_graph *graph = pool->graph;
    int64_t n_ready = 0, n_done = 0, n_stack = 0;
    for (int64_t i = 0; i < graph->n_ready; i++) {
        uint32_t node = graph->ready[i];
        if (graph->nodes[node].kernel >= 0)
            pool->ready[n_ready++] = node;
        else
            pool->overflow[n_stack++] = node;
    }
    n_done = n_stack;
    n_done += pass_on(pool, n_stack, &n_ready);
    while (n_ready > 0) {
        int64_t pick = (int64_t)(draw(&seed) % (uint64_t)n_ready);
        uint32_t node = pool->ready[pick];
        pool->ready[pick] = pool->ready[--n_ready];
        if (!(pool->sanitizer != NULL ? pto_worker_run_watched(worker, node) : pto_worker_run_node(worker, node)))
            break;
        pool->overflow[0] = node;
        n_done += 1 + pass_on(pool, 1, &n_ready);
    }
    return pto_must_stop(pool) || n_done == graph->n_nodes ? PTO_OK : PTO_E_DEADLOCK;
}
