/* calendar.c: running a record strictly by its calendar: every executor's tasks in the order of their positions, each executor on one
   thread (executor mod threads), nothing decided while it runs.

   The lists are made once for a graph and a number of threads. All nodes stand in one order in which predecessors and the task before
   on the executor come first; a thread's list is its part of that order. So the first node of the order that has not run never waits for
   one further down some list, and threads that wait for each other always go on. Joins, marks and gates have nothing to run: they stand
   in the list of the thread that runs the last node before them. */
#include "calendar.h"

#include <stdlib.h>
#include <string.h>

#include "../collections/array.h"
#include "../record/positions.h"
#include "node.h"
#include "wait.h"

/* Of each task: the next one of its executor, PTO_NO_NODE behind the last; counted in pending like any other predecessor. */
static bool chain(const pto_record *record, const pto_graph *graph, uint32_t *next, uint32_t *pending)
{
    pto_position *entries = malloc((size_t)(record->n_tasks > 0 ? record->n_tasks : 1) * sizeof *entries);
    if (entries == NULL)
        return false;
    int64_t n = 0;
    for (int64_t i = 0; i < graph->n_nodes; i++) {
        next[i] = PTO_NO_NODE;
        if (graph->nodes[i].kernel < 0)
            continue;
        int64_t task = record->node_task[i];
        entries[n++] = (pto_position){record->task_worker[task], record->kept[PTO_KEPT_POSITION][task], i};
    }
    pto_positions_sort(entries, n);
    for (int64_t i = 1; i < n; i++)
        if (entries[i].worker == entries[i - 1].worker) {
            next[entries[i - 1].id] = (uint32_t)entries[i].id;
            pending[entries[i].id]++;
        }
    free(entries);
    return true;
}

/* The order of all nodes; returns how many there are in it, fewer than all when they wait for each other in a circle. */
static int64_t sort_nodes(const pto_graph *graph, const uint32_t *next, uint32_t *pending, uint32_t *order)
{
    int64_t n = 0;
    for (int64_t i = 0; i < graph->n_nodes; i++)
        if (pending[i] == 0)
            order[n++] = (uint32_t)i;
    for (int64_t at = 0; at < n; at++) {
        uint32_t node = order[at];
        for (int64_t s = graph->nodes[node].succ; s < graph->nodes[node + 1].succ; s++)
            if (--pending[graph->succ[s]] == 0)
                order[n++] = graph->succ[s];
        if (next[node] != PTO_NO_NODE && --pending[next[node]] == 0)
            order[n++] = next[node];
    }
    return n;
}

/* Which thread's list each node is in, by node. */
static void give_threads(const pto_record *record, const pto_graph *graph, const uint32_t *order, uint32_t *thread, int32_t n_threads)
{
    for (int64_t i = 0; i < graph->n_nodes; i++)
        thread[i] = graph->nodes[i].kernel < 0 ? 0 : (uint32_t)(record->task_worker[record->node_task[i]] % n_threads);
    for (int64_t at = 0; at < graph->n_nodes; at++)
        for (int64_t s = graph->nodes[order[at]].succ; s < graph->nodes[order[at] + 1].succ; s++)
            if (graph->nodes[graph->succ[s]].kernel < 0)
                thread[graph->succ[s]] = thread[order[at]];    /* the last one stays */
}

