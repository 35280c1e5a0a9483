/* slow_streams.h: the first half of the simulator that slow_sim.h describes: programs, what is known of one while it is simulated,
   and when tasks are submitted, released and started. */
#ifndef PTO_SLOW_STREAMS_H
#define PTO_SLOW_STREAMS_H
#include "check.h"

enum { MAX_NODES = 60, MAX_PREDS = 3, MAX_WORKERS = 3, MAX_STREAMS = 3, MAX_POOLS = 3, MAX_SIZE = 3, NONE = -1 };

typedef struct node {
    bool is_task;
    pto_task task;                     /* of a mark: stream, and as cost its delay */
    int64_t entries, kept_bytes;       /* its arguments in memory, and the intermediates among them that it writes */
    bool blocks, rests;                /* of a mark */
    int32_t stall;
    int64_t pred[MAX_PREDS + 1];       /* NONE: none; the last one is of the lane */
    bool is_order[MAX_PREDS];          /* of a mark: structure, else a token */
} node;

typedef struct program {
    int64_t n, n_streams, n_workers, size[MAX_POOLS];
    node node[MAX_NODES];
    int64_t starts[MAX_NODES];         /* by task, where rules.starts names them */
    bool has_lanes, has_pools, has_priorities;
    pto_window more[PTO_N_WINDOWS];    /* that rules.more names */
    pto_sim_options rules;
} program;

/* One executor: what it runs, from being taken off a queue to its end. */
typedef struct slow_executor {
    int64_t task, last, idle_since;    /* task, last: NONE: none */
    int64_t busy, waiting, late, n_run;
} slow_executor;

typedef struct slow_sim {
    const program *p;
    int64_t now;
    /* by node, NONE: not yet. `begun`: an executor has taken it; `given`: it may start but for its start in the calendar; `done`: others
       see it completed. A mark is ready when only its delay is left, and then done. */
    int64_t submitted[MAX_NODES], ready[MAX_NODES], released[MAX_NODES], begun[MAX_NODES], given[MAX_NODES], start[MAX_NODES],
        end[MAX_NODES], done[MAX_NODES];
    int64_t worker[MAX_NODES], slot[MAX_NODES], held[MAX_NODES];
    double left[MAX_NODES], factor;    /* cycles alone in memory that are left; by how much tasks are slowed down */
    slow_executor executor[MAX_POOLS][MAX_WORKERS][MAX_SIZE];
    int64_t served[MAX_POOLS][MAX_WORKERS];                    /* the class that a queue served last */
    int64_t acts_until[MAX_WORKERS], acts_on[MAX_WORKERS];     /* NONE: free */
    bool retires[MAX_WORKERS];
    int64_t busy_until[MAX_STREAMS], stood[MAX_STREAMS];       /* stood: PTO_HELD_, when time last went on */
    int64_t standing[MAX_STREAMS];     /* tasks in the window of ready tasks: as counted last, and those submitted since */
    int64_t stood_for[MAX_STREAMS];    /* the task that found no room then */
    int64_t full[MAX_STREAMS];         /* the unit of the window that a stream stood before when time last went on; NONE: none */
    int64_t n_submitted, started, due; /* started: when; due: release_den times when the next release is */
    int64_t window_task, window_unit, total, longest, memory_cycles;
    pto_window_use use[PTO_N_WINDOWS];
    int64_t stalls[PTO_N_STALLS], stall_cycles[PTO_N_STALLS];
    bool is_stuck;
} slow_sim;

static inline int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How many tasks come before a node. */
static inline int64_t task_of(const program *p, int64_t at)
{
    int64_t task = 0;
    for (int64_t t = 0; t < at; t++)
        task += p->node[t].is_task;
    return at < 0 ? -1 : task;
}

static inline bool has_servers(const program *p)
{
    return p->rules.dispatch_cycles > 0 || p->rules.retire_cycles > 0;
}

static inline bool is_slowed(const program *p, int64_t t)
{
    return p->node[t].is_task && p->rules.bytes_per_cycle > 0 && p->node[t].task.bytes > 0 && p->node[t].task.cost > 0;
}

/* Ready and released. */
static inline bool stands(const slow_sim *o, int64_t t)
{
    return o->p->node[t].is_task && o->ready[t] >= 0 && o->released[t] >= 0 && o->begun[t] < 0;
}

