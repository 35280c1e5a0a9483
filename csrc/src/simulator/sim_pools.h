/* sim_pools.h: the pools of executors: the executors of each pool, the tasks that wait for an executor, the idle executors.

   Executors are numbered pool by pool, in each worker by worker, so those that a queue serves follow one another. Queues are numbered
   the same: pool * n_workers + worker, or by pool where workers share them. A pool that comes later moves nothing.

   Ownership: pto_sim owns the pools, the pools own their arrays; options, clock, nodes, trace and front are pto_sim's. Units: times in cycles. */
#ifndef PTO_SIM_POOLS_H
#define PTO_SIM_POOLS_H
#include "sim_front.h"
#include "sim_ready.h"
#include "sim_routes.h"

#pragma GCC visibility push(hidden)

/* Clocks run only while what they count goes on, so that an interval of any executor costs two readings. */
typedef struct pto_sim_pool {
    int64_t n_executors;       /* that a worker has */
    int64_t first_executor;
    int64_t n_standing;        /* ready tasks that nobody has taken */
    int64_t late;              /* the time with n_standing > 0, up to since */
    int64_t since;
    int64_t n_unnamed;         /* pools before it that no task named, once the simulation has ended */
    bool is_named;             /* by a task */
} pto_sim_pool;

typedef struct pto_sim_queue {
    pto_sim_ready ready;
    int64_t n_waiting;         /* submitted and not ready */
    int64_t waited;            /* the time with n_waiting > 0 and none standing in the pool, up to since */
    int64_t since;
    int64_t late;              /* of the pool, at since */
    int32_t pool;
    int32_t first, n;          /* executors that it serves */
    int32_t n_idle;            /* of these */
    int64_t order, order_end;  /* with a calendar: what comes next in pools->calendar, and the end */
    bool is_listed;            /* in pools->to_dispatch */
} pto_sim_queue;

typedef struct pto_sim_executor {
    int64_t running;           /* node that it runs or that is being dispatched to it, -1: idle */
    int64_t since;             /* idle, being given a task, or running */
    int64_t idle_waited, idle_late;    /* the clocks of its queue and pool when it became idle */
    int64_t busy, waiting, late, tasks_run;
    int64_t last_task;         /* that it ran, -1: none */
    int32_t queue;
    int32_t worker;
} pto_sim_executor;

typedef struct pto_sim_pools {
    const pto_sim_options *options;
    pto_sim_clock *clock;
    pto_sim_nodes *nodes;
    pto_sim_trace *trace;
    pto_sim_front *front;      /* which counts ready tasks; NULL: nobody does */
    int64_t n_workers;
    bool is_open;              /* there are pools: the first tasks have said which */
    bool is_ranked;            /* ready tasks have priorities, or take turns */
    bool has_service;          /* dispatching or retiring takes a worker's time */
    bool seeks_idle;           /* someone asks which executors are idle: a queue has several, or other queues do */
    pto_sim_pool *pools;
    int64_t n_pools, pools_capacity;
    pto_sim_queue *queues;
    int64_t n_queues, queues_capacity;
    pto_sim_executor *executors;
    int64_t n_executors, executors_capacity;
    uint64_t *idle;            /* with seeks_idle: a bit an executor */
    int64_t idle_capacity;
    int64_t *to_dispatch;      /* [n_queues] queues whose executors may have become able to start */
    int64_t n_to_dispatch, to_dispatch_capacity;
    int32_t *to_serve;         /* [n_workers] with has_service: workers that may have something to do */
    bool *is_to_serve;         /* [n_workers] those in to_serve */
    int64_t n_to_serve;
    int32_t *taken;            /* [n_queues] with link_buffers: the buffers at the far end of each link that are taken */
    int64_t *calendar;         /* nodes, queue by queue in the order of their positions; NULL: none */
    int64_t *figures;          /* of the executors, for the result: five arrays */
} pto_sim_pools;

