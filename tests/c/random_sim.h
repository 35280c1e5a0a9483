/* random_sim.h: random programs under random rules, the orchestrator that submits them, and the comparison with slow_sim.h. */
#ifndef PTO_RANDOM_SIM_H
#define PTO_RANDOM_SIM_H
#include "slow_sim.h"

/* ---- rules ---- */

static inline int32_t random_mode(int64_t n_stall)
{
    return pick(0, n_stall) ? PTO_WINDOW_STALL : (int32_t)pick(PTO_WINDOW_ABORT, PTO_WINDOW_BENCHMARK);
}

/* Windows of other units: in every third program up to all that there are. */
static inline void random_windows(program *p)
{
    pto_sim_options *o = &p->rules;
    o->more = p->more;
    for (int32_t unit = 0; unit < PTO_N_WINDOWS; unit++)
        if (unit != o->window_unit && pick(0, 3))
            p->more[o->n_more++] = (pto_window){pick(1, unit == PTO_WINDOW_READY ? 3 : 8), unit, random_mode(8)};
}

static inline void random_submission(pto_sim_options *o)
{
    o->window_unit = (int32_t)pick(0, PTO_N_WINDOWS - 1);
    o->window_mode = random_mode(2);
    o->timing = (int32_t[]){PTO_TIMING_IMMEDIATE, PTO_TIMING_BATCHED, PTO_TIMING_RATE}[pick(0, 2)];
    o->timing_n = pick(1, 5);
    o->release_num = pick(1, 12);
    o->release_den = pick(1, 5);
    o->start_after = (int64_t[]){0, 0, PTO_AFTER_ALL, pick(1, 20)}[pick(0, 3)];
    o->submit_cycles = pick(0, 1) ? pick(1, 4) : 0;
}

static inline void random_executors(program *p)
{
    pto_sim_options *o = &p->rules;
    o->n_pools = (int32_t)pick(0, MAX_POOLS);
    o->is_calendar = pick(0, 5) == 0;
    for (int32_t i = 0; i < MAX_POOLS; i++)
        p->size[i] = o->n_pools == 0 ? 1 : i >= o->n_pools ? 0 : o->is_calendar ? 1 : pick(i > 0 ? 0 : 1, MAX_SIZE);
    if (!o->is_calendar) {
        o->is_shared = pick(0, 3) == 0;
        o->steals = pick(0, 2) == 0;
        if (pick(0, 3) == 0) {
            o->timing = PTO_TIMING_INTERLEAVED;
            o->timing_n = pick(1, 4);
        }
    }
    o->dispatch_cycles = pick(0, 2) ? 0 : pick(1, 3);
    o->retire_cycles = pick(0, 2) ? 0 : pick(1, 3);
    o->bytes_per_cycle = pick(0, 2) ? 0 : (double)pick(1, 9) / (double)pick(1, 2);
    o->pool_size = p->size;
    p->has_lanes = pick(0, 1);
    p->has_pools = o->n_pools != 1 && pick(0, 3);
    p->has_priorities = pick(0, 2) == 0;
}

/* Each half of the rules says nothing in every third program. */
static inline void random_rules(program *p)
{
    pto_sim_options *o = &p->rules;
    *o = (pto_sim_options){.keep_trace = 1, .timing_n = 1, .window = pick(0, 2) ? pick(1, 6) : 0};
    p->n_workers = o->n_workers = pick(1, MAX_WORKERS);
    p->size[0] = p->size[1] = p->size[2] = 1;
    if (pick(0, 2))
        random_submission(o);
    if (pick(0, 2))
        random_executors(p);
    if (!o->is_shared && !o->steals && pick(0, 2) == 0) {
        o->hop_cycles = pick(1, 6);
        o->grid_columns = pick(1, MAX_WORKERS);
    }
    if (pick(0, 2) == 0)
        random_windows(p);
}

/* ---- nodes ---- */

static inline void random_task(program *p, int64_t t, int64_t slack)
{
    const pto_sim_options *o = &p->rules;
    pto_task *task = &p->node[t].task;
    do
        task->pool = p->has_pools ? pick(0, MAX_POOLS - 1) : 0;
    while (p->size[task->pool] == 0);
    task->worker = pick(0, p->n_workers - 1);
    task->priority = p->has_priorities ? pick(-1, 1) : 0;
    task->position = 10 * t + 7 * pick(0, slack);      /* no two are the same, as 7 * 8 < 70 */
    task->bytes = pick(0, 2) ? pick(0, 40) : 0;
    task->lane = p->has_lanes ? pick(0, 5) : 0;
    p->node[t].entries = pick(0, o->window > 0 && o->window < 4 && pick(0, 19) ? o->window : 4);
    p->node[t].kept_bytes = p->node[t].entries == 0 ? 0 : pick(0, o->window > 0 && pick(0, 39) ? o->window : 8);
}