static inline bool is_joined(const program *p, int64_t t);

/* When an edge from task to task arrives; others take no time. */
static inline int64_t arrival(const slow_sim *o, int64_t t, int32_t k)
{
    int64_t src = o->p->node[t].pred[k], columns = o->p->rules.grid_columns;
    if (o->done[src] < 0 || o->p->rules.hop_cycles == 0 || !o->p->node[t].is_task || !o->p->node[src].is_task ||
        (k < MAX_PREDS && is_joined(o->p, t)))
        return o->done[src];
    int64_t from = o->p->node[src].task.worker, to = o->p->node[t].task.worker;
    return o->done[src] + o->p->rules.hop_cycles * (llabs(from / columns - to / columns) + llabs(from % columns - to % columns));
}

static inline bool preds_are_done(const slow_sim *o, int64_t t)
{
    for (int32_t k = 0; k <= MAX_PREDS; k++)
        if (o->p->node[t].pred[k] >= 0 && (arrival(o, t, k) < 0 || arrival(o, t, k) > o->now))
            return false;
    return true;
}

/* ---- streams ---- */

static const int64_t held_by_unit[PTO_N_WINDOWS] = {PTO_HELD_WINDOW, PTO_HELD_BYTES, PTO_HELD_ENTRIES, PTO_HELD_EDGES, PTO_HELD_READY};

static inline pto_window window_of(const program *p, int32_t unit)     /* size 0: none */
{
    pto_window w = {0};
    if (unit == p->rules.window_unit)
        w = (pto_window){p->rules.window, unit, p->rules.window_mode};
    for (int32_t i = 0; i < p->rules.n_more; i++)
        w = p->more[i].unit == unit ? p->more[i] : w;
    return w;
}

static inline bool is_counted(const program *p, int32_t unit)
{
    return unit == p->rules.window_unit || window_of(p, unit).size > 0;
}

static inline int64_t different_preds(const program *p, int64_t t)
{
    int64_t n = 0;
    for (int32_t k = 0; k < MAX_PREDS; k++) {
        bool is_new = p->node[t].pred[k] >= 0;
        for (int32_t i = 0; i < k; i++)
            is_new &= p->node[t].pred[i] != p->node[t].pred[k];
        n += is_new;
    }
    return n;
}

/* Every fourth node has the predecessors that are not of its lane behind one join, if there are several. */
static inline bool is_joined(const program *p, int64_t t)
{
    return t % 4 == 3 && different_preds(p, t) > 1;
}

static inline int64_t edges_of(const program *p, int64_t t)
{
    int64_t lane = p->node[t].pred[MAX_PREDS];
    bool lane_is_named = false;
    for (int32_t k = 0; k < MAX_PREDS; k++)
        lane_is_named |= p->node[t].pred[k] == lane;
    return (is_joined(p, t) ? 1 : different_preds(p, t)) + (lane >= 0 && (is_joined(p, t) || !lane_is_named));
}

static inline int64_t weight_of(const program *p, int64_t t, int32_t unit)
{
    switch (unit) {
    case PTO_WINDOW_BYTES: return p->node[t].kept_bytes;
    case PTO_WINDOW_ENTRIES: return p->node[t].entries;
    case PTO_WINDOW_EDGES: return edges_of(p, t);
    default: return 1;
    }
}

static inline int64_t next_of(const slow_sim *o, int64_t stream)       /* NONE: all have been submitted */
{
    for (int64_t t = 0; t < o->p->n; t++)
        if (o->p->node[t].task.stream == stream && o->submitted[t] < 0)
            return t;
    return NONE;
}

static inline int64_t taken_of_window(const slow_sim *o, int64_t stream, int32_t unit)
{
    int64_t taken = 0;
    bool all_done = true;
    if (unit == PTO_WINDOW_READY)
        return o->standing[stream];
    for (int64_t t = 0; t < o->p->n; t++) {
        if (!o->p->node[t].is_task || o->p->node[t].task.stream != stream || o->submitted[t] < 0)
            continue;
        all_done &= o->done[t] >= 0;
        taken += all_done ? 0 : weight_of(o->p, t, unit);
    }
    return taken;
}

