/* sim_pools.c: the simulator's pools of executors: which there are, which queue a task goes to, what each executor did.
   See sim_pools.h. */
#include "sim_pools.h"

enum { NONE = -1, N_FIGURES = 5 };

bool pto_sim_pools_init(pto_sim_pools *p, const pto_sim_options *options, pto_sim_front *front)
{
    *p = (pto_sim_pools){.options = options, .clock = front->clock, .nodes = front->nodes, .trace = front->trace,
                         .front = front->counts_ready ? front : NULL, .n_workers = options->n_workers,
                         .has_service = options->dispatch_cycles > 0 || options->retire_cycles > 0};
    if (!PTO_RESERVE(p->pools, p->pools_capacity, options->n_pools))
        return false;
    for (; p->n_pools < options->n_pools; p->n_pools++)
        p->pools[p->n_pools] = (pto_sim_pool){.n_executors = options->pool_size[p->n_pools]};
    return true;
}

void pto_sim_pools_close(pto_sim_pools *p)
{
    for (int64_t i = 0; i < p->n_queues; i++)
        pto_sim_ready_free(&p->queues[i].ready);
    free(p->pools);
    free(p->queues);
    free(p->executors);
    free(p->idle);
    free(p->to_dispatch);
    free(p->to_serve);
    free(p->is_to_serve);
    free(p->calendar);
    free(p->taken);
    free(p->figures);
}

/* ---- opening: queues and executors ---- */

static bool open_queue(pto_sim_pools *p, int64_t pool, int64_t n_executors)
{
    pto_sim_queue *q = &p->queues[p->n_queues];
    *q = (pto_sim_queue){.pool = (int32_t)pool, .first = (int32_t)p->n_executors, .n = (int32_t)n_executors,
                         .n_idle = (int32_t)n_executors};
    if (!pto_sim_ready_init(&q->ready, p->is_ranked))
        return false;
    for (int64_t i = 0; i < n_executors; i++) {
        int64_t at = p->n_executors++;
        p->executors[at] = (pto_sim_executor){.running = NONE, .last_task = NONE, .queue = (int32_t)p->n_queues,
                                              .worker = (int32_t)((at - p->pools[pool].first_executor) / p->pools[pool].n_executors)};
        pto_sim_set_idle(p, at, true);
    }
    p->n_queues++;
    return true;
}

static bool open_pool(pto_sim_pools *p, int64_t pool)
{
    int64_t n_queues = p->options->is_shared ? 1 : p->n_workers, size = p->pools[pool].n_executors;
    int64_t n_executors = p->n_executors + size * p->n_workers, n_words = p->idle_capacity;
    p->pools[pool].first_executor = p->n_executors;
    if (n_executors > INT32_MAX || !PTO_RESERVE(p->queues, p->queues_capacity, p->n_queues + n_queues) ||
        !PTO_RESERVE(p->to_dispatch, p->to_dispatch_capacity, p->n_queues + n_queues) ||
        !PTO_RESERVE(p->executors, p->executors_capacity, n_executors) ||
        !PTO_RESERVE(p->idle, p->idle_capacity, n_executors / 64 + 1))
        return false;
    memset(p->idle + n_words, 0, (size_t)(p->idle_capacity - n_words) * sizeof *p->idle);
    for (int64_t i = 0; i < n_queues; i++)
        if (!open_queue(p, pool, p->options->is_shared ? size * p->n_workers : size))
            return false;
    return true;
}

