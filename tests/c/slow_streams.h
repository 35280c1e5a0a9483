/* slow_streams.h: random programs of several streams, and the rules by which they are simulated, written down cycle by cycle:
   what the simulator is checked against. One executor a worker. */
#ifndef PTO_SLOW_STREAMS_H
#define PTO_SLOW_STREAMS_H
#include "check.h"

enum { MAX_NODES = 60, MAX_PREDS = 3, MAX_WORKERS = 3, MAX_STREAMS = 3 };

typedef struct program {
    int64_t n, n_streams;
    int64_t is_task[MAX_NODES], cost[MAX_NODES], worker[MAX_NODES], stream[MAX_NODES], blocks[MAX_NODES];
    int64_t rests[MAX_NODES], stall[MAX_NODES];
    int64_t entries[MAX_NODES], bytes[MAX_NODES];      /* arguments, and what the first of them writes of an intermediate */
    int64_t pred[MAX_NODES][MAX_PREDS];    /* -1: none */
    bool is_order[MAX_NODES][MAX_PREDS];   /* of a mark: structure, else a token; one join is of one kind */
    pto_sim_options rules;
} program;

typedef struct slow_sim {
    int64_t submitted[MAX_NODES], ready[MAX_NODES], released[MAX_NODES], start[MAX_NODES], end[MAX_NODES], chain[MAX_NODES];
    int64_t held[MAX_NODES];               /* PTO_HELD_, of a task */
    int64_t total, longest, window_stall_cycles, window_stalls, high_water, waiting[MAX_WORKERS], late[MAX_WORKERS];
    int64_t stalls[PTO_N_STALLS], stall_cycles[PTO_N_STALLS];
    int64_t full_since[MAX_STREAMS], busy_until[MAX_STREAMS], stood[MAX_STREAMS];  /* stood: PTO_HELD_, when time last went on */
    int64_t n_submitted, started, due;     /* started: when, -1: not yet; due: release_den times when the next release is */
    int64_t window_task;                   /* its node; -1: no error */
} slow_sim;

static inline bool is_done(const slow_sim *o, int64_t node, int64_t now)
{
    return o->end[node] >= 0 && o->end[node] <= now;
}

/* When what a mark waits for as structure, and as nothing else, had completed. */
static inline int64_t structure_done(const program *p, const slow_sim *o, int64_t node)
{
    int64_t done = 0;
    for (int32_t k = 0; k < MAX_PREDS; k++) {
        bool only = p->pred[node][k] >= 0;
        for (int32_t i = 0; i < MAX_PREDS; i++)
            only &= p->pred[node][i] != p->pred[node][k] || p->is_order[node][i];
        if (only && o->end[p->pred[node][k]] > done)
            done = o->end[p->pred[node][k]];
    }
    return done;
}

static inline void count_stall(slow_sim *o, int64_t stall, int64_t from, int64_t to)
{
    o->stalls[stall] += to > from;
    o->stall_cycles[stall] += to > from ? to - from : 0;
}

static inline bool is_ready(const program *p, const slow_sim *o, int64_t node, int64_t now)
{
    for (int32_t k = 0; k < MAX_PREDS; k++)
        if (p->pred[node][k] >= 0 && !is_done(o, p->pred[node][k], now))
            return false;
    return o->submitted[node] >= 0;
}

static inline int64_t weight_of(const program *p, int64_t task)
{
    int32_t unit = p->rules.window_unit;
    return unit == PTO_WINDOW_TASKS ? 1 : unit == PTO_WINDOW_BYTES ? p->bytes[task] : p->entries[task];
}

static inline bool is_unreleased(const program *p, const slow_sim *o, int64_t node)
{
    return p->is_task[node] && o->submitted[node] >= 0 && o->released[node] < 0;
}

/* ---- streams ---- */