/* pto_graph.list: the lists one after another, that of thread k up to list_end[k]. */
static int32_t make_lists(pto_graph *graph, const pto_record *record, int32_t n_threads)
{
    int64_t n = graph->n_nodes, n_words = n > 0 ? n : 1;
    if (!PTO_RESERVE(graph->list, graph->list_capacity, n_words) || !PTO_RESERVE(graph->list_end, graph->list_end_capacity, n_threads))
        return PTO_E_NOMEM;
    uint32_t *words = malloc((size_t)(3 * n_words) * sizeof *words);
    if (words == NULL)
        return PTO_E_NOMEM;
    uint32_t *next = words, *pending = words + n_words, *order = words + 2 * n_words, *thread = words;   /* next is read before thread */
    for (int64_t i = 0; i < n; i++)
        pending[i] = graph->nodes[i].n_preds;
    int32_t status = PTO_OK;
    if (!chain(record, graph, next, pending))
        status = PTO_E_NOMEM;
    else if (sort_nodes(graph, next, pending, order) < n)
        status = PTO_E_DEADLOCK;
    if (status == PTO_OK) {
        give_threads(record, graph, order, thread, n_threads);
        memset(graph->list_end, 0, (size_t)n_threads * sizeof *graph->list_end);
        for (int64_t i = 0; i < n; i++)
            graph->list_end[thread[i]]++;
        int64_t begin = 0;
        for (int32_t k = 0; k < n_threads; k++) {
            int64_t size = graph->list_end[k];
            graph->list_end[k] = begin;
            begin += size;
        }
        for (int64_t at = 0; at < n; at++)
            graph->list[graph->list_end[thread[order[at]]]++] = order[at];
        graph->list_threads = n_threads;
    }
    free(words);
    return status;
}

/* ---- running ---- */

/* Wait until all predecessors of the node have completed; false when the run is cancelled. */
static bool await(pto_worker *worker, uint32_t node)
{
    const _Atomic uint32_t *pending = &worker->pool->pending[node];
    if (atomic_load_explicit(pending, memory_order_acquire) == 0)
        return true;
    int64_t since = pto_now_ns();
    while (atomic_load_explicit(pending, memory_order_acquire) != 0) {
        if (pto_must_stop(worker->pool))
            return false;
        if (pto_now_ns() - since < PTO_SPIN_NS)
            pto_pause(8);
        else
            pto_nap();
    }
    return true;
}

bool pto_worker_follow(pto_worker *worker)
{
    pto_pool *pool = worker->pool;
    const pto_graph *graph = pool->graph;
    pto_run_node_fn run_node = pto_run_node_of(pool);
    uint64_t range = atomic_load(&worker->range);
    int64_t at = (int64_t)(range >> 32), end = (int64_t)(uint32_t)range, begin = at;
    for (; at < end; at++) {
        uint32_t node = pool->start[at];
        if (!await(worker, node) || !run_node(worker, node))
            break;
        for (int64_t s = graph->nodes[node].succ; s < graph->nodes[node + 1].succ; s++)
            atomic_fetch_sub_explicit(&pool->pending[graph->succ[s]], 1, memory_order_acq_rel);
        worker->n_done++;
    }
    atomic_store(&worker->range, (uint64_t)end << 32 | (uint64_t)end);     /* nothing is left of it, or nothing is to run any more */
    pto_worker_settle(worker);
    return at > begin;
}

int32_t pto_lists_take(pto_pool *pool, const pto_record *record)
{
    pto_record *r = (pto_record *)(uintptr_t)record;       /* as pto_record_graph: a cache */
    pto_graph *graph = &r->graph;
    if (record->kept[PTO_KEPT_POSITION] == NULL || graph->begin != 0)
        return PTO_E_ARGUMENT;
    pthread_mutex_lock(&r->graph_lock);
    int32_t status = graph->list_threads == pool->limit ? PTO_OK : make_lists(graph, record, pool->limit);
    if (status == PTO_OK) {
        memcpy(pool->ready, graph->list, (size_t)graph->n_nodes * sizeof *graph->list);
        for (int32_t k = 0; k < pool->limit; k++) {
            uint64_t begin = k > 0 ? (uint64_t)graph->list_end[k - 1] : 0;
            atomic_store(&pool->workers[k].range, begin << 32 | (uint64_t)graph->list_end[k]);
        }
    }
    pthread_mutex_unlock(&r->graph_lock);
    pool->start = pool->ready;
    return status;
}
