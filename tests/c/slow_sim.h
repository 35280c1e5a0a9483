/* slow_sim.h: a simulator by the rules of pto_sim_options as pto_library.h words them: every cycle, node and executor is looked at.
   What the simulator is checked against. */
#ifndef PTO_SLOW_SIM_H
#define PTO_SLOW_SIM_H
#include "slow_streams.h"

/* ---- executors ---- */

/* Whether the task belongs to the queue of this pool and worker (of the pool, where they share). */
static inline bool is_queued(const slow_sim *o, int64_t t, int64_t pool, int64_t worker)
{
    const node *n = &o->p->node[t];
    return n->is_task && n->task.pool == pool && (o->p->rules.is_shared || n->task.worker == worker);
}

static inline int64_t class_of(const program *p, int64_t t)        /* of no lane: the last */
{
    return (p->node[t].task.lane - 1 + p->rules.timing_n) % p->rules.timing_n;
}

static inline int64_t *served_by(slow_sim *o, int64_t pool, int64_t worker)
{
    return &o->served[pool][o->p->rules.is_shared ? 0 : worker];
}

/* How many classes come before its own, in a queue that served this class last. */
static inline int64_t turn_of(const slow_sim *o, int64_t t, int64_t served)
{
    int64_t k = o->p->rules.timing_n;
    return o->p->rules.timing == PTO_TIMING_INTERLEAVED ? (class_of(o->p, t) - served - 1 + k) % k : 0;
}

static inline bool goes_first(const slow_sim *o, int64_t a, int64_t b, int64_t turn_a, int64_t turn_b)
{
    int64_t priority_a = o->p->node[a].task.priority, priority_b = o->p->node[b].task.priority;
    int64_t since_a = later(o->ready[a], o->released[a]), since_b = later(o->ready[b], o->released[b]);
    if (priority_a != priority_b)
        return priority_a > priority_b;
    if (turn_a != turn_b)
        return turn_a < turn_b;
    return since_a != since_b ? since_a < since_b : a < b;
}

static inline int64_t head_of(slow_sim *o, int64_t pool, int64_t worker)
{
    int64_t best = NONE, served = *served_by(o, pool, worker);
    for (int64_t t = 0; t < o->p->n; t++) {
        if (!is_queued(o, t, pool, worker) || o->begun[t] >= 0 || (!o->p->rules.is_calendar && !stands(o, t)))
            continue;
        if (best < 0 || (o->p->rules.is_calendar ? o->p->node[t].task.position < o->p->node[best].task.position
                                                 : goes_first(o, t, best, turn_of(o, t, served), turn_of(o, best, served))))
            best = t;
    }
    return best >= 0 && stands(o, best) ? best : NONE;
}

/* Of the heads of all queues of a pool the one that goes first, without turns: each queue has taken its own. */
static inline int64_t foreign_head(slow_sim *o, int64_t pool, int64_t *from)
{
    int64_t best = NONE;
    for (int64_t w = 0; w < o->p->n_workers; w++) {
        int64_t t = head_of(o, pool, w);
        if (t >= 0 && (best < 0 || goes_first(o, t, best, 0, 0))) {
            best = t;
            *from = w;
        }
    }
    return best;
}

static inline int64_t idle_slot(const slow_sim *o, int64_t pool, int64_t worker)
{
    for (int64_t slot = 0; slot < o->p->size[pool]; slot++)
        if (o->executor[pool][worker][slot].task < 0)
            return slot;
    return NONE;
}

/* What it waited for last. */
static inline void explain(slow_sim *o, int64_t t, const slow_executor *e)
{
    bool was_passed_over = e->idle_since < o->now;
    const int64_t times[] = {o->submitted[t], o->ready[t], o->released[t], o->started, o->now};
    int64_t held[] = {o->held[t], PTO_HELD_EDGE, PTO_HELD_RELEASE, PTO_HELD_START, PTO_HELD_EXECUTOR};
    int32_t latest = 0;
    for (int32_t i = 1; i < 4; i++)
        latest = times[i] > times[latest] ? i : latest;
    if (was_passed_over)
        held[4] = PTO_HELD_DISPATCH;
    else if (o->p->rules.is_calendar && e->last >= 0 && o->start[e->last] > times[latest])
        held[4] = PTO_HELD_CALENDAR;
    o->held[t] = held[o->now > times[latest] ? 4 : latest];
}

