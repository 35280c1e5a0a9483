/* sim_serve.c: AICPUs that take time to dispatch and to retire tasks: each does one thing after another.

   What a worker may do has been wanted since some time: a retirement since the task's end, a dispatch since the task was ready and an
   executor of the worker that may run it was idle. It does what has been wanted longest; of what is as old, it retires before it
   dispatches, and takes the lowest node. What it has begun, it ends. Workers that share a queue choose in the order of their numbers,
   and steal once each has looked at its own. */
#include "sim.h"

enum { NONE = -1 };

typedef struct request {
    int64_t since;
    int64_t node;              /* NONE: there is nothing to do */
    int64_t executor;          /* NONE: to be retired */
    int64_t queue;
} request;

static bool shares_queues(const pto_sim *s)
{
    return s->options.is_shared || s->options.steals;
}

bool pto_sim_open_servers(pto_sim *s)
{
    size_t n = (size_t)s->options.n_workers;
    if (s->options.dispatch_cycles == 0 && s->options.retire_cycles == 0)
        return true;
    s->servers = malloc(n * sizeof *s->servers);
    s->to_serve = malloc(n * sizeof *s->to_serve);
    if (s->servers == NULL || s->to_serve == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        s->servers[i] = (pto_sim_server){.node = NONE, .executor = NONE};
    return true;
}

void pto_sim_close_servers(pto_sim *s)
{
    for (int64_t i = 0; s->servers != NULL && i < s->options.n_workers; i++) {
        free(s->servers[i].ended.data);
        free(s->servers[i].wanted.data);
    }
    free(s->servers);
    free(s->to_serve);
    free(s->serving.data);
}

void pto_sim_list_server(pto_sim *s, int64_t worker)
{
    if (s->servers[worker].listed)
        return;
    s->servers[worker].listed = true;
    s->to_serve[s->n_to_serve++] = (int32_t)worker;
}

bool pto_sim_want_retirement(pto_sim *s, int64_t worker, int64_t node)
{
    pto_sim_list_server(s, worker);
    return pto_sim_heap_push(&s->servers[worker].ended, (pto_sim_entry){s->now, node}) || pto_sim_fail(s);
}

/* ---- what a worker is to do next ---- */

static bool is_older(request a, request b)
{
    if (b.node < 0 || a.since != b.since)
        return b.node < 0 || a.since < b.since;
    if ((a.executor < 0) != (b.executor < 0))
        return a.executor < 0;
    return a.node < b.node;
}

/* A dispatch of the head of a queue to an executor of the worker in this pool. */
static request request_of(const pto_sim *s, int64_t worker, int64_t pool, int64_t queue)
{
    int64_t n = s->pools[pool].n_executors, first = s->pools[pool].first_executor + worker * n;
    pto_sim_rank head = pto_sim_head(s, &s->queues[queue]);
    int64_t executor = head.node < 0 ? NONE : pto_sim_lowest_idle(s, first, n);
    if (executor < 0)
        return (request){.node = NONE};
    int64_t idle_since = s->now;
    for (int64_t at = executor; at >= 0; at = pto_sim_lowest_idle(s, at + 1, first + n - at - 1))
        idle_since = s->executors[at].since < idle_since ? s->executors[at].since : idle_since;
    return (request){head.ready > idle_since ? head.ready : idle_since, head.node, executor, queue};
}

/* The dispatch that has been wanted longest where workers share queues or tasks: of its own queues, or (steals) of the heads that go
   first of all workers'. */
static request dispatch_request(const pto_sim *s, int64_t worker, bool steals)
{
    request best = {.node = NONE};
    for (int64_t pool = 0; pool < s->n_pools; pool++) {
        if (s->pools[pool].n_standing == 0)
            continue;
        int64_t own = s->options.is_shared ? pool : pool * s->options.n_workers + worker;
        request found = request_of(s, worker, pool, steals ? pto_sim_best_queue(s, pool) : own);
        if (found.node >= 0 && is_older(found, best))
            best = found;
    }
    return best;
}

/* What a queue asks for has changed, or may have: a task is ready, was taken, or an executor is idle. */
static bool ask(pto_sim *s, int64_t queue)
{
    pto_sim_queue *q = &s->queues[queue];
    int64_t worker = queue % s->options.n_workers;
    request found = request_of(s, worker, q->pool, queue);
    pto_sim_entry asked = {found.since, found.node};
    if (asked.id == q->asked.id && asked.key == q->asked.key)
        return true;
    q->asked = asked;
    return asked.id < 0 || pto_sim_heap_push(&s->servers[worker].wanted, asked) || pto_sim_fail(s);
}

static bool ask_all(pto_sim *s)
{
    for (int64_t i = 0; i < s->n_to_dispatch; i++) {
        s->queues[s->to_dispatch[i]].listed = false;
        if (!shares_queues(s) && !ask(s, s->to_dispatch[i]))
            return false;
    }
    s->n_to_dispatch = 0;
    return true;
}

/* Of its own queues, without looking at all of them. */
static request oldest_dispatch(pto_sim *s, int64_t worker)
{
    pto_sim_heap *wanted = &s->servers[worker].wanted;
    while (wanted->n > 0) {
        pto_sim_entry first = wanted->data[0];
        int64_t queue = first.id < s->ring.first ? NONE : pto_sim_at(&s->ring, first.id)->queue;
        if (queue >= 0 && s->queues[queue].asked.id == first.id && s->queues[queue].asked.key == first.key)
            return request_of(s, worker, s->queues[queue].pool, queue);
        pto_sim_heap_pop(wanted);
    }
    return (request){.node = NONE};
}

static request own_request(pto_sim *s, int64_t worker)
{
    const pto_sim_heap *ended = &s->servers[worker].ended;
    request best = shares_queues(s) ? dispatch_request(s, worker, false) : oldest_dispatch(s, worker);
    if (ended->n == 0)
        return best;
    request retirement = {ended->data[0].key, ended->data[0].id, NONE, NONE};
    return is_older(retirement, best) ? retirement : best;
}

/* ---- doing it ---- */

static bool serve(pto_sim *s, int64_t worker, request wanted)
{
    pto_sim_server *server = &s->servers[worker];
    bool retires = wanted.executor < 0;
    if (wanted.node < 0)
        return true;
    if (retires) {
        pto_sim_heap_pop(&server->ended);
    } else {
        pto_sim_take_head(s, &s->queues[wanted.queue]);
        pto_sim_engage(s, wanted.executor, wanted.node);
    }
    server->node = wanted.node;
    server->executor = wanted.executor;
    if (!retires && !shares_queues(s) && !ask(s, wanted.queue))
        return false;
    int64_t end = pto_sim_add(s->now, retires ? s->options.retire_cycles : s->options.dispatch_cycles);
    return pto_sim_heap_push(&s->serving, (pto_sim_entry){end, worker}) || pto_sim_fail(s);
}

static bool serve_all(pto_sim *s)
{
    for (int64_t worker = 0; worker < s->options.n_workers; worker++)
        if (s->servers[worker].node < 0 && !serve(s, worker, own_request(s, worker)))
            return false;
    /* whoever is free now found no task of its own to dispatch, so what it finds is another worker's */
    for (int64_t worker = 0; s->options.steals && !s->options.is_shared && worker < s->options.n_workers; worker++)
        if (s->servers[worker].node < 0 && !serve(s, worker, dispatch_request(s, worker, true)))
            return false;
    return true;
}

bool pto_sim_serve(pto_sim *s)
{
    bool shares = shares_queues(s);
    if (!ask_all(s) || (shares && s->n_to_serve > 0 && !serve_all(s)))
        return false;
    for (int64_t i = 0; i < s->n_to_serve; i++) {
        int64_t worker = s->to_serve[i];
        s->servers[worker].listed = false;
        if (!shares && s->servers[worker].node < 0 && !serve(s, worker, own_request(s, worker)))
            return false;
    }
    s->n_to_serve = 0;
    return true;
}

bool pto_sim_end_service(pto_sim *s)
{
    int64_t worker = pto_sim_heap_pop(&s->serving).id;
    pto_sim_server *server = &s->servers[worker];
    int64_t node = server->node, executor = server->executor;
    server->node = server->executor = NONE;
    pto_sim_list_server(s, worker);
    if (executor >= 0)
        return pto_sim_begin(s, executor);
    if (s->options.keep_trace)
        s->complete[pto_sim_at(&s->ring, node)->task] = s->now;
    s->last_completion = s->now;
    pto_sim_complete(s, node);
    return s->status == PTO_OK;
}