/* Every stream begins with a mark, so that all are open from the start; some rest for good, here and there. The last node is a task. */
static inline void random_node(program *p, int64_t t, bool *rests)
{
    node *n = &p->node[t];
    int64_t stream = t < p->n_streams ? t : pick(0, p->n_streams - 1), n_going_on = 0;
    while (rests[stream])
        stream = (stream + 1) % p->n_streams;
    for (int64_t s = 0; s < p->n_streams; s++)
        n_going_on += !rests[s];
    n->rests = rests[stream] = t >= p->n_streams && t < p->n - 1 && n_going_on > 1 && pick(0, 14) == 0;
    n->is_task = t == p->n - 1 || (t >= p->n_streams && !n->rests && pick(0, 3));
    n->task.stream = (int32_t)stream;
    n->task.cost = pick(0, 3) ? pick(0, 7) : 0;
    n->blocks = !n->is_task && pick(0, 1);
    n->stall = (int32_t)pick(0, PTO_N_STALLS - 1);
}

static inline void random_program(program *p)
{
    int64_t last_of[6] = {NONE, NONE, NONE, NONE, NONE, NONE}, slack = pick(0, 2) ? 0 : 8, sparse = pick(0, 1);
    bool rests[MAX_STREAMS] = {false};
    memset(p, 0, sizeof *p);
    random_rules(p);
    p->n_streams = pick(1, MAX_STREAMS);
    p->n = pick(p->n_streams + 1, MAX_NODES);
    for (int64_t t = 0; t < p->n; t++) {
        node *n = &p->node[t];
        random_node(p, t, rests);
        n->pred[MAX_PREDS] = NONE;
        for (int32_t k = 0; k < MAX_PREDS; k++) {
            n->pred[k] = t > 0 && pick(0, 2 + 3 * sparse) == 0 ? pick(t > 12 ? t - 12 : 0, t - 1) : NONE;
            n->is_order[k] = t % 4 == 3 && k > 0 ? n->is_order[0] : pick(0, 1);        /* one join is of one kind */
        }
        if (!n->is_task)
            continue;
        random_task(p, t, slack);
        if (n->task.lane > 0) {
            n->pred[MAX_PREDS] = last_of[n->task.lane];
            last_of[n->task.lane] = t;
        }
    }
    if (p->rules.is_calendar && pick(0, 1)) {
        p->rules.starts = p->starts;
        p->rules.n_starts = task_of(p, p->n);
        for (int64_t task = 0; task < p->rules.n_starts; task++)
            p->starts[task] = pick(0, 2) ? pick(0, 3 * task) : 0;
    }
    if (!p->rules.is_calendar || pick(0, 1))
        return;
    p->rules.n_workers = 0;            /* the calendar says how many there are */
    p->n_workers = 1;
    for (int64_t t = 0; t < p->n; t++)
        p->n_workers = p->node[t].is_task ? later(p->node[t].task.worker + 1, p->n_workers) : p->n_workers;
}

/* ---- simulating ---- */

/* One orchestrator for both: the program comes in through a global, as an artifact's would through its bindings. */
static program current;
static int64_t node_of[MAX_NODES], join_before[MAX_NODES];     /* their numbers in the record; NONE: no join */

static inline int64_t submit_one(pto_sink *sink, const node *n, const int64_t *order)
{
    static char memory[64];
    pto_arg args[4];                   /* the first writes an intermediate, the others only count as entries */
    for (int32_t i = 0; i < 4; i++)
        args[i] = (pto_arg){.data = memory, .extent = {1, n->kept_bytes}, .stride = {1, 1}, .elem_bytes = 1, .buffer = i < 2 ? 0 : i,
                            .flags = i == 0 ? PTO_KEPT | PTO_WRITE : i == 1 ? PTO_KEPT | PTO_READ : PTO_WRITE};
    pto_task task = n->task;
    task.order = order;
    task.n_order = MAX_PREDS;
    task.args = args;
    task.n_args = (int32_t)n->entries;
    return sink->submit(sink, &task);
}

