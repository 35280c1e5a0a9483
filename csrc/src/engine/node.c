/* node.c: run one node of the graph, see node.h. */
#include "node.h"

#include "wait.h"
#include "wall.h"

void pto_note_failure(pto_worker *worker, uint32_t node, int32_t code)
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

int32_t pto_call_by_the_clock(pto_worker *worker, uint32_t at)
{
    int64_t start_ns = pto_now_ns();
    int32_t code = pto_call_kernel(worker, at);
    pto_wall_note(&worker->pool->wall[worker->pool->node_task[at]], start_ns, worker->index);
    return code;
}

int32_t pto_call_for_rank(pto_worker *worker, uint32_t at)
{
    pto_pool *pool = worker->pool;
    if (pto_side_of(worker, at) == PTO_SIDE_PASS)
        return 0;
    atomic_fetch_add(&pool->ranks->n_busy, 1);
    atomic_store(&pool->ranks->runs[worker->index], pool->record->task_site[pool->node_task[at]] + 1);
    int32_t code = pool->wall != NULL ? pto_call_by_the_clock(worker, at) : pto_call_kernel(worker, at);
    atomic_store(&pool->ranks->runs[worker->index], 0);
    atomic_fetch_sub(&pool->ranks->n_busy, 1);
    return code;
}

static bool run_plain(pto_worker *worker, uint32_t at)
{
    return pto_run_node(worker, at, PTO_PLAIN);
}

static bool run_watched(pto_worker *worker, uint32_t at)
{
    return pto_run_node(worker, at, PTO_WATCHED);
}

static bool run_timed(pto_worker *worker, uint32_t at)
{
    return pto_run_node(worker, at, PTO_TIMED);
}

static bool run_ranked(pto_worker *worker, uint32_t at)
{
    return pto_run_node(worker, at, PTO_RANKED);
}

pto_run_node_fn pto_run_node_of(const pto_pool *pool)
{
    return pool->ranks != NULL ? run_ranked : pool->sanitizer != NULL ? run_watched : pool->wall != NULL ? run_timed : run_plain;
}