static inline void begin(slow_sim *o, int64_t t, int64_t from, int64_t worker)      /* from: the worker whose queue it was in */
{
    int64_t pool = o->p->node[t].task.pool, slot = idle_slot(o, pool, worker);
    slow_executor *e = &o->executor[pool][worker][slot];
    explain(o, t, e);
    o->slot[t] = slot;
    o->worker[t] = worker;
    o->begun[t] = o->now;
    e->task = t;
    if (o->p->rules.timing == PTO_TIMING_INTERLEAVED)
        *served_by(o, pool, from) = class_of(o->p, t);
    if (!has_servers(o->p))
        o->given[t] = o->now;
}

/* Let tasks start that their executors have, and whose start in the calendar has come. */
static inline bool start_what_is_due(slow_sim *o)
{
    bool any = false;
    for (int64_t t = 0; t < o->p->n; t++) {
        if (o->given[t] < 0 || o->start[t] >= 0 || (o->p->rules.n_starts > 0 && o->p->starts[task_of(o->p, t)] > o->now))
            continue;
        o->start[t] = o->now;
        o->held[t] = o->now > o->given[t] ? PTO_HELD_CALENDAR : o->held[t];
        any = true;
    }
    return any;
}

static inline bool dispatch(slow_sim *o)
{
    bool any = false;
    int64_t from = 0;
    for (int64_t pool = 0; pool < MAX_POOLS; pool++)
        for (int32_t steals = 0; steals <= o->p->rules.steals; steals++)
            for (int64_t w = 0; w < o->p->n_workers; w++)
                for (int64_t t; idle_slot(o, pool, w) >= 0; any = true) {
                    t = steals ? foreign_head(o, pool, &from) : head_of(o, pool, w);
                    if (t < 0)
                        break;
                    begin(o, t, steals ? from : w, w);
                }
    return any;
}

/* A free worker does what has been wanted longest; steals: of queues that are not its own. */
static inline bool serve(slow_sim *o, int64_t w, bool steals)
{
    int64_t best = NONE, best_since = 0, from = w;
    bool retires = false;
    for (int64_t t = 0; t < o->p->n && !steals; t++)
        if (o->worker[t] == w && o->end[t] >= 0 && o->done[t] < 0 && (best < 0 || o->end[t] < best_since)) {
            best = t;
            best_since = o->end[t];
            retires = true;
        }
    for (int64_t pool = 0; pool < MAX_POOLS; pool++) {
        int64_t queue = w, t = steals ? foreign_head(o, pool, &queue) : head_of(o, pool, w), idle_since = o->now;
        if (t < 0 || idle_slot(o, pool, w) < 0 || (steals && head_of(o, pool, w) >= 0))
            continue;
        for (int64_t slot = 0; slot < o->p->size[pool]; slot++)
            if (o->executor[pool][w][slot].task < 0 && o->executor[pool][w][slot].idle_since < idle_since)
                idle_since = o->executor[pool][w][slot].idle_since;
        int64_t since = later(later(o->ready[t], o->released[t]), idle_since);
        if (best < 0 || since < best_since || (since == best_since && !retires && t < best)) {
            best = t;
            best_since = since;
            retires = false;
            from = queue;
        }
    }
    if (best < 0)
        return false;
    if (!retires)
        begin(o, best, from, w);
    o->retires[w] = retires;
    o->acts_on[w] = best;
    o->acts_until[w] = o->now + (retires ? o->p->rules.retire_cycles : o->p->rules.dispatch_cycles);
    return true;
}