static bool open_pools(pto_sim_pools *p, const pto_columns *c)
{
    p->is_open = true;
    bool has_priorities = c != NULL && c->task_priority != NULL && !p->options->is_calendar;
    p->is_ranked = p->options->timing == PTO_TIMING_INTERLEAVED || has_priorities;
    if ((p->is_ranked || p->options->bytes_per_cycle > 0) && !pto_sim_nodes_keep_more(p->nodes))
        return false;
    if (p->has_service) {
        p->to_serve = malloc((size_t)p->n_workers * sizeof *p->to_serve);
        p->is_to_serve = calloc((size_t)p->n_workers, sizeof *p->is_to_serve);
        if (p->to_serve == NULL || p->is_to_serve == NULL)
            return false;
    }
    p->seeks_idle = p->options->steals || p->options->is_shared || p->has_service;
    for (int64_t pool = 0; pool < p->n_pools; pool++)
        p->seeks_idle |= p->pools[pool].n_executors > 1;
    for (int64_t pool = 0; pool < p->n_pools; pool++)
        if (!open_pool(p, pool))
            return false;
    if (p->options->route != PTO_ROUTE_NONE && p->options->link_buffers > 0)
        p->taken = calloc((size_t)p->n_queues, sizeof *p->taken);
    return p->taken != NULL || p->options->route == PTO_ROUTE_NONE || p->options->link_buffers == 0;
}

/* Pools of one executor, up to this one. */
static bool grow_pools(pto_sim_pools *p, int64_t pool)
{
    if (!PTO_RESERVE(p->pools, p->pools_capacity, pool + 1))
        return false;
    while (p->n_pools <= pool) {
        p->pools[p->n_pools] = (pto_sim_pool){.n_executors = 1};
        if (!open_pool(p, p->n_pools++))
            return false;
    }
    return true;
}

/* ---- tasks ---- */

static int64_t first_outside(const int64_t *values, int64_t n, int64_t last)     /* 0 .. last; n: none is */
{
    for (int64_t i = 0; i < n && values != NULL; i++)
        if (values[i] < 0 || values[i] > last)
            return i;
    return n;
}

/* The ranks of a copy that goes over links. False: the task is none. */
static bool is_copy(const pto_columns *c, int64_t task, int64_t *source, int64_t *target)
{
    *source = c->task_ranks[task] / PTO_RANKS_FACTOR - 1;
    *target = c->task_ranks[task] % PTO_RANKS_FACTOR - 1;
    return *source >= 0 && *target >= 0 && *source != *target;
}

/* The first task, of n, that does not begin on its route, or whose cost is not the same on each link; n: there is none. */
static int64_t first_off_route(const pto_sim_pools *p, const pto_columns *c, int64_t n)
{
    const pto_sim_options *o = p->options;
    int64_t n_ranks = p->n_workers / o->rank_workers, source, target;
    for (int64_t i = 0; i < n; i++)
        if (c->task_ranks == NULL || c->task_pool == NULL || c->task_ranks[i] < 0 ||
            (is_copy(c, i, &source, &target) && (source >= n_ranks || target >= n_ranks || c->task_cost[i] % pto_sim_n_links(o, source, target) != 0 ||
                                                 pto_sim_first_link(o, source, target) != pto_sim_queue_of(p, c, i))))
            return i;
    return n;
}

/* The first task that no executor can run, or with a number that nothing can be; n_tasks: there is none. */
static int64_t first_wrong(const pto_sim_pools *p, const pto_columns *c)
{
    int64_t n_pools = p->options->n_pools == 0 ? PTO_MAX_POOLS : p->n_pools, n = c->n_tasks;
    n = first_outside(c->task_worker, n, p->n_workers > 0 ? p->n_workers - 1 : PTO_MAX_CALENDAR - 1);
    n = first_outside(c->task_cost, n, INT64_MAX);
    n = first_outside(c->task_lane, n, INT64_MAX);
    n = first_outside(c->task_bytes, n, INT64_MAX);
    n = first_outside(c->task_pool, n, n_pools - 1);
    for (int64_t i = 0; i < n && p->options->n_pools > 0; i++)
        if (p->pools[c->task_pool == NULL ? 0 : c->task_pool[i]].n_executors == 0)
            return i;
    return p->options->route == PTO_ROUTE_NONE ? n : first_off_route(p, c, n);
}

