/* sim_pools.c: the simulator's pools of executors: which there are, which queue a task goes to, what each executor did.
   See sim_executors.h. */
#include "sim.h"

enum { NONE = -1, N_FIGURES = 5 };

bool pto_sim_options_fit(const pto_sim_options *o)
{
    bool has_pools = o->n_pools >= 0 && o->n_pools <= PTO_MAX_POOLS && (o->n_pools == 0 || o->pool_size != NULL);
    bool has_costs = o->dispatch_cycles >= 0 && o->retire_cycles >= 0 && o->bytes_per_cycle >= 0;
    bool is_dynamic = o->is_shared || o->steals || o->timing == PTO_TIMING_INTERLEAVED;
    bool has_starts = o->n_starts == 0 || (o->n_starts > 0 && o->starts != NULL && o->is_calendar);
    if (!has_pools || !has_costs || !has_starts || (o->is_calendar && is_dynamic))
        return false;
    int64_t n = 0, pool;
    for (int32_t p = 0; p < o->n_pools; p++)
        if (o->pool_size[p] < 0 || (o->is_calendar && o->pool_size[p] > 1) ||
            __builtin_mul_overflow(o->pool_size[p], o->n_workers, &pool) || __builtin_add_overflow(n, pool, &n))
            return false;
    return n <= INT32_MAX;
}

bool pto_sim_keep_pool_sizes(pto_sim *s)
{
    if (!PTO_RESERVE(s->pools, s->pools_capacity, s->options.n_pools))
        return false;
    for (; s->n_pools < s->options.n_pools; s->n_pools++)
        s->pools[s->n_pools] = (pto_sim_pool){.n_executors = s->options.pool_size[s->n_pools]};
    s->options.pool_size = NULL;       /* was borrowed */
    return true;
}

/* ---- opening: queues and executors ---- */

static bool open_queue(pto_sim *s, int64_t pool, int64_t n_executors)
{
    pto_sim_queue *q = &s->queues[s->n_queues];
    *q = (pto_sim_queue){.pool = (int32_t)pool, .first = (int32_t)s->n_executors, .n = (int32_t)n_executors,
                         .n_idle = (int32_t)n_executors, .asked = {0, NONE}};
    if (!pto_sim_ready_init(&q->ready, s->is_ranked))
        return false;
    for (int64_t i = 0; i < n_executors; i++) {
        int64_t at = s->n_executors++;
        s->executors[at] = (pto_sim_executor){.running = NONE, .last_task = NONE, .queue = (int32_t)s->n_queues,
                                              .worker = (int32_t)((at - s->pools[pool].first_executor) / s->pools[pool].n_executors)};
        pto_sim_set_idle(s, at, true);
    }
    s->n_queues++;
    return true;
}

static bool open_pool(pto_sim *s, int64_t pool)
{
    int64_t n_queues = s->options.is_shared ? 1 : s->options.n_workers, size = s->pools[pool].n_executors;
    int64_t n_executors = s->n_executors + size * s->options.n_workers, n_words = s->idle_capacity;
    s->pools[pool].first_executor = s->n_executors;
    if (n_executors > INT32_MAX || !PTO_RESERVE(s->queues, s->queues_capacity, s->n_queues + n_queues) ||
        !PTO_RESERVE(s->to_dispatch, s->to_dispatch_capacity, s->n_queues + n_queues) ||
        !PTO_RESERVE(s->executors, s->executors_capacity, n_executors) ||
        !PTO_RESERVE(s->idle, s->idle_capacity, n_executors / 64 + 1))
        return false;
    memset(s->idle + n_words, 0, (size_t)(s->idle_capacity - n_words) * sizeof *s->idle);
    for (int64_t i = 0; i < n_queues; i++)
        if (!open_queue(s, pool, s->options.is_shared ? size * s->options.n_workers : size))
            return false;
    return true;
}