/* Release what `stream` has submitted if that is at least n tasks. */
static inline void release_from(const program *p, slow_sim *o, int64_t stream, int64_t n, int64_t now)
{
    int64_t found = 0;
    for (int64_t t = 0; t < p->n; t++)
        found += p->stream[t] == stream && is_unreleased(p, o, t);
    for (int64_t t = 0; t < p->n && found >= n; t++)
        if (p->stream[t] == stream && is_unreleased(p, o, t))
            o->released[t] = now;
}

static inline void submit_one(const program *p, slow_sim *o, int64_t task, int64_t held, int64_t now)
{
    const pto_sim_options *rules = &p->rules;
    int64_t stream = p->stream[task], weight = weight_of(p, task);
    o->submitted[task] = now;
    o->held[task] = o->stood[stream];
    o->busy_until[stream] = now + rules->submit_cycles;
    if (rules->window_mode == PTO_WINDOW_BENCHMARK)
        o->window_stalls += rules->window > 0 && weight > 0 && held + weight > rules->window;
    if (held + weight > o->high_water)
        o->high_water = held + weight;
    if (++o->n_submitted == rules->start_after && o->started < 0)
        o->started = now;
    if (rules->timing == PTO_TIMING_IMMEDIATE)
        o->released[task] = now;
    if (rules->timing == PTO_TIMING_BATCHED)
        release_from(p, o, stream, rules->timing_n, now);
}

/* Submit what `stream` may; true if that was anything. */
static inline bool submit_of(const program *p, slow_sim *o, int64_t stream, int64_t now)
{
    bool changed = false, retiring = true;
    int64_t held = 0;
    for (int64_t t = 0; t < p->n; t++) {
        if (p->stream[t] != stream)
            continue;
        if (o->submitted[t] >= 0) {
            if (p->is_task[t])
                retiring &= is_done(o, t, now);
            held += p->is_task[t] && !retiring ? weight_of(p, t) : 0;
            if (!p->is_task[t] && p->blocks[t] && !is_done(o, t, now))
                return changed;
            continue;
        }
        if (now < o->busy_until[stream])
            return changed;
        if (p->is_task[t]) {
            int64_t weight = weight_of(p, t), *since = &o->full_since[stream];
            if (p->rules.window > 0 && p->rules.window_mode != PTO_WINDOW_BENCHMARK && weight > 0 && held + weight > p->rules.window) {
                *since = *since < 0 ? now : *since;
                return changed;
            }
            if (*since >= 0 && now > *since) {
                o->window_stalls++;
                o->window_stall_cycles += now - *since;
            }
            *since = -1;
            submit_one(p, o, t, held, now);
            held += weight;
            retiring = false;
            changed = true;
            continue;
        }
        o->submitted[t] = now;
        changed = true;
        if (is_ready(p, o, t, now))
            o->end[t] = now + p->cost[t];
        if (p->blocks[t] && !is_done(o, t, now))
            return true;
    }
    return changed;
}

/* All that can be submitted has been. */
static inline void settle(const program *p, slow_sim *o, int64_t now)
{
    bool is_stuck = true;
    for (int64_t s = 0; s < p->n_streams; s++) {
        bool stands = now >= o->busy_until[s];
        is_stuck &= stands;
        if (stands && p->rules.timing == PTO_TIMING_BATCHED)
            release_from(p, o, s, 1, now);
    }
    if (is_stuck && o->started < 0)
        o->started = now;
    while (p->rules.timing == PTO_TIMING_RATE) {
        int64_t next = -1, num = p->rules.release_num, den = p->rules.release_den;
        for (int64_t t = 0; t < p->n; t++)
            if (is_unreleased(p, o, t) && (next < 0 || o->submitted[t] < o->submitted[next]))
                next = t;
        if (next < 0 || now * den < o->due)
            return;
        if ((now - 1) * den >= o->due)         /* it could have gone in the cycle before */
            o->due = now * den;
        o->due += num;
        o->released[next] = now;
    }
}