/* Keeps the pools that the options name, whose sizes the caller may free then. False: no memory. */
bool pto_sim_pools_init(pto_sim_pools *pools, const pto_sim_options *options, pto_sim_front *front);
/* Before any of the columns is fed: make room for their tasks. PTO_E_ARGUMENT, and failed_task, for a task that nothing can run. */
int32_t pto_sim_pools_accept(pto_sim_pools *pools, const pto_columns *columns);
void pto_sim_pools_enter_more(pto_sim_pools *pools, int64_t node, const pto_columns *columns, int64_t task);
bool pto_sim_pools_release(pto_sim_pools *pools, int64_t node);        /* a submitted task may run once it is ready. False: no memory */
void pto_sim_pools_enter_route(pto_sim_pools *pools, int64_t node, const pto_columns *columns, int64_t task);
/* A task has come to the end of its executor's link: to its next link, if there is one. False: no memory. */
bool pto_sim_pools_forward(pto_sim_pools *pools, int64_t node, bool *goes_on);
int64_t pto_sim_calendar_head(const pto_sim_pools *pools, const pto_sim_queue *q);     /* the next task, -1: it may not run yet */
int64_t pto_sim_lowest_idle(const pto_sim_pools *pools, int64_t first, int64_t n);     /* executor, -1: none */
/* The queue whose head goes first of all workers', -1: no task is ready. */
int64_t pto_sim_best_queue(const pto_sim_pools *pools, int64_t pool);
bool pto_sim_pools_read(pto_sim_pools *pools, int64_t n_tasks, pto_sim_result *out);   /* what executors did; false: no memory */
void pto_sim_pools_close(pto_sim_pools *pools);

static inline int64_t pto_sim_queue_of(const pto_sim_pools *p, const pto_columns *c, int64_t task)
{
    if (c->task_pool == NULL)
        return p->options->is_shared ? 0 : c->task_worker[task];
    int64_t pool = c->task_pool[task];
    return p->options->is_shared ? pool : pool * p->n_workers + c->task_worker[task];
}

/* The queue of a task that has been accepted, and its rank there. */
static inline void pto_sim_pools_enter(pto_sim_pools *p, int64_t node, const pto_columns *c, int64_t task)
{
    pto_sim_at(p->nodes, node)->queue = (int32_t)pto_sim_queue_of(p, c, task);
    if (p->nodes->keeps_more)
        pto_sim_pools_enter_more(p, node, c, task);
    if (p->nodes->keeps_routes)
        pto_sim_pools_enter_route(p, node, c, task);
}

/* ---- routes ---- */

static inline bool pto_sim_is_forwarded(const pto_sim_pools *p, int64_t node)      /* it goes on from the link that it takes now */
{
    int32_t target = p->nodes->keeps_routes ? pto_sim_route_of(p->nodes, node)->target : -1;
    return target >= 0 && pto_sim_next_link(p->options, pto_sim_at(p->nodes, node)->queue, target) >= 0;
}

/* What a task takes of its executor: of a copy over links, its part on each. */
static inline int64_t pto_sim_cost_of(const pto_sim_nodes *nodes, int64_t node)
{
    int64_t cost = pto_sim_at(nodes, node)->cost;
    return nodes->keeps_routes ? cost / pto_sim_route_of(nodes, node)->n_links : cost;
}

/* Whether the far end of a link has no room for a copy that is to go on from there. */
static inline bool pto_sim_is_blocked(const pto_sim_pools *p, const pto_sim_queue *q, int64_t node)
{
    return node >= 0 && p->taken[q - p->queues] >= p->options->link_buffers && pto_sim_is_forwarded(p, node);
}

/* ---- queues ---- */

/* What a queue would give next; node -1: nothing. */
static inline pto_sim_rank pto_sim_head(const pto_sim_pools *p, const pto_sim_queue *q)
{
    if (p->calendar == NULL) {
        pto_sim_rank head = pto_sim_ready_head(&q->ready, p->nodes);
        if (__builtin_expect(p->taken != NULL, 0) && pto_sim_is_blocked(p, q, head.node))
            head.node = -1;
        return head;
    }
    int64_t node = pto_sim_calendar_head(p, q);
    return (pto_sim_rank){0, node < 0 ? 0 : pto_sim_at(p->nodes, node)->ready, node};
}