/* Whether task t of the stream finds no room in a window. */
static inline bool finds_no_room(const slow_sim *o, int64_t stream, int64_t t, int32_t unit)
{
    pto_window w = window_of(o->p, unit);
    int64_t weight = weight_of(o->p, t, unit);
    return w.size > 0 && weight > 0 && taken_of_window(o, stream, unit) + weight > w.size;
}

/* The first window that a task finds no room in, NONE: it does. is_last: of those that end the simulation then. */
static inline int32_t waits_for(const slow_sim *o, int64_t stream, int64_t t, bool is_last)
{
    for (int32_t unit = 0; unit < PTO_N_WINDOWS; unit++) {
        pto_window w = window_of(o->p, unit);
        bool would_end = w.mode == PTO_WINDOW_ABORT || weight_of(o->p, t, unit) > w.size;
        if (w.mode != PTO_WINDOW_BENCHMARK && finds_no_room(o, stream, t, unit) && (would_end || !is_last))
            return unit;
    }
    return NONE;
}

static inline bool is_held_by_mark(const slow_sim *o, int64_t stream)
{
    for (int64_t t = 0; t < o->p->n; t++) {
        const node *n = &o->p->node[t];
        if (!n->is_task && n->blocks && n->task.stream == stream && o->submitted[t] >= 0 && o->done[t] < 0)
            return true;
    }
    return false;
}

/* Release what `stream` has submitted if that is at least n tasks. */
static inline void release_from(slow_sim *o, int64_t stream, int64_t n)
{
    int64_t found = 0;
    for (int32_t pass = 0; pass < 2; pass++)
        for (int64_t t = 0; t < o->p->n; t++) {
            bool waits = o->p->node[t].is_task && o->p->node[t].task.stream == stream && o->submitted[t] >= 0 && o->released[t] < 0;
            found += pass == 0 && waits;
            if (pass == 1 && waits && found >= n)
                o->released[t] = o->now;
        }
}

static inline void submit_task(slow_sim *o, int64_t t)
{
    const pto_sim_options *rules = &o->p->rules;
    int64_t stream = o->p->node[t].task.stream;
    for (int32_t unit = 0; unit < PTO_N_WINDOWS; unit++) {
        int64_t taken = taken_of_window(o, stream, unit);
        if (window_of(o->p, unit).mode == PTO_WINDOW_BENCHMARK)
            o->use[unit].stalls += finds_no_room(o, stream, t, unit);
        if (unit != PTO_WINDOW_READY && is_counted(o->p, unit))
            o->use[unit].high_water = later(taken + weight_of(o->p, t, unit), o->use[unit].high_water);
    }
    o->standing[stream]++;
    o->submitted[t] = o->now;
    o->held[t] = o->stood[stream];
    o->busy_until[stream] = o->now + rules->submit_cycles;
    if (++o->n_submitted == rules->start_after && o->started < 0)
        o->started = o->now;
    if (rules->timing == PTO_TIMING_IMMEDIATE || rules->timing == PTO_TIMING_INTERLEAVED)
        o->released[t] = o->now;
    if (rules->timing == PTO_TIMING_BATCHED)
        release_from(o, stream, rules->timing_n);
}

/* Submit the next node of `stream`, if it may be. */
static inline bool submit_next(slow_sim *o, int64_t stream)
{
    int64_t t = next_of(o, stream);
    if (t < 0 || o->now < o->busy_until[stream] || is_held_by_mark(o, stream))
        return false;
    if (!o->p->node[t].is_task) {
        o->submitted[t] = o->now;
        return true;
    }
    if (waits_for(o, stream, t, false) >= 0)
        return false;
    submit_task(o, t);
    return true;
}

static inline bool pass_marks(slow_sim *o)
{
    bool any = false;
    for (int64_t t = 0; t < o->p->n; t++) {
        if (o->p->node[t].is_task || o->submitted[t] < 0 || o->done[t] >= 0)
            continue;
        if (o->ready[t] < 0 && preds_are_done(o, t))
            o->ready[t] = o->now;
        if (o->ready[t] >= 0 && o->now >= o->ready[t] + o->p->node[t].task.cost) {
            o->done[t] = o->now;
            any = true;
        }
    }
    return any;
}

static inline void note_readiness(slow_sim *o)
{
    for (int64_t t = 0; t < o->p->n; t++)
        if (o->p->node[t].is_task && o->submitted[t] >= 0 && o->ready[t] < 0 && preds_are_done(o, t))
            o->ready[t] = o->now;
}