/* What holds every stream now that time goes on. */
static inline void stand(const program *p, slow_sim *o, int64_t now)
{
    for (int64_t s = 0; s < p->n_streams; s++) {
        o->stood[s] = now < o->busy_until[s] ? PTO_HELD_SUBMIT : o->full_since[s] >= 0 ? PTO_HELD_WINDOW : PTO_HELD_MARK;
        if (o->stood[s] != PTO_HELD_WINDOW)
            continue;
        int64_t next = 0;
        while (p->stream[next] != s || o->submitted[next] >= 0)
            next++;
        if ((p->rules.window_mode == PTO_WINDOW_ABORT || weight_of(p, next) > p->rules.window) &&
            (o->window_task < 0 || next < o->window_task))
            o->window_task = next;
    }
}

/* ---- executors ---- */

static inline bool may_run(const slow_sim *o, int64_t task)
{
    return o->ready[task] >= 0 && o->released[task] >= 0 && o->started >= 0 && o->start[task] < 0;
}

static inline int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline bool dispatch_to(const program *p, slow_sim *o, int64_t worker, int64_t now)
{
    int64_t best = -1, since = 0;
    for (int64_t t = 0; t < p->n; t++) {
        if (!p->is_task[t] || p->worker[t] != worker)
            continue;
        if (o->start[t] >= 0 && !is_done(o, t, now))
            return false;
        int64_t from = later(o->ready[t], o->released[t]);
        if (may_run(o, t) && (best < 0 || from < since)) {
            best = t;
            since = from;
        }
    }
    if (best < 0)
        return false;
    const int64_t times[] = {o->submitted[best], o->ready[best], o->released[best], o->started, now};
    const int64_t held[] = {o->held[best], PTO_HELD_EDGE, PTO_HELD_RELEASE, PTO_HELD_START, PTO_HELD_EXECUTOR};
    for (int32_t i = 1, latest = 0; i < 5; i++)
        if (times[i] > times[latest]) {
            latest = i;
            o->held[best] = held[i];
        }
    o->start[best] = now;
    o->end[best] = now + p->cost[best];
    return p->cost[best] == 0;
}

static inline void count_idleness(const program *p, slow_sim *o, int64_t now)
{
    bool stands = false;
    for (int64_t t = 0; t < p->n; t++)
        stands |= p->is_task[t] && may_run(o, t);
    for (int64_t w = 0; w < p->rules.n_workers; w++) {
        bool busy = false, waits = false;
        for (int64_t t = 0; t < p->n; t++) {
            if (!p->is_task[t] || p->worker[t] != w || o->submitted[t] < 0)
                continue;
            busy |= o->start[t] >= 0 && !is_done(o, t, now);
            waits |= o->ready[t] < 0;
        }
        o->waiting[w] += !busy && waits && !stands;
        o->late[w] += !busy && stands;
    }
}

static inline void find_chains(const program *p, slow_sim *o)
{
    int64_t front[MAX_STREAMS] = {0};
    for (int64_t t = 0; t < p->n; t++) {
        o->chain[t] = front[p->stream[t]];
        for (int32_t k = 0; k < MAX_PREDS; k++)
            if (p->pred[t][k] >= 0 && o->chain[p->pred[t][k]] > o->chain[t])
                o->chain[t] = o->chain[p->pred[t][k]];
        o->chain[t] += p->cost[t];
        if (p->is_task[t]) {
            o->longest = later(o->chain[t], o->longest);
            o->total = later(o->end[t], o->total);
        } else if (p->blocks[t]) {
            front[p->stream[t]] = o->chain[t];
            int64_t since = p->stall[t] == PTO_STALL_READ ? 0 : structure_done(p, o, t);
            since = later(since, o->submitted[t]);
            count_stall(o, PTO_STALL_NONE, o->submitted[t], since);
            count_stall(o, p->stall[t], since, o->end[t]);
        }
    }
}

