/* ranks.c: run one rank's part of a plan, see ranks.h.

   The graph has the tasks of all ranks. Those of others pass at once, so that what a task of this rank waits for through them holds. */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../collections/array.h"

pto_ranks *pto_ranks_new(const pto_ranks_options *options)
{
    pto_ranks *ranks = calloc(1, sizeof *ranks);
    if (ranks == NULL)
        return NULL;
    ranks->options = *options;
    if (!PTO_RESERVE(ranks->n_copies, ranks->copies_capacity, 2 * (int64_t)options->n_ranks)) {
        free(ranks);
        return NULL;
    }
    pthread_mutex_init(&ranks->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
#if !defined(__APPLE__)
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
#endif
    pthread_cond_init(&ranks->wake, &clock);
    pthread_condattr_destroy(&clock);
    return ranks;
}

void pto_ranks_free(pto_ranks *ranks)
{
    if (ranks == NULL)
        return;
    pthread_mutex_destroy(&ranks->lock);
    pthread_cond_destroy(&ranks->wake);
    free(ranks->runs);
    free(ranks->kept);
    free(ranks->open);
    free(ranks->requests);
    free(ranks->statuses);
    free(ranks->done);
    free(ranks->side);
    free(ranks->order);
    free(ranks->n_copies);
    free(ranks->ready);
    free(ranks->given);
    free(ranks->ended);
    free(ranks->todo);
    free(ranks);
}

void pto_ranks_start(pto_ranks *ranks)
{
    memset(ranks->n_copies, 0, 2 * (size_t)ranks->options.n_ranks * sizeof *ranks->n_copies);
    if (ranks->options.sent_bytes != NULL)
        memset(ranks->options.sent_bytes, 0, (size_t)ranks->options.n_ranks * sizeof *ranks->options.sent_bytes);
    ranks->n_ready = ranks->n_open = 0;
    ranks->error = 0;
    ranks->was_woken = false;
    atomic_store(&ranks->n_waiting, 0);
    atomic_store(&ranks->n_busy, 0);
}

int32_t pto_ranks_keep(pto_ranks *ranks, int64_t key, const void *request)
{
    int64_t capacity = ranks->kept_capacity;
    if (key < 0 || !PTO_RESERVE(ranks->kept, ranks->kept_capacity, key + 1))
        return PTO_E_NOMEM;
    memset(ranks->kept + capacity, 0, (size_t)(ranks->kept_capacity - capacity) * sizeof *ranks->kept);
    ranks->kept[key] = 0;
    memcpy(&ranks->kept[key], request, (size_t)ranks->options.request_bytes);
    return PTO_OK;
}

void pto_ranks_forget(pto_ranks *ranks)
{
    if (ranks->kept != NULL)
        memset(ranks->kept, 0, (size_t)ranks->kept_capacity * sizeof *ranks->kept);
    ranks->n_open = 0;
}

int64_t pto_ranks_under_way(const pto_ranks *ranks, const pto_transfer **out)
{
    *out = ranks->open;
    return ranks->n_open;
}

int32_t pto_ranks_error(const pto_ranks *ranks)
{
    return ranks->error;
}

int32_t pto_ranks_runs(pto_ranks *ranks)
{
    int32_t site = 0;
    pthread_mutex_lock(&ranks->lock);
    for (int64_t i = 0; i < ranks->runs_capacity && site == 0; i++)
        site = atomic_load(&ranks->runs[i]);
    pthread_mutex_unlock(&ranks->lock);
    return site - 1;
}

/* ---- what nodes are to this rank ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool is_empty(const pto_arg *args)
{
    return least(args[0].extent[0], args[1].extent[0]) <= 0 || least(args[0].extent[1], args[1].extent[1]) <= 0;
}

static bool is_small(const pto_ranks *ranks, const pto_graph_node *node, const pto_arg *args, int64_t n_args)
{
    int64_t bytes = 0;
    if (ranks->options.is_move[node->kernel] == 0)
        return false;
    for (int64_t i = 0; i < n_args; i++)
        bytes += args[i].extent[0] * args[i].extent[1] * args[i].elem_bytes;
    return bytes <= PTO_SMALL_BYTES;
}

static pto_side side_of(pto_ranks *ranks, const pto_pool *pool, int64_t at)
{
    const pto_ranks_options *o = &ranks->options;
    const pto_record *record = pool->record;
    const pto_graph_node *node = &pool->graph->nodes[at];
    int64_t task = pool->node_task[at];
    int64_t on = record->kept[PTO_KEPT_RANKS][task], rank = on % 65536 - 1, source = on / 65536 - 1;
    const pto_arg *args = pool->args + node->arg;
    int64_t n_args = record->arg_begin[task + 1] - record->arg_begin[task];
    int32_t own = o->own_rank == NULL ? -1 : o->own_rank[record->task_site[task]];
    if (own >= 0 && rank == source)
        rank = rank == own ? o->rank : -1;
    else if (source >= 0 && source != rank && (source == o->rank || rank == o->rank)) {
        if (is_empty(args))
            return PTO_SIDE_PASS;
        ranks->order[at] = ranks->n_copies[source == o->rank ? rank : o->n_ranks + source]++;
        return PTO_SIDE_MOVE;
    }
    return rank != o->rank ? PTO_SIDE_PASS : is_small(ranks, node, args, n_args) ? PTO_SIDE_SMALL : PTO_SIDE_RUN;
}

/* Another thread may look at them. */
static bool reserve_runs(pto_ranks *ranks, int32_t n_workers)
{
    pthread_mutex_lock(&ranks->lock);
    bool is_done = PTO_RESERVE(ranks->runs, ranks->runs_capacity, n_workers);
    for (int64_t i = 0; i < ranks->runs_capacity; i++)
        atomic_store(&ranks->runs[i], 0);
    pthread_mutex_unlock(&ranks->lock);
    return is_done;
}

bool pto_ranks_prepare(pto_pool *pool, pto_ranks *ranks)
{
    int64_t n = pool->graph->n_nodes, n_moves = 0;
    if (!reserve_runs(ranks, pool->limit) || !PTO_RESERVE(ranks->side, ranks->side_capacity, n) || !PTO_RESERVE(ranks->order, ranks->order_capacity, n) ||
        !PTO_RESERVE(ranks->todo, ranks->todo_capacity, n))
        return false;
    for (int64_t i = 0; i < n; i++) {
        ranks->side[i] = pool->graph->nodes[i].kernel < 0 ? PTO_SIDE_PASS : (uint8_t)side_of(ranks, pool, i);
        n_moves += ranks->side[i] == PTO_SIDE_MOVE;
    }
    return PTO_RESERVE(ranks->ready, ranks->ready_capacity, n_moves) && PTO_RESERVE(ranks->given, ranks->given_capacity, n_moves) &&
           PTO_RESERVE(ranks->ended, ranks->ended_capacity, n_moves) &&
           (ranks->options.start == NULL ||
            (PTO_RESERVE(ranks->open, ranks->open_capacity, n_moves) && PTO_RESERVE(ranks->done, ranks->done_capacity, n_moves) &&
             PTO_RESERVE(ranks->requests, ranks->requests_capacity, n_moves * ranks->options.request_bytes) &&
             PTO_RESERVE(ranks->statuses, ranks->statuses_capacity, n_moves * ranks->options.status_bytes)));
}

void pto_ranks_spread(const pto_ranks *ranks)
{
    for (int32_t i = 0; i < ranks->options.n_spread; i++) {
        const pto_spread *spread = &ranks->options.spread[i];
        const char *own = spread->data + ranks->options.rank * spread->copy_bytes;
        for (int32_t rank = 0; rank < ranks->options.n_ranks; rank++)
            if (rank != ranks->options.rank)
                memcpy(spread->data + rank * spread->copy_bytes, own, (size_t)spread->copy_bytes);
    }
}

/* ---- running ---- */

void pto_ranks_defer(pto_worker *worker, uint32_t at)
{
    pto_pool *pool = worker->pool;
    pto_ranks *ranks = pool->ranks;
    int64_t task = pool->node_task[at], on = pool->record->kept[PTO_KEPT_RANKS][task];
    int32_t rank = (int32_t)(on % 65536 - 1), source = (int32_t)(on / 65536 - 1);
    const pto_arg *args = pool->args + pool->graph->nodes[at].arg;
    bool receives = rank == ranks->options.rank;
    const pto_arg *arg = &args[receives];
    pto_transfer transfer = {.data = arg->data, .node = at, .order = ranks->order[at], .peer = receives ? source : rank,
                             .receives = receives, .elem_bytes = arg->elem_bytes, .site = pool->record->task_site[task]};
    for (int dim = 0; dim < PTO_RANK; dim++) {
        transfer.extent[dim] = least(args[0].extent[dim], args[1].extent[dim]);
        transfer.stride[dim] = arg->stride[dim];
    }
    bool is_run = (arg->stride[1] == 1 || transfer.extent[1] == 1) && (arg->stride[0] == transfer.extent[1] || transfer.extent[0] == 1);
    transfer.bytes = is_run ? transfer.extent[0] * transfer.extent[1] * arg->elem_bytes : 0;
    transfer.key = (transfer.order * 2 + receives) * ranks->options.n_ranks + transfer.peer;
    pthread_mutex_lock(&ranks->lock);
    ranks->ready[ranks->n_ready++] = transfer;
    atomic_store(&ranks->n_waiting, ranks->n_ready);
    if (ranks->is_asleep)
        pthread_cond_signal(&ranks->wake);
    pthread_mutex_unlock(&ranks->lock);
}

/* ---- worker 0 alone ---- */

int64_t pto_ranks_begin(pto_ranks *ranks)
{
    const pto_ranks_options *o = &ranks->options;
    if (atomic_load(&ranks->n_waiting) == 0)
        return 0;
    pthread_mutex_lock(&ranks->lock);
    pto_transfer *ready = ranks->ready;
    int64_t capacity = ranks->ready_capacity, n = ranks->n_ready, n_given = 0;
    ranks->ready = ranks->given;
    ranks->ready_capacity = ranks->given_capacity;
    ranks->given = ready;
    ranks->given_capacity = capacity;
    ranks->n_ready = 0;
    atomic_store(&ranks->n_waiting, 0);
    pthread_mutex_unlock(&ranks->lock);
    for (int64_t i = 0; i < n; i++) {
        const pto_transfer *t = &ready[i];
        if (o->sent_bytes != NULL && !t->receives)
            o->sent_bytes[t->peer] += t->extent[0] * t->extent[1] * t->elem_bytes;
        if (o->start == NULL || t->key >= ranks->kept_capacity || ranks->kept[t->key] == 0) {
            ready[n_given++] = *t;
            continue;
        }
        char *request = ranks->requests + ranks->n_open * o->request_bytes;
        memcpy(request, &ranks->kept[t->key], (size_t)o->request_bytes);
        int32_t error = o->start(request);
        if (error != 0) {
            ranks->error = error;
            break;
        }
        ranks->open[ranks->n_open++] = *t;
    }
    return n_given;
}

int64_t pto_ranks_test(pto_ranks *ranks)
{
    const size_t bytes = (size_t)ranks->options.request_bytes;
    if (ranks->n_open == 0)
        return 0;
    int32_t n = 0;
    int32_t error = ranks->options.test((int32_t)ranks->n_open, ranks->requests, &n, ranks->done, ranks->statuses);
    if (error != 0) {
        ranks->error = error;
        return 0;
    }
    if (n <= 0)
        return 0;
    for (int32_t i = 0; i < n; i++) {
        ranks->ended[i] = ranks->open[ranks->done[i]].node;
        ranks->open[ranks->done[i]].node = -1;
    }
    int64_t left = 0;
    for (int64_t i = 0; i < ranks->n_open; i++)
        if (ranks->open[i].node >= 0) {
            if (left != i) {
                ranks->open[left] = ranks->open[i];
                memcpy(ranks->requests + (size_t)left * bytes, ranks->requests + (size_t)i * bytes, bytes);
            }
            left++;
        }
    ranks->n_open = left;
    return n;
}

void pto_ranks_sleep(pto_ranks *ranks, int64_t most_ns)
{
    struct timespec until;
#if defined(__APPLE__)
    clock_gettime(CLOCK_REALTIME, &until);
#else
    clock_gettime(CLOCK_MONOTONIC, &until);
#endif
    until.tv_nsec += most_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&ranks->lock);
    ranks->is_asleep = true;
    while (ranks->n_ready == 0 && !ranks->was_woken && pthread_cond_timedwait(&ranks->wake, &ranks->lock, &until) == 0)
        ;
    ranks->is_asleep = ranks->was_woken = false;
    pthread_mutex_unlock(&ranks->lock);
}

void pto_ranks_wake(pto_ranks *ranks)
{
    pthread_mutex_lock(&ranks->lock);
    ranks->was_woken = true;
    if (ranks->is_asleep)
        pthread_cond_signal(&ranks->wake);
    pthread_mutex_unlock(&ranks->lock);
}
