/* sim_service.c: workers that dispatch and retire, see sim_service.h.

   What a worker may do has been wanted since some time: a retirement since the task's end, a dispatch since the task was ready and an
   executor of the worker that may run it was idle. A worker does what has been wanted longest; of what is as old, it retires before it
   dispatches, and takes the lowest node. What it has begun, it ends. Workers that share a queue choose in the order of their numbers,
   and steal once each has looked at its own. */
#include "sim_service.h"

enum { NONE = -1 };

typedef struct request {
    int64_t since;
    int64_t node;              /* NONE: there is nothing to do */
    int64_t executor;          /* NONE: to be retired */
    int64_t queue;
} request;

static bool shares_queues(const pto_sim_service *s)
{
    return s->options->is_shared || s->options->steals;
}

void pto_sim_service_init(pto_sim_service *s, pto_sim_executors *executors)
{
    pto_sim_pools *pools = executors->pools;
    *s = (pto_sim_service){.options = pools->options, .clock = pools->clock, .nodes = pools->nodes, .trace = pools->trace, .pools = pools,
                           .executors = executors};
}

static bool open_servers(pto_sim_service *s)
{
    s->servers = calloc((size_t)s->pools->n_workers, sizeof *s->servers);
    if (s->servers == NULL)
        return pto_sim_fail(s->clock);
    for (s->n_servers = 0; s->n_servers < s->pools->n_workers; s->n_servers++)
        s->servers[s->n_servers] = (pto_sim_server){.node = NONE, .executor = NONE};
    return true;
}

void pto_sim_service_close(pto_sim_service *s)
{
    for (int64_t i = 0; i < s->n_servers; i++) {
        free(s->servers[i].ended.data);
        free(s->servers[i].wanted.data);
    }
    free(s->servers);
    free(s->asked);
}