/* Ends early, with window_task, where a window does. */
static inline void simulate_slowly(const program *p, slow_sim *o)
{
    int64_t n_done = 0;
    memset(o, 0, sizeof *o);
    memset(o->submitted, 0xff, sizeof o->submitted);
    memset(o->ready, 0xff, sizeof o->ready);
    memset(o->released, 0xff, sizeof o->released);
    memset(o->start, 0xff, sizeof o->start);
    memset(o->end, 0xff, sizeof o->end);
    memset(o->full_since, 0xff, sizeof o->full_since);
    o->started = p->rules.start_after == 0 ? 0 : -1;
    o->window_task = -1;
    for (int64_t now = 0; n_done < p->n && o->window_task < 0; now++) {
        for (bool again = true; again;) {
            for (bool changed = true; changed;) {
                changed = false;
                for (int64_t t = 0; t < p->n; t++)
                    if (!p->is_task[t] && o->end[t] < 0 && is_ready(p, o, t, now)) {
                        o->end[t] = now + p->cost[t];
                        changed = true;
                    }
                for (int64_t s = 0; s < p->n_streams; s++)
                    changed |= submit_of(p, o, s, now);
            }
            for (int64_t t = 0; t < p->n; t++)
                if (p->is_task[t] && o->ready[t] < 0 && is_ready(p, o, t, now))
                    o->ready[t] = now;
            settle(p, o, now);
            again = false;
            for (int64_t w = 0; w < p->rules.n_workers; w++)
                again |= dispatch_to(p, o, w, now);
        }
        n_done = 0;
        for (int64_t t = 0; t < p->n; t++)
            n_done += is_done(o, t, now);
        stand(p, o, now);
        count_idleness(p, o, now);
    }
    if (o->window_task < 0)
        find_chains(p, o);
}

/* ---- programs ---- */

/* Every stream begins with a mark, so that all are open from the start; some rest for good, here and there. */
static inline void random_program(program *p)
{
    bool rests[MAX_STREAMS] = {false};
    memset(p, 0, sizeof *p);
    p->n_streams = pick(1, MAX_STREAMS);
    p->rules.n_workers = pick(1, MAX_WORKERS);
    p->rules.window = pick(0, 2) ? pick(1, 6) : 0;
    p->rules.keep_trace = 1;
    p->n = pick(p->n_streams + 1, MAX_NODES);
    for (int64_t t = 0; t < p->n; t++) {
        int64_t stream = t < p->n_streams ? t : pick(0, p->n_streams - 1);
        while (rests[stream])
            stream = (stream + 1) % p->n_streams;
        int64_t n_going_on = 0;
        for (int64_t s = 0; s < p->n_streams; s++)
            n_going_on += !rests[s];
        p->rests[t] = rests[stream] = t >= p->n_streams && n_going_on > 1 && pick(0, 14) == 0;
        bool is_mark = t < p->n_streams || p->rests[t] || pick(0, 2) == 0;
        p->is_task[t] = !is_mark;
        p->stream[t] = stream;
        p->cost[t] = pick(0, 2) ? pick(0, 6) : 0;
        p->worker[t] = pick(0, p->rules.n_workers - 1);
        p->blocks[t] = is_mark && pick(0, 1);
        p->stall[t] = pick(0, PTO_N_STALLS - 1);
        for (int32_t k = 0; k < MAX_PREDS; k++) {
            p->pred[t][k] = t > 0 && pick(0, 2) == 0 ? pick(t > 12 ? t - 12 : 0, t - 1) : -1;
            p->is_order[t][k] = t % 4 == 3 && k > 0 ? p->is_order[t][0] : pick(0, 1);
        }
    }
}

/* One orchestrator for both: the program comes in through a global, as an artifact's would through its bindings. */
static program current;