static inline bool serve_all(slow_sim *o)
{
    bool any = false;
    for (int32_t steals = 0; steals <= o->p->rules.steals; steals++)
        for (int64_t w = 0; w < o->p->n_workers; w++)
            if (o->acts_on[w] < 0)
                any |= serve(o, w, steals);
    return any;
}

static inline bool end_what_ends(slow_sim *o)
{
    bool any = false;
    for (int64_t t = 0; t < o->p->n; t++) {
        if (o->start[t] < 0 || o->end[t] >= 0)
            continue;
        if (is_slowed(o->p, t) ? o->left[t] * o->factor > 1e-6 : o->start[t] + o->p->node[t].task.cost > o->now)
            continue;
        slow_executor *e = &o->executor[o->p->node[t].task.pool][o->worker[t]][o->slot[t]];
        e->task = NONE;
        e->last = t;
        e->idle_since = o->now;
        e->n_run++;
        any = true;
        o->end[t] = o->now;
        o->memory_cycles += o->now - o->start[t] - o->p->node[t].task.cost;
        if (!has_servers(o->p))
            o->done[t] = o->now;
    }
    for (int64_t w = 0; w < o->p->n_workers; w++)
        if (o->acts_on[w] >= 0 && o->acts_until[w] == o->now) {
            (o->retires[w] ? o->done : o->given)[o->acts_on[w]] = o->now;
            o->acts_on[w] = NONE;
            any = true;
        }
    return any;
}

/* What executors do in the cycle that begins now. */
static inline void spend_cycle(slow_sim *o)
{
    double asked = 0;
    for (int64_t pool = 0; pool < MAX_POOLS; pool++)
        for (int64_t w = 0; w < o->p->n_workers; w++)
            for (int64_t slot = 0; slot < o->p->size[pool]; slot++) {
                slow_executor *e = &o->executor[pool][w][slot];
                bool any_stands = false, any_waits = false;
                for (int64_t t = 0; t < o->p->n; t++) {
                    any_stands |= o->started >= 0 && o->p->node[t].task.pool == pool && stands(o, t);
                    any_waits |= is_queued(o, t, pool, w) && o->submitted[t] >= 0 && o->ready[t] < 0;
                }
                if (e->task >= 0 && o->start[e->task] >= 0)
                    e->busy++;
                else if (e->task >= 0 || any_stands)
                    e->late++;
                else if (any_waits)
                    e->waiting++;
            }
    for (int32_t pass = 0; pass < 2; pass++) {
        for (int64_t t = 0; t < o->p->n; t++)
            if (is_slowed(o->p, t) && o->start[t] >= 0 && o->end[t] < 0) {
                asked += pass == 0 ? (double)o->p->node[t].task.bytes / (double)o->p->node[t].task.cost : 0;
                o->left[t] -= pass == 1 ? 1 / o->factor : 0;
            }
        if (pass == 0)
            o->factor = asked > o->p->rules.bytes_per_cycle && asked > 0 ? asked / o->p->rules.bytes_per_cycle : 1;
    }
}

/* ---- figures of a whole run ---- */

static inline void count_stall(slow_sim *o, int64_t stall, int64_t from, int64_t to)
{
    o->stalls[stall] += to > from;
    o->stall_cycles[stall] += to > from ? to - from : 0;
}

/* When what a mark waits for as structure, and as nothing else, had completed. */
static inline int64_t structure_done(const slow_sim *o, int64_t mark)
{
    const node *n = &o->p->node[mark];
    int64_t done = 0;
    for (int32_t k = 0; k < MAX_PREDS; k++) {
        bool only = n->pred[k] >= 0;
        for (int32_t i = 0; i < MAX_PREDS; i++)
            only &= n->pred[i] != n->pred[k] || n->is_order[i];
        if (only)
            done = later(o->done[n->pred[k]], done);
    }
    return done;
}

