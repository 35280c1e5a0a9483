/* sim_executors.c: what executors do, see sim_executors.h. */
#include "sim_executors.h"

enum { NONE = -1 };

bool pto_sim_executors_init(pto_sim_executors *x, const pto_sim_options *options, pto_sim_pools *pools)
{
    *x = (pto_sim_executors){.options = options, .clock = pools->clock, .nodes = pools->nodes, .trace = pools->trace, .pools = pools};
    pto_sim_memory_init(&x->memory, options->bytes_per_cycle);
    int64_t n = options->n_starts;
    if (n == 0)
        return true;
    x->starts = n <= PTRDIFF_MAX / (int64_t)sizeof *x->starts ? malloc((size_t)n * sizeof *x->starts) : NULL;
    if (x->starts != NULL)
        memcpy(x->starts, options->starts, (size_t)n * sizeof *x->starts);
    return x->starts != NULL;
}

void pto_sim_executors_close(pto_sim_executors *x)
{
    free(x->starts);
    pto_sim_memory_close(&x->memory);
}

/* Enter in the trace what held a task last, of all that happened until it was dispatched: the latest decides, of equal times the first of
   submission, edge, release, start, executor. Its held_by has the last edge's source. */
static void explain(const pto_sim_executors *x, const pto_sim_executor *e, const pto_sim_node *n)
{
    const pto_sim_trace *trace = x->trace;
    int64_t now = x->clock->now, task = n->task, latest = trace->submit[task], by = trace->front_by[task];
    uint8_t held = trace->front_why[task];
    if (trace->ready[task] > latest) {
        latest = trace->ready[task];
        held = PTO_HELD_EDGE;
        by = trace->held_by[task];
    }
    if (trace->released[task] > latest) {
        latest = trace->released[task];
        held = PTO_HELD_RELEASE;
        by = NONE;
    }
    if (x->clock->start_time > latest) {
        latest = x->clock->start_time;
        held = PTO_HELD_START;
        by = NONE;
    }
    if (now > latest && e->since < now) {
        held = PTO_HELD_DISPATCH;
        by = NONE;
    } else if (now > latest) {
        bool is_passed_over = x->pools->calendar != NULL && e->last_task >= 0 && trace->start[e->last_task] > latest;
        held = is_passed_over ? PTO_HELD_CALENDAR : PTO_HELD_EXECUTOR;
        by = e->last_task;
    }
    trace->held[task] = held;
    trace->held_by[task] = by;
}

static inline bool is_on_first_link(const pto_sim_executors *x, int64_t node)      /* of its route, or it has none */
{
    return !x->nodes->keeps_routes || pto_sim_route_of(x->nodes, node)->from < 0;
}

/* A link takes a copy: a buffer of its far end, if the copy goes on from there. */
static void take_link(pto_sim_executors *x, int64_t at, int64_t node)
{
    pto_sim_route *route = pto_sim_route_of(x->nodes, node);
    const pto_sim_executor *e = &x->pools->executors[at];
    if (route->from < 0)
        route->ready = pto_sim_at(x->nodes, node)->ready;
    route->held_by = e->since > route->ready ? (int32_t)e->last_task : NONE;
    if (x->pools->taken != NULL && pto_sim_is_forwarded(x->pools, node))
        x->pools->taken[e->queue]++;
}

bool pto_sim_trace_hop(pto_sim_executors *x, int64_t at)
{
    pto_sim_trace *trace = x->trace;
    const pto_sim_executor *e = &x->pools->executors[at];
    const pto_sim_route *route = pto_sim_route_of(x->nodes, e->running);
    if (!trace->is_kept || route->target < 0)
        return true;
    if (!PTO_RESERVE(trace->hops, trace->hops_capacity, trace->n_hops + 1))
        return pto_sim_fail(x->clock);
    trace->hops[trace->n_hops++] = (pto_sim_hop){.task = pto_sim_at(x->nodes, e->running)->task, .executor = at, .ready = route->ready,
                                                 .start = e->since, .end = x->clock->now, .held_by = route->held_by};
    return true;
}

/* q: the queue that the executor serves. */
static inline void engage(pto_sim_executors *x, pto_sim_queue *q, int64_t at, int64_t node)
{
    pto_sim_pools *p = x->pools;
    int64_t now = x->clock->now;
    pto_sim_executor *e = &p->executors[at];
    pto_sim_pool *pool = &p->pools[q->pool];
    pto_sim_take(p, pool);
    if (__builtin_expect(p->front != NULL, 0))
        pto_sim_front_ready(p->front, node, true);
    if (now > e->since) {
        int64_t late = pto_sim_late(p, pool);
        e->waiting += pto_sim_waited(p, q, late) - e->idle_waited;
        e->late += late - e->idle_late;
    }
    if (__builtin_expect(x->nodes->keeps_routes, 0))
        take_link(x, at, node);
    if (x->trace->is_kept && is_on_first_link(x, node))
        explain(x, e, pto_sim_at(x->nodes, node));
    pto_sim_set_idle(p, at, false);
    q->n_idle--;
    e->running = node;
    e->since = now;
    e->tasks_run++;
}