static inline int32_t orchestrate(const pto_bindings *bindings, pto_sink *sink)
{
    static char memory[64];
    int64_t node[MAX_NODES];
    (void)bindings;
    for (int64_t t = 0; t < current.n; t++) {
        int64_t order[MAX_PREDS];
        for (int32_t k = 0; k < MAX_PREDS; k++)
            order[k] = current.pred[t][k] < 0 ? -1 : node[current.pred[t][k]];
        if (t % 4 == 3) {       /* the same predecessors through a join */
            int64_t join = sink->join_open(sink);
            for (int32_t k = 0; k < MAX_PREDS; k++)
                sink->join_add(sink, join, order[k]);
            order[0] = sink->join_close(sink, join, -1);
            order[1] = order[2] = -1;
        }
        if (current.is_task[t]) {
            pto_arg args[4];    /* the first writes an intermediate, the others only count as entries */
            for (int32_t i = 0; i < 4; i++)
                args[i] = (pto_arg){.data = memory, .extent = {1, current.bytes[t]}, .stride = {1, 1}, .elem_bytes = 1,
                                    .flags = i == 0 ? PTO_KEPT | PTO_WRITE : i == 1 ? PTO_KEPT | PTO_READ : PTO_WRITE};
            pto_task one = {.stream = (int32_t)current.stream[t], .worker = current.worker[t], .cost = current.cost[t],
                            .n_order = MAX_PREDS, .order = order, .n_args = (int32_t)current.entries[t], .args = args};
            node[t] = sink->submit(sink, &one);
        } else {
            int64_t structural[MAX_PREDS], before[MAX_PREDS];
            for (int32_t k = 0; k < MAX_PREDS; k++) {
                structural[k] = current.is_order[t][k] ? order[k] : -1;
                before[k] = current.is_order[t][k] ? -1 : order[k];
            }
            pto_mark one = {.stream = (int32_t)current.stream[t], .stall = (int32_t)current.stall[t],
                            .flags = (current.blocks[t] ? PTO_MARK_BLOCKS : 0) | (current.rests[t] ? PTO_MARK_RESTS : 0),
                            .delay = current.cost[t], .n_order = MAX_PREDS, .order = structural,
                            .why = PTO_EDGE_CHANNEL, .n_before = MAX_PREDS, .before = before};
            node[t] = sink->mark(sink, &one);
        }
    }
    return sink->status;
}

/* Feed the program whole, or in chunks of at most `chunk` tasks; *out lives as long as the simulator that is returned. */
static inline pto_sim *simulate_current(int64_t chunk, int32_t *status, pto_sim_result *out)
{
    pto_record *record = pto_record_new(&(pto_record_options){.max_tasks = chunk, .window = current.rules.window});
    pto_sim *sim = pto_sim_new(&current.rules);
    pto_execute_result ran;
    *status = pto_run(NULL, record, &(pto_run_options){.orchestrate = orchestrate, .sim = sim}, &ran);
    pto_columns c;
    pto_record_columns(record, &c);
    if (*status == PTO_OK && c.first_node == 0)
        *status = pto_sim_feed(sim, record);
    int32_t finished = pto_sim_finish(sim, out);
    CHECK(*status == PTO_OK || *status == finished);
    *status = finished;
    pto_record_free(record);
    return sim;
}

static inline void check_same(const pto_sim_result *r, const program *p, const slow_sim *o)
{
    for (int64_t t = 0, at = 0; t < p->n; t++) {
        if (!p->is_task[t])
            continue;
        CHECK_EQ(r->submit[at], o->submitted[t]);
        CHECK_EQ(r->start[at], o->start[t]);
        CHECK_EQ(r->end[at], o->end[t]);
        CHECK_EQ(r->ready[at], o->ready[t]);
        CHECK_EQ(r->held[at], o->held[t]);
        at++;
    }
    CHECK_EQ(r->total_cycles, o->total);
    CHECK_EQ(r->critical_path, o->longest);
    CHECK_EQ(r->window_stalls, o->window_stalls);
    CHECK_EQ(r->window_stall_cycles, o->window_stall_cycles);
    CHECK_EQ(r->window_high_water, o->high_water);
    CHECK(memcmp(r->stalls, o->stalls, sizeof r->stalls) == 0);
    CHECK(memcmp(r->stall_cycles, o->stall_cycles, sizeof r->stall_cycles) == 0);
    for (int64_t w = 0; w < p->rules.n_workers; w++)
        CHECK(r->waiting[w] == o->waiting[w] && r->late[w] == o->late[w]);
}

#endif
