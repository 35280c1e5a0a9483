/* random_order.c: run the tasks of a graph in a legal order that a seed gives, to make a missing edge show.

   Only tasks are drawn: joins and marks that order nothing change nothing, so that a sanitized run, whose record has more of
   them, has the order of a plain one. */
#include "random_order.h"

#include "node.h"

/* Enter the tasks that become ready with the nodes waiting on the stack; joins and marks go through. Returns how many nodes did. */
static int64_t pass_on(pto_pool *pool, int64_t n_stack, int64_t *n_ready)
{
    const pto_graph *graph = pool->graph;
    int64_t n_passed = 0;
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
    pto_run_node_fn run_node = pto_run_node_of(pool);
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
        if (!run_node(worker, node))
            break;
        pool->overflow[0] = node;
        n_done += 1 + pass_on(pool, 1, &n_ready);
    }
    return pto_must_stop(pool) || n_done == graph->n_nodes ? PTO_OK : PTO_E_DEADLOCK;
}