/* The task has a start, and would begin too early: what comes before, dispatching it too, goes on meanwhile. So a calendar that a
   simulation gave takes the same time again. */
static bool wait_for_start(pto_sim_executors *x, int64_t executor, int64_t task)
{
    if (x->trace->is_kept) {
        x->trace->held[task] = PTO_HELD_CALENDAR;
        x->trace->held_by[task] = NONE;
    }
    return pto_sim_clock_add(x->clock, PTO_SIM_START_COMES, x->starts[task], executor);
}

static inline bool begin(pto_sim_executors *x, int64_t at)
{
    int64_t now = x->clock->now;
    pto_sim_executor *e = &x->pools->executors[at];
    const pto_sim_node *n = pto_sim_at(x->nodes, e->running);
    int64_t cost = pto_sim_cost_of(x->nodes, e->running);
    if (__builtin_expect(x->starts != NULL, 0) && x->starts[n->task] > now)
        return wait_for_start(x, at, n->task);
    if (x->trace->is_kept && is_on_first_link(x, e->running)) {
        x->trace->start[n->task] = now;
        x->trace->executor[n->task] = at;
    }
    if (x->trace->is_kept)
        e->last_task = n->task;
    if (x->memory.bytes_per_cycle > 0) {
        int64_t bytes = pto_sim_more_of(x->nodes, e->running).bytes;
        if (bytes > 0 && cost > 0)
            return pto_sim_memory_begin(&x->memory, now, at, cost, bytes) || pto_sim_fail(x->clock);
    }
    return pto_sim_clock_add(x->clock, PTO_SIM_TASK_ENDS, pto_sim_add(now, cost), at);
}

void pto_sim_engage(pto_sim_executors *x, int64_t executor, int64_t node)
{
    engage(x, &x->pools->queues[x->pools->executors[executor].queue], executor, node);
}

bool pto_sim_begin(pto_sim_executors *x, int64_t executor)
{
    pto_sim_executor *e = &x->pools->executors[executor];
    e->late += x->clock->now - e->since;
    e->since = x->clock->now;
    return begin(x, executor);
}

bool pto_sim_begin_due(pto_sim_executors *x)
{
    while (pto_sim_clock_is_due(x->clock, PTO_SIM_START_COMES))
        if (!pto_sim_begin(x, pto_sim_clock_take(x->clock, PTO_SIM_START_COMES)))
            return false;
    return true;
}

bool pto_sim_count_slowed(pto_sim_executors *x, int64_t executor)
{
    const pto_sim_executor *e = &x->pools->executors[executor];
    const pto_sim_node *n = pto_sim_at(x->nodes, e->running);
    return pto_sim_count(x->clock, &x->memory_cycles, x->clock->now - e->since - pto_sim_cost_of(x->nodes, e->running), n->task);
}

/* ---- dispatching ---- */

/* Where there are both, ready tasks and idle executors, in queues of one pool: executors take tasks by number, whosever they are.
   Invariant of the inner loop: no executor of the pool below `at` is idle, or no task stands. */
static bool steal(pto_sim_executors *x)
{
    pto_sim_pools *p = x->pools;
    for (int64_t number = 0; number < p->n_pools; number++) {
        const pto_sim_pool *pool = &p->pools[number];
        int64_t end = pool->first_executor + pool->n_executors * p->n_workers;
        for (int64_t at = pool->first_executor; pool->n_standing > 0; at++) {
            at = pto_sim_lowest_idle(p, at, end - at);
            if (at < 0)
                break;
            engage(x, &p->queues[p->executors[at].queue], at, pto_sim_take_head(p, &p->queues[pto_sim_best_queue(p, number)]));
            if (!begin(x, at))
                return false;
        }
    }
    return true;
}

/* Invariant of the loop: queues of the list before `i` have no ready task or no idle executor left; queues that are not listed had none
   before. */
bool pto_sim_dispatch(pto_sim_executors *x)
{
    pto_sim_pools *p = x->pools;
    for (int64_t i = 0; i < p->n_to_dispatch; i++) {
        pto_sim_queue *q = &p->queues[p->to_dispatch[i]];
        q->is_listed = false;
        while (q->n_idle > 0) {
            int64_t node = pto_sim_take_head(p, q);
            if (node < 0)
                break;
            int64_t at = q->n == 1 ? q->first : pto_sim_lowest_idle(p, q->first, q->n);
            engage(x, q, at, node);
            if (!begin(x, at))
                return false;
        }
        if (q->n == 1 && q->n_idle > 0 && p->executors[q->first].since == x->clock->now)
            pto_sim_read_clocks(p, q, &p->executors[q->first]);
    }
    p->n_to_dispatch = 0;
    return !x->options->steals || x->options->is_shared || steal(x);
}