static inline int64_t n_standing(const slow_sim *o, int64_t stream)
{
    int64_t n = 0;
    for (int64_t t = 0; t < o->p->n; t++)
        n += o->p->node[t].task.stream == stream && stands(o, t);
    return n;
}

/* Most tasks of a stream that are ready at a time: before executors take some. */
static inline void note_most_ready(slow_sim *o)
{
    int64_t *most = &o->use[PTO_WINDOW_READY].high_water;
    for (int64_t stream = 0; stream < o->p->n_streams && is_counted(o->p, PTO_WINDOW_READY); stream++)
        *most = later(n_standing(o, stream), *most);
}

/* Count the ready tasks of every stream. Whether a stream that stood before their window may go on. */
static inline bool count_ready(slow_sim *o)
{
    bool any = false;
    for (int64_t stream = 0; stream < o->p->n_streams; stream++) {
        int64_t next = next_of(o, stream);
        bool is_held = o->now < o->busy_until[stream] || is_held_by_mark(o, stream);
        bool has_task = next >= 0 && o->p->node[next].is_task && !is_held;
        int32_t before = has_task ? waits_for(o, stream, next, false) : NONE;
        o->standing[stream] = n_standing(o, stream);
        int32_t now = has_task ? waits_for(o, stream, next, false) : NONE;
        any |= before >= 0 && now < 0;
        if (before != now)
            o->full[stream] = NONE;    /* what it waits for after that at this time is another stall */
    }
    return any;
}

static inline void submit(slow_sim *o)
{
    for (bool again = true; again;) {
        again = pass_marks(o);
        for (int64_t stream = 0; stream < o->p->n_streams; stream++)
            again |= submit_next(o, stream);
    }
    note_readiness(o);
}

static inline void release_by_rate(slow_sim *o)
{
    int64_t num = o->p->rules.release_num, den = o->p->rules.release_den;
    for (;;) {
        int64_t next = NONE;
        for (int64_t t = 0; t < o->p->n; t++)
            if (o->p->node[t].is_task && o->submitted[t] >= 0 && o->released[t] < 0 &&
                (next < 0 || o->submitted[t] < o->submitted[next]))
                next = t;
        if (next < 0 || o->now * den < o->due)
            return;
        if ((o->now - 1) * den >= o->due)      /* it could have gone in the cycle before */
            o->due = o->now * den;
        o->due += num;
        o->released[next] = o->now;
    }
}

/* All that can be submitted has been, so a stream that is not busy cannot go on. */
static inline void release_and_start(slow_sim *o)
{
    bool is_any_busy = false;
    for (int64_t stream = 0; stream < o->p->n_streams; stream++) {
        is_any_busy |= o->now < o->busy_until[stream];
        if (o->now >= o->busy_until[stream] && o->p->rules.timing == PTO_TIMING_BATCHED)
            release_from(o, stream, 1);
    }
    if (o->p->rules.timing == PTO_TIMING_RATE)
        release_by_rate(o);
    if (!is_any_busy && o->started < 0)
        o->started = o->now;
}

/* What holds every stream now that time is to go on. */
static inline void stand(slow_sim *o)
{
    for (int64_t stream = 0; stream < o->p->n_streams; stream++) {
        int64_t next = next_of(o, stream), before = o->full[stream];
        o->full[stream] = NONE;
        if (o->now < o->busy_until[stream])
            o->stood[stream] = PTO_HELD_SUBMIT;
        else if (is_held_by_mark(o, stream))
            o->stood[stream] = PTO_HELD_MARK;
        else if (next >= 0) {
            int32_t unit = waits_for(o, stream, next, false);
            CHECK(unit >= 0);
            o->stood[stream] = held_by_unit[unit];
            o->use[unit].stall_cycles++;       /* the cycle that begins now */
            o->use[unit].stalls += before != unit || o->stood_for[stream] != next;
            o->full[stream] = unit;
            o->stood_for[stream] = next;
            unit = waits_for(o, stream, next, true);
            if (unit >= 0 && (o->window_task < 0 || next < o->window_task)) {
                o->window_task = next;
                o->window_unit = unit;
            }
        }
    }
}

#endif