static bool open_pools(pto_sim *s, const pto_columns *c)
{
    s->is_open = true;
    bool has_priorities = c != NULL && c->task_priority != NULL && !s->options.is_calendar;
    s->is_ranked = s->options.timing == PTO_TIMING_INTERLEAVED || has_priorities;
    s->ring.keeps_more = s->is_ranked || s->options.bytes_per_cycle > 0;
    s->memory.factor = 1;
    if (!pto_sim_open_servers(s))
        return false;
    s->seeks_idle = s->options.steals || s->options.is_shared || s->servers != NULL;
    for (int64_t pool = 0; pool < s->n_pools; pool++)
        s->seeks_idle |= s->pools[pool].n_executors > 1;
    if (s->ring.keeps_more && s->ring.capacity > 0) {
        s->ring.more = calloc((size_t)s->ring.capacity, sizeof *s->ring.more);
        if (s->ring.more == NULL)
            return false;
    }
    for (int64_t pool = 0; pool < s->n_pools; pool++)
        if (!open_pool(s, pool))
            return false;
    return true;
}

/* Pools of one executor, up to this one. */
static bool grow_pools(pto_sim *s, int64_t pool)
{
    if (!PTO_RESERVE(s->pools, s->pools_capacity, pool + 1))
        return false;
    while (s->n_pools <= pool) {
        s->pools[s->n_pools] = (pto_sim_pool){.n_executors = 1};
        if (!open_pool(s, s->n_pools++))
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

/* The first task that no executor can run, or with a number that nothing can be; n_tasks: there is none. */
static int64_t first_wrong(const pto_sim *s, const pto_columns *c)
{
    int64_t n_pools = s->options.n_pools == 0 ? PTO_MAX_POOLS : s->n_pools, n = c->n_tasks;
    n = first_outside(c->task_worker, n, s->options.n_workers > 0 ? s->options.n_workers - 1 : PTO_MAX_CALENDAR - 1);
    n = first_outside(c->task_cost, n, INT64_MAX);
    n = first_outside(c->task_lane, n, INT64_MAX);
    n = first_outside(c->task_bytes, n, INT64_MAX);
    n = first_outside(c->task_pool, n, n_pools - 1);
    for (int64_t i = 0; i < n && s->options.n_pools > 0; i++)
        if (s->pools[c->task_pool == NULL ? 0 : c->task_pool[i]].n_executors == 0)
            return i;
    return n;
}

int32_t pto_sim_accept(pto_sim *s, const pto_columns *c)
{
    int64_t max_pool = 0, wrong = first_wrong(s, c);
    s->failed_task = wrong < c->n_tasks ? c->first_task + wrong : NONE;
    if (wrong < c->n_tasks)
        return PTO_E_ARGUMENT;
    for (int64_t i = 0; i < c->n_tasks && c->task_pool != NULL; i++)
        max_pool = c->task_pool[i] > max_pool ? c->task_pool[i] : max_pool;
    if (c->n_tasks == 0)
        return PTO_OK;
    bool is_late = s->is_open && (s->options.is_calendar || (c->task_priority != NULL && !s->is_ranked));
    if (is_late) {
        s->failed_task = c->first_task;
        return PTO_E_ARGUMENT;
    }
    for (int64_t i = 0, n = s->options.n_workers; i < c->n_tasks && n == 0; i++)
        if (c->task_worker[i] >= s->options.n_workers)
            s->options.n_workers = c->task_worker[i] + 1;
    if ((!s->is_open && !open_pools(s, c)) || (s->options.n_pools == 0 && !grow_pools(s, max_pool)))
        return s->status = PTO_E_NOMEM;
    for (int64_t i = 0; i < c->n_tasks && c->task_pool != NULL; i++)
        s->pools[c->task_pool[i]].is_named = true;
    if (c->task_pool == NULL)
        s->pools[0].is_named = true;
    return s->options.is_calendar ? pto_sim_keep_calendar(s, c) : PTO_OK;
}

void pto_sim_enter_more(pto_sim *s, int64_t node, const pto_columns *c, int64_t task)
{
    int64_t n = s->options.timing == PTO_TIMING_INTERLEAVED ? s->options.timing_n : 1;
    int64_t lane = c->task_lane == NULL ? 0 : c->task_lane[task];
    s->ring.more[node & (s->ring.capacity - 1)] = (pto_sim_more){
        .priority = c->task_priority == NULL ? 0 : c->task_priority[task],
        .bytes = c->task_bytes == NULL ? 0 : c->task_bytes[task],
        .turn = lane == 0 ? n - 1 : (lane - 1) % n};
}

/* ---- executors ---- */

int64_t pto_sim_lowest_idle(const pto_sim *s, int64_t first, int64_t n)
{
    for (int64_t at = first; at < first + n; at = (at | 63) + 1) {
        uint64_t bits = s->idle[at / 64] >> at % 64;
        if (bits != 0) {
            int64_t found = at + __builtin_ctzll(bits);
            return found < first + n ? found : NONE;
        }
    }
    return NONE;
}

int64_t pto_sim_best_queue(const pto_sim *s, int64_t pool)
{
    pto_sim_rank best = {.node = NONE};
    int64_t found = NONE;
    for (int64_t q = pool * s->options.n_workers; q < (pool + 1) * s->options.n_workers; q++) {
        pto_sim_rank head = pto_sim_head(s, &s->queues[q]);
        if (head.node >= 0 && (best.node < 0 || pto_sim_rank_before(head, best))) {
            best = head;
            found = q;
        }
    }
    return found;
}

/* Executors of pools that no task named are not there: the ones behind them move up. */
static void renumber(pto_sim *s, int64_t n_executors)
{
    if (!s->options.keep_trace || n_executors == s->n_executors)
        return;
    for (int64_t p = 1; p < s->n_pools; p++)
        s->pools[p].n_unnamed = s->pools[p - 1].n_unnamed + !s->pools[p - 1].is_named;
    for (int64_t i = 0; i < s->n_tasks; i++)
        if (s->executor[i] >= 0)
            s->executor[i] -= s->pools[s->queues[s->executors[s->executor[i]].queue].pool].n_unnamed * s->options.n_workers;
}

bool pto_sim_executor_figures(pto_sim *s, pto_sim_result *out)
{
    if (s->options.n_workers == 0)
        s->options.n_workers = 1;
    if (!s->is_open && (!open_pools(s, NULL) || (s->n_pools == 0 && !grow_pools(s, 0))))
        return pto_sim_fail(s);
    if (s->n_tasks == 0 && s->options.n_pools == 0)
        s->pools[0].is_named = true;
    int64_t n = 0, at = 0;
    for (int64_t i = 0; i < s->n_executors; i++)
        n += s->options.n_pools > 0 || s->pools[s->queues[s->executors[i].queue].pool].is_named;
    bool first_time = s->figures == NULL;
    if (first_time)
        s->figures = malloc((size_t)(N_FIGURES * n + 1) * sizeof *s->figures);
    if (s->figures == NULL)
        return pto_sim_fail(s);
    int64_t *pool = s->figures, *busy = pool + n, *waiting = busy + n, *late = waiting + n, *tasks_run = late + n;
    for (int64_t i = 0; i < s->n_executors; i++) {
        const pto_sim_executor *e = &s->executors[i];
        const pto_sim_queue *q = &s->queues[e->queue];
        const pto_sim_pool *p = &s->pools[q->pool];
        if (s->options.n_pools == 0 && !p->is_named)
            continue;
        int64_t late_now = pto_sim_late(s, p);
        bool is_idle = e->running < 0;
        pool[at] = q->pool;
        busy[at] = e->busy;
        waiting[at] = e->waiting + (is_idle ? pto_sim_waited(s, q, late_now) - e->idle_waited : 0);
        late[at] = e->late + (is_idle ? late_now - e->idle_late : 0);
        tasks_run[at++] = e->tasks_run;
    }
    if (first_time)
        renumber(s, n);
    out->n_executors = n;
    out->pool = pool;
    out->busy = busy;
    out->waiting = waiting;
    out->late = late;
    out->tasks_run = tasks_run;
    return true;
}

void pto_sim_close(pto_sim *s)
{
    for (int64_t i = 0; i < s->n_queues; i++)
        pto_sim_ready_free(&s->queues[i].ready);
    free(s->pools);
    free(s->queues);
    free(s->executors);
    free(s->idle);
    free(s->figures);
    free(s->calendar);
    free(s->starts);
    free(s->early.data);
    free(s->memory.flows);
    pto_sim_close_servers(s);
}