int32_t pto_sim_pools_accept(pto_sim_pools *p, const pto_columns *c)
{
    int64_t max_pool = 0, wrong = first_wrong(p, c);
    p->clock->failed_task = wrong < c->n_tasks ? c->first_task + wrong : NONE;
    if (wrong < c->n_tasks)
        return PTO_E_ARGUMENT;
    for (int64_t i = 0; i < c->n_tasks && c->task_pool != NULL; i++)
        max_pool = c->task_pool[i] > max_pool ? c->task_pool[i] : max_pool;
    if (c->n_tasks == 0)
        return PTO_OK;
    bool is_late = p->is_open && (p->options->is_calendar || (c->task_priority != NULL && !p->is_ranked));
    if (is_late) {
        p->clock->failed_task = c->first_task;
        return PTO_E_ARGUMENT;
    }
    for (int64_t i = 0, n = p->n_workers; i < c->n_tasks && n == 0; i++)
        if (c->task_worker[i] >= p->n_workers)
            p->n_workers = c->task_worker[i] + 1;
    if ((!p->is_open && !open_pools(p, c)) || (p->options->n_pools == 0 && !grow_pools(p, max_pool)))
        return p->clock->status = PTO_E_NOMEM;
    for (int64_t i = 0; i < c->n_tasks && c->task_pool != NULL; i++)
        p->pools[c->task_pool[i]].is_named = true;
    if (c->task_pool == NULL)
        p->pools[0].is_named = true;
    return PTO_OK;
}

void pto_sim_pools_enter_more(pto_sim_pools *p, int64_t node, const pto_columns *c, int64_t task)
{
    int64_t n = p->options->timing == PTO_TIMING_INTERLEAVED ? p->options->timing_n : 1;
    int64_t lane = c->task_lane == NULL ? 0 : c->task_lane[task];
    p->nodes->more[node & (p->nodes->capacity - 1)] = (pto_sim_more){
        .priority = c->task_priority == NULL ? 0 : c->task_priority[task],
        .bytes = c->task_bytes == NULL ? 0 : c->task_bytes[task],
        .lane_class = lane == 0 ? n - 1 : (lane - 1) % n};
}

void pto_sim_pools_enter_route(pto_sim_pools *p, int64_t node, const pto_columns *c, int64_t task)
{
    int64_t source, target, n = is_copy(c, task, &source, &target) ? pto_sim_n_links(p->options, source, target) : 1;
    *pto_sim_route_of(p->nodes, node) = (pto_sim_route){.target = n > 1 ? (int32_t)target : NONE, .n_links = (int32_t)n, .from = NONE,
                                                       .held_by = NONE};
}

/* Its next link has it as a whole now, so the buffer before that link is free. */
bool pto_sim_pools_forward(pto_sim_pools *p, int64_t node, bool *goes_on)
{
    pto_sim_route *route = pto_sim_route_of(p->nodes, node);
    pto_sim_node *n = pto_sim_at(p->nodes, node);
    int64_t next = route->target < 0 ? NONE : pto_sim_next_link(p->options, n->queue, route->target);
    if (route->from >= 0 && p->taken != NULL) {
        p->taken[route->from]--;
        pto_sim_list_queue(p, route->from);
    }
    route->from = n->queue;
    route->held_by = NONE;
    *goes_on = next >= 0;
    if (next < 0)
        return true;
    n->queue = (int32_t)next;
    route->ready = p->clock->now;
    return pto_sim_pools_offer(p, node);
}

bool pto_sim_pools_release(pto_sim_pools *p, int64_t node)
{
    pto_sim_node *n = pto_sim_at(p->nodes, node);
    n->flags |= PTO_SIM_RELEASED;
    return n->state != PTO_SIM_READY || pto_sim_pools_offer(p, node);
}

/* A task that has not been fed is one that has not been submitted. */
int64_t pto_sim_calendar_head(const pto_sim_pools *p, const pto_sim_queue *q)
{
    int64_t node = q->order < q->order_end ? p->calendar[q->order] : p->nodes->next;
    if (node >= p->nodes->next)
        return NONE;
    const pto_sim_node *n = pto_sim_at(p->nodes, node);
    return n->state == PTO_SIM_READY && n->flags & PTO_SIM_RELEASED ? node : NONE;
}