bool pto_sim_service_retire(pto_sim_service *s, int64_t executor, int64_t node)
{
    int64_t worker = s->pools->executors[executor].worker;
    pto_sim_list_worker(s->pools, worker);
    return pto_sim_heap_push(&s->servers[worker].ended, (pto_sim_entry){s->clock->now, node}) || pto_sim_fail(s->clock);
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
static request request_of(const pto_sim_service *s, int64_t worker, int64_t pool, int64_t queue)
{
    int64_t n = s->pools->pools[pool].n_executors, first = s->pools->pools[pool].first_executor + worker * n;
    pto_sim_rank head = pto_sim_head(s->pools, &s->pools->queues[queue]);
    int64_t executor = head.node < 0 ? NONE : pto_sim_lowest_idle(s->pools, first, n);
    if (executor < 0)
        return (request){.node = NONE};
    int64_t idle_since = s->clock->now;
    for (int64_t at = executor; at >= 0; at = pto_sim_lowest_idle(s->pools, at + 1, first + n - at - 1))
        idle_since = s->pools->executors[at].since < idle_since ? s->pools->executors[at].since : idle_since;
    return (request){head.ready > idle_since ? head.ready : idle_since, head.node, executor, queue};
}

/* The dispatch that has been wanted longest where workers share queues or tasks: of its own queues, or (steals) of the heads that go
   first of all workers'. */
static request dispatch_request(const pto_sim_service *s, int64_t worker, bool steals)
{
    request best = {.node = NONE};
    for (int64_t pool = 0; pool < s->pools->n_pools; pool++) {
        if (s->pools->pools[pool].n_standing == 0)
            continue;
        int64_t own = s->options->is_shared ? pool : pool * s->pools->n_workers + worker;
        request found = request_of(s, worker, pool, steals ? pto_sim_best_queue(s->pools, pool) : own);
        if (found.node >= 0 && is_older(found, best))
            best = found;
    }
    return best;
}

/* What a queue asks for has changed, or may have: a task is ready, was taken, or an executor is idle. */
static bool ask(pto_sim_service *s, int64_t queue)
{
    int64_t worker = queue % s->pools->n_workers;
    request found = request_of(s, worker, s->pools->queues[queue].pool, queue);
    pto_sim_entry asked = {found.since, found.node};
    if (!PTO_RESERVE(s->asked, s->asked_capacity, queue + 1))
        return pto_sim_fail(s->clock);
    while (s->n_asked <= queue)
        s->asked[s->n_asked++] = (pto_sim_entry){0, NONE};
    if (asked.id == s->asked[queue].id && asked.time == s->asked[queue].time)
        return true;
    s->asked[queue] = asked;
    return asked.id < 0 || pto_sim_heap_push(&s->servers[worker].wanted, asked) || pto_sim_fail(s->clock);
}

static bool ask_all(pto_sim_service *s)
{
    for (int64_t i = 0; i < s->pools->n_to_dispatch; i++) {
        s->pools->queues[s->pools->to_dispatch[i]].is_listed = false;
        if (!shares_queues(s) && !ask(s, s->pools->to_dispatch[i]))
            return false;
    }
    s->pools->n_to_dispatch = 0;
    return true;
}

/* Of its own queues, without looking at all of them. */
static request oldest_dispatch(pto_sim_service *s, int64_t worker)
{
    pto_sim_heap *wanted = &s->servers[worker].wanted;
    while (wanted->n > 0) {
        pto_sim_entry first = wanted->data[0];
        int64_t queue = first.id < s->nodes->first ? NONE : pto_sim_at(s->nodes, first.id)->queue;
        if (queue >= 0 && s->asked[queue].id == first.id && s->asked[queue].time == first.time)
            return request_of(s, worker, s->pools->queues[queue].pool, queue);
        pto_sim_heap_pop(wanted);
    }
    return (request){.node = NONE};
}

static request own_request(pto_sim_service *s, int64_t worker)
{
    const pto_sim_heap *ended = &s->servers[worker].ended;
    request best = shares_queues(s) ? dispatch_request(s, worker, false) : oldest_dispatch(s, worker);
    if (ended->n == 0)
        return best;
    request retirement = {ended->data[0].time, ended->data[0].id, NONE, NONE};
    return is_older(retirement, best) ? retirement : best;
}

/* ---- doing it ---- */

static bool serve(pto_sim_service *s, int64_t worker, request wanted)
{
    pto_sim_server *server = &s->servers[worker];
    bool retires = wanted.executor < 0;
    if (wanted.node < 0)
        return true;
    if (retires) {
        pto_sim_heap_pop(&server->ended);
    } else {
        pto_sim_take_head(s->pools, &s->pools->queues[wanted.queue]);
        pto_sim_engage(s->executors, wanted.executor, wanted.node);
    }
    server->node = wanted.node;
    server->executor = wanted.executor;
    if (!retires && !shares_queues(s) && !ask(s, wanted.queue))
        return false;
    int64_t end = pto_sim_add(s->clock->now, retires ? s->options->retire_cycles : s->options->dispatch_cycles);
    return pto_sim_clock_add(s->clock, PTO_SIM_SERVICE_ENDS, end, worker);
}

static bool serve_all(pto_sim_service *s)
{
    for (int64_t worker = 0; worker < s->pools->n_workers; worker++)
        if (s->servers[worker].node < 0 && !serve(s, worker, own_request(s, worker)))
            return false;
    /* whoever is free now found no task of its own to dispatch, so what it finds is another worker's */
    for (int64_t worker = 0; s->options->steals && !s->options->is_shared && worker < s->pools->n_workers; worker++)
        if (s->servers[worker].node < 0 && !serve(s, worker, dispatch_request(s, worker, true)))
            return false;
    return true;
}

bool pto_sim_serve(pto_sim_service *s)
{
    bool shares = shares_queues(s);
    if ((s->servers == NULL && !open_servers(s)) || !ask_all(s) || (shares && s->pools->n_to_serve > 0 && !serve_all(s)))
        return false;
    for (int64_t i = 0; i < s->pools->n_to_serve; i++) {
        int64_t worker = s->pools->to_serve[i];
        s->pools->is_to_serve[worker] = false;
        if (!shares && s->servers[worker].node < 0 && !serve(s, worker, own_request(s, worker)))
            return false;
    }
    s->pools->n_to_serve = 0;
    return true;
}

int64_t pto_sim_end_service(pto_sim_service *s)
{
    int64_t worker = pto_sim_clock_take(s->clock, PTO_SIM_SERVICE_ENDS);
    pto_sim_server *server = &s->servers[worker];
    int64_t node = server->node, executor = server->executor;
    server->node = server->executor = NONE;
    pto_sim_list_worker(s->pools, worker);
    if (executor >= 0) {
        pto_sim_begin(s->executors, executor);
        return NONE;
    }
    if (s->trace->is_kept)
        s->trace->complete[pto_sim_at(s->nodes, node)->task] = s->clock->now;
    return node;
}
