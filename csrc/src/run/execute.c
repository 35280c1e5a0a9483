/* execute.c: run the tasks of a record, each after its predecessors.

   Five ways: in submission order on the calling thread (one thread, or a graph too small to share), in a seeded random
   legal order (random_order.c), by a calendar (calendar.c), on the pool, and there by homes or priorities (queues.c). Program order is
   legal as it stands, because predecessors always come first. No allocation while tasks run. */
#include "execute.h"

#include <stdlib.h>

#include "../collections/array.h"
#include "../engine/calendar.h"
#include "../engine/node.h"
#include "../engine/pool.h"
#include "../engine/prints.h"
#include "../engine/queues.h"
#include "../engine/random_order.h"
#include "../engine/rank_worker.h"
#include "../engine/ranks.h"
#include "../engine/wait.h"
#include "../engine/wall.h"
#include "../engine/worker.h"
#include "../record/record.h"
#include "../sanitizer/sanitize_tasks.h"

/* A small graph starts alone and calls for help once it has run this long: waking a thread costs about as much. */
#define PTO_ALONE_NS 30000
#define PTO_ALONE_TASKS 1024
#define PTO_ALONE_COST 32768           /* cycles; more is worth sharing from the start */

/* Nodes from `at` on in submission order, in which no gate waits; returns the first not run, n_own unless stopped or out of time. */
static int64_t run_in_order(pto_worker *worker, int64_t at, bool may_call_help)
{
    pto_pool *pool = worker->pool;
    int64_t n = pool->graph->n_own, until = may_call_help ? pto_now_ns() + PTO_ALONE_NS : 0;
    pto_run_node_fn run_node = pto_run_node_of(pool);
    for (; at < n; at++) {
        if (!run_node(worker, (uint32_t)at))
            return at;
        if (may_call_help && (at & 3) == 3 && pto_now_ns() > until)
            return at + 1;
    }
    return n;
}

static bool reserve_run(pto_pool *pool)
{
    int64_t n = pool->graph->n_nodes;
    return PTO_RESERVE(pool->pending, pool->pending_capacity, n) &&
           PTO_RESERVE(pool->overflow, pool->overflow_capacity, n) &&
           PTO_RESERVE(pool->ready, pool->ready_capacity, n) && (!pool->has_queues || pto_queues_reserve(pool));
}

static void start_at_once(pto_pool *pool)
{
    const pto_graph *graph = pool->graph;
    if (graph->max_preds > 1)
        for (int64_t i = 0; i < graph->n_nodes; i++)
            atomic_init(&pool->pending[i], graph->nodes[i].n_preds);
    pool->start = graph->ready;
    pool->n_start = graph->n_ready;
}

/* As above when the first n_completed nodes have run already. Returns how many nodes are left. */
static int64_t start_late(pto_pool *pool, int64_t n_completed)
{
    const pto_graph *graph = pool->graph;
    int64_t n_gates_completed = 0;
    pool->n_start = 0;
    pool->start = pool->ready;
    while (graph->n_own + n_gates_completed < graph->n_nodes && graph->gate_end[n_gates_completed] <= n_completed)
        n_gates_completed++;
    for (int64_t i = 0; i < graph->n_nodes; i++)
        atomic_init(&pool->pending[i], graph->nodes[i].n_preds);
    for (int64_t i = 0; i < graph->n_own + n_gates_completed; i = i + 1 == n_completed ? graph->n_own : i + 1)
        for (int64_t s = graph->nodes[i].succ; s < graph->nodes[i + 1].succ; s++)
            atomic_init(&pool->pending[graph->succ[s]], atomic_load(&pool->pending[graph->succ[s]]) - 1);
    for (int64_t i = n_completed; i < graph->n_own; i++)
        if (atomic_load(&pool->pending[i]) == 0)
            pool->ready[pool->n_start++] = (uint32_t)i;
    return graph->n_nodes - n_completed - n_gates_completed;
}

/* Worker 0's part of a run that the others may enter from here on. */
static void run_opened(pto_pool *pool)
{
    pto_run_open(pool);
    int64_t idle_since = pto_now_ns();
    for (;;) {
        bool ran = pto_worker_work(&pool->workers[0]);
        if (pto_run_over(pool))
            break;
        if (ran) {
            idle_since = pto_now_ns();
        } else if (pto_now_ns() - idle_since > PTO_SPIN_NS) {
            pto_worker_sleep(&pool->workers[0]);
            idle_since = pto_now_ns();
        } else {
            pto_pause(8);
        }
    }
    pto_run_close(pool);
}

/* Nothing is ready but what stands in its range, not even what a run that was cancelled has left. */
static void start_worker(pto_worker *w, int64_t begin, int64_t end)
{
    atomic_store(&w->range, (uint64_t)begin << 32 | (uint64_t)end);
    atomic_store(&w->top, 0);
    atomic_store(&w->bottom, 0);
    atomic_store(&w->inbox, PTO_NO_NODE);
    atomic_store(&w->heap.n, 0);
    w->block = w->block_end = 0;
}