static inline void sum_up(slow_sim *o)
{
    int64_t front[MAX_STREAMS] = {0}, chain[MAX_NODES];
    for (int64_t t = 0; t < o->p->n; t++) {
        const node *n = &o->p->node[t];
        chain[t] = front[n->task.stream];
        for (int32_t k = 0; k <= MAX_PREDS; k++)
            if (n->pred[k] >= 0)       /* with the time that the edge takes */
                chain[t] = later(chain[n->pred[k]] + arrival(o, t, k) - o->done[n->pred[k]], chain[t]);
        chain[t] += n->task.cost;
        if (n->is_task) {
            o->longest = later(chain[t], o->longest);
            o->total = later(o->done[t], o->total);
        } else if (n->blocks) {
            front[n->task.stream] = chain[t];
            int64_t since = later(o->submitted[t], n->stall == PTO_STALL_READ ? 0 : structure_done(o, t));
            count_stall(o, PTO_STALL_NONE, o->submitted[t], since);
            count_stall(o, n->stall, since, o->done[t]);
        }
    }
}

/* ---- all of it ---- */

/* Whether anything is to happen later. */
static inline bool goes_on(const slow_sim *o)
{
    bool any = false;
    for (int64_t t = 0; t < o->p->n; t++) {
        bool is_delayed = !o->p->node[t].is_task && o->ready[t] >= 0 && o->done[t] < 0;
        any |= is_delayed || (o->begun[t] >= 0 && o->done[t] < 0);
        for (int32_t k = 0; k <= MAX_PREDS; k++)      /* an edge is under way */
            any |= o->p->node[t].pred[k] >= 0 && arrival(o, t, k) > o->now;
        any |= o->p->rules.timing == PTO_TIMING_RATE && o->p->node[t].is_task && o->submitted[t] >= 0 && o->released[t] < 0;
    }
    for (int64_t stream = 0; stream < o->p->n_streams; stream++)
        any |= o->now < o->busy_until[stream];
    return any;
}

static inline void clear(const program *p, slow_sim *o)
{
    memset(o, 0, sizeof *o);
    int64_t *times[] = {o->submitted, o->ready, o->released, o->begun, o->given, o->start, o->end, o->done, o->worker, o->slot};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        memset(times[i], 0xff, sizeof o->end);
    memset(o->served, 0xff, sizeof o->served);
    memset(o->acts_on, 0xff, sizeof o->acts_on);
    memset(o->full, 0xff, sizeof o->full);
    for (int32_t i = 0; i < MAX_POOLS * MAX_WORKERS * MAX_SIZE; i++)
        (&o->executor[0][0][0])[i].task = (&o->executor[0][0][0])[i].last = NONE;
    o->p = p;
    o->factor = 1;
    o->started = p->rules.start_after == 0 ? 0 : NONE;
    o->window_task = o->window_unit = NONE;
    for (int64_t t = 0; t < p->n; t++)
        o->left[t] = (double)p->node[t].task.cost;
}

/* At one time, what ends comes first, then submissions and releases, then dispatch; all of it again while tasks take no time.
   Ends early, with window_task, where a window ends it. */
static inline void simulate_slowly(const program *p, slow_sim *o)
{
    clear(p, o);
    for (;; o->now++) {
        for (bool again = true; again;) {
            again = end_what_ends(o);
            while (pass_marks(o))
                ;
            note_readiness(o);
            count_ready(o);
            submit(o);
            release_and_start(o);
            note_most_ready(o);
            if (o->started >= 0)
                again |= has_servers(p) ? serve_all(o) : dispatch(o);
            again |= start_what_is_due(o);
            again |= count_ready(o);
        }
        int64_t n_done = 0;
        for (int64_t t = 0; t < p->n; t++)
            n_done += o->done[t] >= 0;
        if (n_done == p->n)
            break;
        stand(o);
        o->is_stuck = !goes_on(o);
        if (o->window_task >= 0 || o->is_stuck)
            return;
        spend_cycle(o);
    }
    sum_up(o);
}

#endif