/* ---- executors ---- */

/* Invariant of the loop: no executor from `first` up to `at` is idle. A word of bits a step. */
int64_t pto_sim_lowest_idle(const pto_sim_pools *p, int64_t first, int64_t n)
{
    for (int64_t at = first; at < first + n; at = (at | 63) + 1) {
        uint64_t bits = p->idle[at / 64] >> at % 64;
        if (bits != 0) {
            int64_t found = at + __builtin_ctzll(bits);
            return found < first + n ? found : NONE;
        }
    }
    return NONE;
}

int64_t pto_sim_best_queue(const pto_sim_pools *p, int64_t pool)
{
    pto_sim_rank best = {.node = NONE};
    int64_t found = NONE;
    for (int64_t q = pool * p->n_workers; q < (pool + 1) * p->n_workers; q++) {
        pto_sim_rank head = pto_sim_head(p, &p->queues[q]);
        if (head.node >= 0 && (best.node < 0 || pto_sim_rank_before(head, best))) {
            best = head;
            found = q;
        }
    }
    return found;
}

static pto_sim_pool *pool_of(const pto_sim_pools *p, int64_t executor)
{
    return &p->pools[p->queues[p->executors[executor].queue].pool];
}

/* Executors of pools that no task named do not exist: those behind them move up. */
static void renumber(pto_sim_pools *p, int64_t n_tasks, int64_t n_executors)
{
    int64_t *executor = p->trace->executor;
    if (!p->trace->is_kept || n_executors == p->n_executors)
        return;
    for (int64_t pool = 1; pool < p->n_pools; pool++)
        p->pools[pool].n_unnamed = p->pools[pool - 1].n_unnamed + !p->pools[pool - 1].is_named;
    for (int64_t i = 0; i < n_tasks; i++)
        if (executor[i] >= 0)
            executor[i] -= pool_of(p, executor[i])->n_unnamed * p->n_workers;
}

bool pto_sim_pools_read(pto_sim_pools *p, int64_t n_tasks, pto_sim_result *out)
{
    if (p->n_workers == 0)
        p->n_workers = 1;
    if (!p->is_open && (!open_pools(p, NULL) || (p->n_pools == 0 && !grow_pools(p, 0))))
        return pto_sim_fail(p->clock);
    if (n_tasks == 0 && p->options->n_pools == 0)
        p->pools[0].is_named = true;
    int64_t n = 0, at = 0;
    for (int64_t i = 0; i < p->n_executors; i++)
        n += p->options->n_pools > 0 || pool_of(p, i)->is_named;
    bool first_time = p->figures == NULL;
    if (first_time)
        p->figures = malloc((size_t)(N_FIGURES * n + 1) * sizeof *p->figures);
    if (p->figures == NULL)
        return pto_sim_fail(p->clock);
    int64_t *pool = p->figures, *busy = pool + n, *waiting = busy + n, *late = waiting + n, *tasks_run = late + n;
    for (int64_t i = 0; i < p->n_executors; i++) {
        const pto_sim_executor *e = &p->executors[i];
        const pto_sim_queue *q = &p->queues[e->queue];
        if (p->options->n_pools == 0 && !pool_of(p, i)->is_named)
            continue;
        int64_t late_now = pto_sim_late(p, pool_of(p, i));
        bool is_idle = e->running < 0;
        pool[at] = q->pool;
        busy[at] = e->busy;
        waiting[at] = e->waiting + (is_idle ? pto_sim_waited(p, q, late_now) - e->idle_waited : 0);
        late[at] = e->late + (is_idle ? late_now - e->idle_late : 0);
        tasks_run[at++] = e->tasks_run;
    }
    if (first_time)
        renumber(p, n_tasks, n);
    out->n_executors = n;
    out->pool = pool;
    out->busy = busy;
    out->waiting = waiting;
    out->late = late;
    out->tasks_run = tasks_run;
    return true;
}