static inline int64_t mark_one(pto_sink *sink, const node *n, const int64_t *order)
{
    int64_t structural[MAX_PREDS], before[MAX_PREDS];
    for (int32_t k = 0; k < MAX_PREDS; k++) {
        structural[k] = n->is_order[k] ? order[k] : NONE;
        before[k] = n->is_order[k] ? NONE : order[k];
    }
    return sink->mark(sink, &(pto_mark){.stream = n->task.stream, .stall = n->stall, .delay = n->task.cost,
                                        .flags = (n->blocks ? PTO_MARK_BLOCKS : 0) | (n->rests ? PTO_MARK_RESTS : 0),
                                        .why = PTO_EDGE_CHANNEL, .n_before = MAX_PREDS, .before = before,
                                        .n_order = MAX_PREDS, .order = structural});
}

static inline int32_t orchestrate(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    for (int64_t t = 0; t < current.n; t++) {
        const node *n = &current.node[t];
        int64_t order[MAX_PREDS];
        for (int32_t k = 0; k < MAX_PREDS; k++)
            order[k] = n->pred[k] < 0 ? NONE : node_of[n->pred[k]];
        join_before[t] = NONE;
        if (t % 4 == 3) {              /* the same predecessors through a join */
            int64_t join = sink->join_open(sink);
            for (int32_t k = 0; k < MAX_PREDS; k++)
                sink->join_add(sink, join, order[k]);
            join_before[t] = order[0] = sink->join_close(sink, join, NONE);
            order[1] = order[2] = NONE;
        }
        node_of[t] = n->is_task ? submit_one(sink, n, order) : mark_one(sink, n, order);
    }
    return sink->status;
}

/* Feed the program whole, or in chunks of at most `chunk` tasks; *out lives as long as the simulator that is returned. */
static inline pto_sim *simulate_current(int64_t chunk, int32_t *status, pto_sim_result *out)
{
    int32_t keep = (current.has_lanes ? PTO_KEEP_LANE : 0) | (current.has_pools ? PTO_KEEP_POOL : 0) |
                   (current.has_priorities ? PTO_KEEP_PRIORITY : 0) | (current.rules.is_calendar ? PTO_KEEP_POSITION : 0) |
                   (current.rules.bytes_per_cycle > 0 ? PTO_KEEP_BYTES : 0);
    pto_record *record = pto_record_new(&(pto_record_options){.keep = keep, .max_tasks = chunk, .window = current.rules.window});
    pto_sim *sim = pto_sim_new(&current.rules);
    pto_execute_result ran;
    pto_columns c;
    CHECK(sim != NULL);
    *status = pto_run(NULL, record, &(pto_run_options){.orchestrate = orchestrate, .sim = sim}, &ran);
    pto_record_columns(record, &c);
    if (*status == PTO_OK && c.first_node == 0)
        *status = pto_sim_feed(sim, record);
    int32_t finished = pto_sim_finish(sim, out);
    CHECK(*status == PTO_OK || *status == finished);
    *status = finished;
    pto_record_free(record);
    return sim;
}

/* ---- comparing ---- */

/* Executors are there for pools that the rules or a task name. */
static inline bool is_pool(const program *p, int64_t pool)
{
    bool is_named = pool < p->rules.n_pools;
    for (int64_t t = 0; t < p->n && p->rules.n_pools == 0; t++)
        is_named |= p->node[t].is_task && p->node[t].task.pool == pool;
    return is_named;
}

static inline int64_t executor_of(const program *p, int64_t pool, int64_t worker, int64_t slot)
{
    int64_t at = worker * p->size[pool] + slot;
    for (int64_t i = 0; i < pool; i++)
        at += is_pool(p, i) ? p->n_workers * p->size[i] : 0;
    return at;
}

static inline bool arrives_at(const slow_sim *o, int64_t t, int64_t src, int64_t time)
{
    bool any = false;
    for (int32_t k = 0; k <= MAX_PREDS; k++)
        any |= o->p->node[t].pred[k] == src && arrival(o, t, k) == time;
    return any;
}