static inline int64_t pto_sim_take_head(pto_sim_pools *p, pto_sim_queue *q)
{
    if (__builtin_expect(p->taken != NULL, 0) && pto_sim_is_blocked(p, q, pto_sim_ready_head(&q->ready, p->nodes).node))
        return -1;
    if (__builtin_expect(p->calendar == NULL, 1))
        return pto_sim_ready_pop(&q->ready, p->nodes);
    int64_t node = pto_sim_calendar_head(p, q);
    q->order += node >= 0;
    return node;
}

static inline void pto_sim_list_worker(pto_sim_pools *p, int64_t worker)       /* it may have something to do */
{
    if (p->is_to_serve[worker])
        return;
    p->is_to_serve[worker] = true;
    p->to_serve[p->n_to_serve++] = (int32_t)worker;
}

static inline void pto_sim_list_queue(pto_sim_pools *p, int64_t queue)         /* its executors may be able to start */
{
    pto_sim_queue *q = &p->queues[queue];
    if (__builtin_expect(p->has_service, 0))
        pto_sim_list_worker(p, p->options->is_shared ? 0 : queue % p->n_workers);
    if (q->n_idle > 0 && !q->is_listed) {
        q->is_listed = true;
        p->to_dispatch[p->n_to_dispatch++] = queue;
    }
}

static inline void pto_sim_set_idle(pto_sim_pools *p, int64_t executor, bool is_idle)
{
    if (p->seeks_idle && is_idle)
        p->idle[executor / 64] |= (uint64_t)1 << executor % 64;
    else if (p->seeks_idle)
        p->idle[executor / 64] &= ~((uint64_t)1 << executor % 64);
}

/* ---- clocks of pools and queues ---- */

static inline int64_t pto_sim_late(const pto_sim_pools *p, const pto_sim_pool *pool)
{
    const pto_sim_clock *clock = p->clock;
    int64_t since = pool->since > clock->start_time ? pool->since : clock->start_time;
    return pool->late + (pool->n_standing > 0 && clock->is_started ? clock->now - since : 0);
}

static inline int64_t pto_sim_waited(const pto_sim_pools *p, const pto_sim_queue *q, int64_t late)
{
    return q->waited + (q->n_waiting > 0 ? p->clock->now - q->since - (late - q->late) : 0);
}

static inline void pto_sim_stand(pto_sim_pools *p, pto_sim_pool *pool)         /* one task more is ready */
{
    if (pool->n_standing++ == 0)
        pool->since = p->clock->now;
}

static inline void pto_sim_take(pto_sim_pools *p, pto_sim_pool *pool)          /* an executor took a task */
{
    if (--pool->n_standing == 0)
        pool->late += p->clock->now - (pool->since > p->clock->start_time ? pool->since : p->clock->start_time);
}

static inline void pto_sim_wait(pto_sim_pools *p, pto_sim_queue *q)            /* one task more is submitted and not ready */
{
    if (q->n_waiting++ == 0) {
        q->since = p->clock->now;
        q->late = pto_sim_late(p, &p->pools[q->pool]);
    }
}

static inline void pto_sim_wait_no_more(pto_sim_pools *p, pto_sim_queue *q)
{
    if (q->n_waiting == 1)
        q->waited = pto_sim_waited(p, q, pto_sim_late(p, &p->pools[q->pool]));
    q->n_waiting--;
}

static inline bool pto_sim_pools_offer(pto_sim_pools *p, int64_t node)         /* a task that is ready and released. False: no memory */
{
    pto_sim_node *n = pto_sim_at(p->nodes, node);
    pto_sim_queue *q = &p->queues[n->queue];
    n->ready = p->clock->now;
    pto_sim_list_queue(p, n->queue);
    pto_sim_stand(p, &p->pools[q->pool]);
    if (__builtin_expect(p->front != NULL, 0))
        pto_sim_front_ready(p->front, node, false);
    return p->calendar != NULL || pto_sim_ready_push(&q->ready, p->nodes, node) || pto_sim_fail(p->clock);
}

#pragma GCC visibility pop

#endif