static void run_shared(pto_pool *pool, int64_t n_left)
{
    int64_t n = pool->limit, n_start = pool->n_start;
    for (int64_t i = 0; i < n; i++)
        start_worker(&pool->workers[i], n_start * i / n, n_start * (i + 1) / n);
    if (pool->has_queues)
        pto_queues_start(pool);
    atomic_store(&pool->n_overflow, 0);
    atomic_store(&pool->remaining, n_left);
    run_opened(pool);
}

/* Worker 0 moves the copies, and is where the others look for work. */
static void run_for_rank(pto_pool *pool)
{
    for (int64_t i = 0; i < pool->limit; i++)
        start_worker(&pool->workers[i], 0, i == 0 ? pool->n_start : 0);
    if (pool->has_queues)
        pto_queues_start(pool);
    atomic_store(&pool->n_overflow, 0);
    atomic_store(&pool->remaining, pool->graph->n_nodes);
    int64_t n_start = pool->n_start;
    pool->n_start = pool->has_queues ? n_start + 1 : 1;    /* worker 0 takes none by priority, and wakes others for what is not small */
    pto_run_open(pool);
    pool->n_start = n_start;
    pto_rank_worker_work(&pool->workers[0]);
    pto_run_close(pool);
}

/* Strictly by the record's calendar, see calendar.c. */
static int32_t run_lists(pto_pool *pool, const pto_record *record)
{
    const pto_graph *graph = pool->graph;
    for (int32_t i = 0; i < pool->limit; i++)
        start_worker(&pool->workers[i], 0, 0);
    int32_t status = pto_lists_take(pool, record);
    if (status != PTO_OK)
        return status;
    for (int64_t i = 0; i < graph->n_nodes; i++)
        atomic_init(&pool->pending[i], graph->nodes[i].n_preds);
    pool->n_start = pool->limit;
    atomic_store(&pool->remaining, graph->n_nodes);
    run_opened(pool);
    return PTO_OK;
}

/* ---- entry ---- */

static bool reserve_scratch(pto_worker *worker, int64_t bytes)
{
    if (bytes <= worker->scratch_bytes)
        return true;
    int64_t rounded = (bytes + PTO_CACHE_LINE - 1) / PTO_CACHE_LINE * PTO_CACHE_LINE;
    char *scratch = aligned_alloc(PTO_CACHE_LINE, (size_t)rounded);
    if (scratch == NULL)
        return false;
    free(worker->scratch);
    worker->scratch = scratch;
    worker->scratch_bytes = rounded;
    return true;
}

/* How many workers this run gets; sleepers beyond them no longer count as such. */
static void set_limit(pto_pool *pool, int32_t limit, bool follows)
{
    pthread_mutex_lock(&pool->sleep_lock);
    int32_t n_asleep = 0;
    for (int32_t i = 0; i < limit; i++)
        n_asleep += pool->workers[i].asleep;
    pool->limit = limit;
    pool->follows = follows;
    atomic_store(&pool->n_asleep, n_asleep);
    pthread_mutex_unlock(&pool->sleep_lock);
}

static int32_t run(pto_pool *pool, const pto_record *record, const pto_done *done, uint64_t seed)
{
    pto_worker *caller = &pool->workers[0];
    int64_t n_nodes = pool->graph->n_own, n_left = pool->graph->n_nodes, n_completed = 0;
    if (pool->ranks != NULL) {
        if (!reserve_run(pool) || !pto_ranks_prepare(pool, pool->ranks))
            return PTO_E_NOMEM;
        start_at_once(pool);
        run_for_rank(pool);
        return PTO_OK;
    }
    if (seed == 0 && pool->follows)
        return n_nodes == 0 ? PTO_OK : reserve_run(pool) ? run_lists(pool, record) : PTO_E_NOMEM;
    if (seed == 0 && (pool->limit == 1 || n_nodes <= 1)) {
        run_in_order(caller, 0, false);
        return PTO_OK;
    }
    if (!reserve_run(pool))
        return PTO_E_NOMEM;
    if (seed != 0) {
        start_at_once(pool);
        return pto_run_in_random_order(caller, seed);
    }
    if (record->n_tasks - done->n_tasks <= PTO_ALONE_TASKS && record->total_cost - done->cost <= PTO_ALONE_COST) {
        n_completed = run_in_order(caller, 0, true);
        if (n_completed == n_nodes || pto_must_stop(pool))
            return PTO_OK;
    }
    if (n_completed == 0)
        start_at_once(pool);
    else
        n_left = start_late(pool, n_completed);
    run_shared(pool, n_left);
    return PTO_OK;
}