/* That what it waited for last came when it is said to. */
static inline void check_held_by(const pto_sim_result *r, const program *p, const slow_sim *o, int64_t t)
{
    int64_t task = task_of(p, t), by = r->held_by[task];
    bool is_named = r->held[task] != PTO_HELD_NOT && r->held[task] != PTO_HELD_RELEASE && r->held[task] != PTO_HELD_START &&
                    r->held[task] != PTO_HELD_SUBMIT && r->held[task] != PTO_HELD_DISPATCH && o->start[t] == o->given[t];
    CHECK_EQ(by >= 0, is_named);
    if (is_named && (r->held[task] == PTO_HELD_EXECUTOR || r->held[task] == PTO_HELD_CALENDAR))
        CHECK(r->executor[by] == r->executor[task] && r->end[by] == o->begun[t]);
    bool is_found = !is_named || r->held[task] == PTO_HELD_EXECUTOR || r->held[task] == PTO_HELD_CALENDAR;
    for (int64_t other = 0; other < t && !is_found; other++) {
        bool is_pred = false, is_of_stream = p->node[other].task.stream == p->node[t].task.stream;
        for (int32_t k = 0; k <= MAX_PREDS; k++)
            is_pred |= p->node[t].pred[k] == other;
        if (r->held[task] == PTO_HELD_EDGE)
            is_found = is_pred && arrives_at(o, t, other, o->ready[t]) && (by == node_of[other] || by == join_before[t]);
        else if (r->held[task] == PTO_HELD_READY)
            is_found = is_of_stream && p->node[other].is_task && task_of(p, other) == by && o->begun[other] == o->submitted[t];
        else if (r->held[task] == PTO_HELD_WINDOW || r->held[task] >= PTO_HELD_BYTES)
            is_found = is_of_stream && p->node[other].is_task && task_of(p, other) == by && o->done[other] == o->submitted[t];
        else if (r->held[task] == PTO_HELD_MARK)
            is_found = is_of_stream && node_of[other] == by && p->node[other].blocks;
    }
    CHECK(is_found);
}

static inline void check_executors(const pto_sim_result *r, const program *p, const slow_sim *o)
{
    int64_t n = 0;
    for (int64_t pool = 0; pool < MAX_POOLS; pool++)
        for (int64_t w = 0; w < p->n_workers && is_pool(p, pool); w++)
            for (int64_t slot = 0; slot < p->size[pool]; slot++, n++) {
                const slow_executor *e = &o->executor[pool][w][slot];
                if (n >= r->n_executors)
                    continue;
                CHECK_EQ(r->pool[n], pool);
                CHECK_EQ(r->busy[n], e->busy);
                CHECK_EQ(r->waiting[n], e->waiting);
                CHECK_EQ(r->late[n], e->late);
                CHECK_EQ(r->tasks_run[n], e->n_run);
            }
    CHECK_EQ(r->n_executors, n);
}

static inline void check_same(const pto_sim_result *r, const program *p, const slow_sim *o)
{
    int64_t n = 0, work = 0;
    for (int64_t t = 0; t < p->n; t++) {
        if (!p->node[t].is_task)
            continue;
        CHECK_EQ(r->submit[n], o->submitted[t]);
        CHECK_EQ(r->ready[n], o->ready[t]);
        CHECK_EQ(r->start[n], o->start[t]);
        CHECK_EQ(r->end[n], o->end[t]);
        CHECK_EQ(r->complete[n], o->done[t]);
        CHECK_EQ(r->complete[n], o->done[t]);
        CHECK_EQ(r->held[n], o->held[t]);
        CHECK_EQ(r->executor[n++], executor_of(p, p->node[t].task.pool, o->worker[t], o->slot[t]));
        check_held_by(r, p, o, t);
        work += p->node[t].task.cost;
    }
    CHECK_EQ(r->n_tasks, n);
    CHECK_EQ(r->work, work);
    CHECK_EQ(r->total_cycles, o->total);
    CHECK_EQ(r->critical_path, o->longest);
    CHECK_EQ(r->memory_cycles, o->memory_cycles);
    CHECK_EQ(r->window_stalls, o->use[p->rules.window_unit].stalls);
    CHECK_EQ(r->window_stall_cycles, o->use[p->rules.window_unit].stall_cycles);
    CHECK_EQ(r->window_high_water, o->use[p->rules.window_unit].high_water);
    for (int32_t unit = 0; unit < PTO_N_WINDOWS; unit++) {
        CHECK_EQ(r->windows[unit].stalls, o->use[unit].stalls);
        CHECK_EQ(r->windows[unit].stall_cycles, o->use[unit].stall_cycles);
        CHECK_EQ(r->windows[unit].high_water, o->use[unit].high_water);
    }
    CHECK(memcmp(r->stalls, o->stalls, sizeof r->stalls) == 0);
    CHECK(memcmp(r->stall_cycles, o->stall_cycles, sizeof r->stall_cycles) == 0);
    check_executors(r, p, o);
}

#endif