/* Take what the run needs from the record and the kernel table, or say what is wrong with them. */
static int32_t prepare(pto_pool *pool, const pto_record *record, const pto_done *done, const pto_kernel *kernels,
                       int32_t n_kernels, const pto_execute_options *options)
{
    if (record->sink.status != PTO_OK)
        return record->sink.status;
    if (record->max_kernel >= n_kernels)
        return PTO_E_ARGUMENT;
    int64_t scratch_bytes = 0;
    for (int32_t k = 0; k <= record->max_kernel; k++) {
        if (kernels[k].entry == NULL)
            return PTO_E_ARGUMENT;
        scratch_bytes = kernels[k].scratch_bytes > scratch_bytes ? kernels[k].scratch_bytes : scratch_bytes;
    }
    int32_t limit = options->threads > 0 && options->threads < pool->n_workers ? options->threads : pool->n_workers;
    for (int32_t i = 0; i < limit; i++)
        if (!reserve_scratch(&pool->workers[i], scratch_bytes))
            return PTO_E_NOMEM;
    int32_t status = pto_record_graph(record, done->n_nodes, &pool->graph);
    if (status != PTO_OK)
        return status;
    pool->record = record;
    pool->kernels = kernels;
    pool->args = record->args;
    pool->scalars = record->scalars;
    pool->node_task = record->node_task + done->n_nodes;
    pool->first_task = record->first_task;
    pool->sanitizer = options->sanitizer;
    pool->watch = pto_sanitize_task;
    pool->wall = NULL;
    if (options->wall != NULL) {
        status = pto_wall_rows(options->wall, record, &pool->wall);
        if (status != PTO_OK)
            return status;
    }
    pool->ranks = options->ranks;
    if (pool->ranks != NULL && (options->sanitizer != NULL || options->order_seed != 0 || record->kept[PTO_KEPT_RANKS] == NULL ||
                                pool->ranks->options.own_shift_bytes != record->shifted_by))
        return PTO_E_ARGUMENT;         /* the tasks of a record name the copies of one rank */
    pool->has_homes = options->places == PTO_PLACE_HOME && pool->ranks == NULL;      /* a rank has few threads, which share its tasks */
    pool->priority = options->by_priority != 0 ? record->kept[PTO_KEPT_PRIORITY] : NULL;
    pool->has_queues = pool->has_homes || pool->priority != NULL;
    set_limit(pool, limit, options->places == PTO_PLACE_CALENDAR && options->order_seed == 0);
    return PTO_OK;
}

int32_t pto_execute_held(pto_pool *pool, const pto_record *record, const pto_done *done, const pto_kernel *kernels,
                         int32_t n_kernels, const pto_execute_options *options, pto_execute_result *result)
{
    *result = (pto_execute_result){.failed_task = -1, .threads = 1};
    int32_t status = prepare(pool, record, done, kernels, n_kernels, options);
    if (status != PTO_OK)
        return status;
    atomic_store(&pool->failed_node, PTO_NO_NODE);
    pool->failed_guard = 0;
    pool->fault = (pto_fault){0};
    for (int32_t i = 0; i < pool->n_workers; i++) {
        pto_worker *worker = &pool->workers[i];
        atomic_store_explicit(&worker->n_run, 0, memory_order_relaxed);
        worker->n_done = 0;
        worker->context = (pto_context){.prints = options->prints,
                                        .print = options->prints == NULL ? pto_print_nothing : pto_print_value,
                                        .cancel = atomic_load(&pool->cancel)};
    }

    status = run(pool, record, done, options->order_seed);

    int32_t n_took_part = 0;
    for (int32_t i = 0; i < pool->n_workers; i++) {
        result->n_run += pool->workers[i].n_run;
        n_took_part += pool->workers[i].n_run > 0;
    }
    result->threads = n_took_part > 0 ? n_took_part : 1;
    uint32_t failed = atomic_load(&pool->failed_node);
    result->failed_task = failed == PTO_NO_NODE ? -1 : pool->first_task + pool->node_task[failed];
    result->failed_guard = pool->failed_guard;
    result->fault = pool->fault;
    if (status != PTO_OK)
        return status;
    if (failed != PTO_NO_NODE)
        return options->sanitizer != NULL && options->sanitizer->misuse_at == failed ? PTO_E_MISUSE : PTO_E_KERNEL;
    return result->n_run == record->n_tasks - done->n_tasks ? PTO_OK : PTO_E_CANCELLED;
}

int32_t pto_execute(pto_pool *pool, const pto_record *record, const pto_kernel *kernels, int32_t n_kernels,
                    const pto_execute_options *options, pto_execute_result *result)
{
    static const pto_done nothing = {0};
    if (!pto_pool_hold(pool, options->cancel)) {
        *result = (pto_execute_result){.failed_task = -1, .threads = 1};
        return PTO_E_CANCELLED;
    }
    if (options->wall != NULL)
        pto_wall_start(options->wall);
    if (options->ranks != NULL)
        pto_ranks_start(options->ranks);
    int32_t status = pto_execute_held(pool, record, &nothing, kernels, n_kernels, options, result);
    if (status == PTO_OK && options->ranks != NULL)
        pto_ranks_spread(options->ranks);
    pto_pool_release(pool);
    return status;
}
