/* slow_executors.h: which executor runs a task, and when, by the words of pto_library.h: every cycle and every task is looked at. */
#ifndef PTO_SLOW_EXECUTORS_H
#define PTO_SLOW_EXECUTORS_H
#include "check.h"

enum { MAX_TASKS = 40, MAX_PREDS = 3, MAX_WORKERS = 3, MAX_POOLS = 3, MAX_SIZE = 3, NONE = -1 };

typedef struct program {
    int64_t n, size[MAX_POOLS];
    pto_sim_options rules;
    pto_task task[MAX_TASKS];
    int64_t pred[MAX_TASKS][MAX_PREDS + 1];        /* NONE: none; the last one is of the lane */
    bool has_lanes, has_pools;
} program;

/* Times, NONE: not yet. A task is begun when an executor takes it, and done when others see it completed. */
typedef struct slow_sim {
    const program *p;
    int64_t now, total, next, memory_cycles;
    int64_t submitted[MAX_TASKS], ready[MAX_TASKS], begun[MAX_TASKS], start[MAX_TASKS], end[MAX_TASKS], done[MAX_TASKS];
    int64_t worker[MAX_TASKS], slot[MAX_TASKS];    /* of its executor: in its pool, slot of its worker */
    double left[MAX_TASKS], factor;
    int64_t served[MAX_POOLS][MAX_WORKERS];
    int64_t acts_until[MAX_WORKERS], acts_on[MAX_WORKERS];     /* NONE: free */
    bool retires[MAX_WORKERS];
    int64_t busy[MAX_POOLS][MAX_WORKERS][MAX_SIZE], waiting[MAX_POOLS][MAX_WORKERS][MAX_SIZE], late[MAX_POOLS][MAX_WORKERS][MAX_SIZE];
    bool is_stuck;
} slow_sim;

static bool has_servers(const program *p)
{
    return p->rules.dispatch_cycles > 0 || p->rules.retire_cycles > 0;
}

static bool is_slowed(const program *p, int64_t t)
{
    return p->rules.bytes_per_cycle > 0 && p->task[t].bytes > 0 && p->task[t].cost > 0;
}

static bool stands(const slow_sim *o, int64_t t)
{
    return o->ready[t] >= 0 && o->begun[t] < 0;
}

/* Whether the task stands in the queue of this pool and worker (of the pool, where they share). */
static bool is_queued(const slow_sim *o, int64_t t, int64_t pool, int64_t worker)
{
    const pto_task *task = &o->p->task[t];
    return task->pool == pool && (o->p->rules.is_shared || task->worker == worker);
}

static int64_t class_of(const program *p, int64_t t)       /* of no lane: the last */
{
    return (p->task[t].lane - 1 + p->rules.timing_n) % p->rules.timing_n;
}

static int64_t turn_of(const slow_sim *o, int64_t t, int64_t pool, int64_t worker)      /* how many classes come first */
{
    int64_t k = o->p->rules.timing_n, served = o->served[pool][o->p->rules.is_shared ? 0 : worker];
    return o->p->rules.timing == PTO_TIMING_INTERLEAVED ? (class_of(o->p, t) - served - 1 + k) % k : 0;
}

static bool goes_first(const slow_sim *o, int64_t a, int64_t b, int64_t turn_a, int64_t turn_b)
{
    const pto_task *task = o->p->task;
    if (task[a].priority != task[b].priority)
        return task[a].priority > task[b].priority;
    if (turn_a != turn_b)
        return turn_a < turn_b;
    return o->ready[a] != o->ready[b] ? o->ready[a] < o->ready[b] : a < b;
}

static int64_t head_of(const slow_sim *o, int64_t pool, int64_t worker)
{
    int64_t best = NONE;
    for (int64_t t = 0; t < o->p->n; t++) {
        if (!is_queued(o, t, pool, worker) || o->begun[t] >= 0)
            continue;
        if (o->p->rules.is_calendar) {
            if (best < 0 || o->p->task[t].position < o->p->task[best].position)
                best = t;
        } else if (stands(o, t) &&
                   (best < 0 || goes_first(o, t, best, turn_of(o, t, pool, worker), turn_of(o, best, pool, worker)))) {
            best = t;
        }
    }
    return best >= 0 && stands(o, best) ? best : NONE;
}

/* What an executor is about: a task that was begun there and has not ended; NONE: it is idle. */
static int64_t runs(const slow_sim *o, int64_t pool, int64_t worker, int64_t slot)
{
    for (int64_t t = 0; t < o->p->n; t++)
        if (o->p->task[t].pool == pool && o->worker[t] == worker && o->slot[t] == slot && o->begun[t] >= 0 && o->end[t] < 0)
            return t;
    return NONE;
}

static int64_t idle_slot(const slow_sim *o, int64_t pool, int64_t worker)
{
    for (int64_t slot = 0; slot < o->p->size[pool]; slot++)
        if (runs(o, pool, worker, slot) < 0)
            return slot;
    return NONE;
}

static int64_t idle_since(const slow_sim *o, int64_t pool, int64_t worker)
{
    int64_t since = o->now;
    for (int64_t slot = 0; slot < o->p->size[pool]; slot++) {
        int64_t last = 0;
        if (runs(o, pool, worker, slot) >= 0)
            continue;
        for (int64_t t = 0; t < o->p->n; t++)
            if (o->p->task[t].pool == pool && o->worker[t] == worker && o->slot[t] == slot && o->end[t] > last)
                last = o->end[t];
        since = last < since ? last : since;
    }
    return since;
}

static void begin(slow_sim *o, int64_t t, int64_t from, int64_t worker)      /* from: the worker whose queue it was in */
{
    int64_t pool = o->p->task[t].pool;
    o->slot[t] = idle_slot(o, pool, worker);
    o->worker[t] = worker;
    o->begun[t] = o->now;
    if (o->p->rules.timing == PTO_TIMING_INTERLEAVED)
        o->served[pool][o->p->rules.is_shared ? 0 : from] = class_of(o->p, t);
    if (!has_servers(o->p))
        o->start[t] = o->now;
}

/* Of the heads of all queues of a pool the one that goes first, without turns: each queue has taken its own. */
static int64_t foreign_head(const slow_sim *o, int64_t pool, int64_t *from)
{
    int64_t best = NONE;
    for (int64_t w = 0; w < o->p->rules.n_workers; w++) {
        int64_t t = head_of(o, pool, w);
        if (t >= 0 && (best < 0 || goes_first(o, t, best, 0, 0))) {
            best = t;
            *from = w;
        }
    }
    return best;
}

static bool dispatch(slow_sim *o)
{
    bool any = false;
    int64_t from = 0;
    for (int64_t pool = 0; pool < MAX_POOLS; pool++) {
        for (int64_t w = 0; w < o->p->rules.n_workers; w++)
            for (int64_t t; idle_slot(o, pool, w) >= 0 && (t = head_of(o, pool, w)) >= 0; any = true)
                begin(o, t, w, w);
        for (int64_t w = 0; w < o->p->rules.n_workers && o->p->rules.steals; w++)
            for (int64_t t; idle_slot(o, pool, w) >= 0 && (t = foreign_head(o, pool, &from)) >= 0; any = true)
                begin(o, t, from, w);
    }
    return any;
}

/* A free worker does what has been wanted longest; steals: of queues that are not its own. */
static bool serve(slow_sim *o, int64_t w, bool steals)
{
    int64_t best = NONE, best_since = 0, from = w;
    bool retires = false;
    for (int64_t t = 0; t < o->p->n && !steals; t++)
        if (o->worker[t] == w && o->end[t] >= 0 && o->done[t] < 0 && (best < 0 || o->end[t] < o->end[best])) {
            best = t;
            best_since = o->end[t];
            retires = true;
        }
    for (int64_t pool = 0; pool < MAX_POOLS; pool++) {
        int64_t queue = w, t = steals ? foreign_head(o, pool, &queue) : head_of(o, pool, w), since = idle_since(o, pool, w);
        if (t < 0 || idle_slot(o, pool, w) < 0 || (steals && head_of(o, pool, w) >= 0))
            continue;
        since = o->ready[t] > since ? o->ready[t] : since;
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

static bool serve_all(slow_sim *o)
{
    bool any = false;
    for (int32_t steals = 0; steals <= o->p->rules.steals; steals++)
        for (int64_t w = 0; w < o->p->rules.n_workers; w++)
            if (o->acts_on[w] < 0)
                any |= serve(o, w, steals);
    return any;
}

static bool end_what_ends(slow_sim *o)
{
    bool any = false;
    for (int64_t t = 0; t < o->p->n; t++) {
        if (o->start[t] < 0 || o->end[t] >= 0)
            continue;
        if (is_slowed(o->p, t) ? o->left[t] * o->factor > 1e-6 : o->start[t] + o->p->task[t].cost > o->now)
            continue;
        any = true;
        o->end[t] = o->now;
        o->memory_cycles += o->now - o->start[t] - o->p->task[t].cost;
        if (!has_servers(o->p))
            o->done[t] = o->now;
    }
    for (int64_t w = 0; w < o->p->rules.n_workers; w++)
        if (o->acts_on[w] >= 0 && o->acts_until[w] == o->now) {
            (o->retires[w] ? o->done : o->start)[o->acts_on[w]] = o->now;
            o->acts_on[w] = NONE;
            any = true;
        }
    return any;
}

static void submit_and_make_ready(slow_sim *o)
{
    int64_t retired = 0;
    while (retired < o->next && o->done[retired] >= 0)
        retired++;
    while (o->next < o->p->n && (o->p->rules.window == 0 || o->next - retired < o->p->rules.window))
        o->submitted[o->next++] = o->now;
    for (int64_t t = 0; t < o->next; t++) {
        bool ready = true;
        for (int32_t k = 0; k <= MAX_PREDS; k++)
            ready &= o->p->pred[t][k] < 0 || o->done[o->p->pred[t][k]] >= 0;
        if (ready && o->ready[t] < 0)
            o->ready[t] = o->now;
    }
}

/* What executors do in the cycle that begins now. */
static void count(slow_sim *o)
{
    double asked = 0;
    for (int64_t pool = 0; pool < MAX_POOLS; pool++) {
        bool any = false;
        for (int64_t t = 0; t < o->p->n; t++)
            any |= o->p->task[t].pool == pool && stands(o, t);
        for (int64_t w = 0; w < o->p->rules.n_workers; w++)
            for (int64_t slot = 0; slot < o->p->size[pool]; slot++) {
                int64_t running = runs(o, pool, w, slot);
                bool waits = false;
                for (int64_t t = 0; t < o->p->n; t++)
                    waits |= is_queued(o, t, pool, w) && o->submitted[t] >= 0 && o->ready[t] < 0;
                if (running >= 0 && o->start[running] >= 0)
                    o->busy[pool][w][slot]++;
                else if (running >= 0 || any)
                    o->late[pool][w][slot]++;
                else if (waits)
                    o->waiting[pool][w][slot]++;
            }
    }
    for (int64_t t = 0; t < o->p->n; t++)
        if (is_slowed(o->p, t) && o->start[t] >= 0 && o->end[t] < 0)
            asked += (double)o->p->task[t].bytes / (double)o->p->task[t].cost;
    o->factor = asked > o->p->rules.bytes_per_cycle ? asked / o->p->rules.bytes_per_cycle : 1;
    for (int64_t t = 0; t < o->p->n; t++)
        if (is_slowed(o->p, t) && o->start[t] >= 0 && o->end[t] < 0)
            o->left[t] -= 1 / o->factor;
}

static void simulate_slowly(const program *p, slow_sim *o)
{
    memset(o, 0, sizeof *o);
    int64_t *times[] = {o->submitted, o->ready, o->begun, o->start, o->end, o->done, o->worker, o->slot};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        memset(times[i], 0xff, sizeof o->end);
    memset(o->served, 0xff, sizeof o->served);
    memset(o->acts_on, 0xff, sizeof o->acts_on);
    o->p = p;
    o->factor = 1;
    for (int64_t t = 0; t < p->n; t++)
        o->left[t] = (double)p->task[t].cost;
    for (;; o->now++) {
        bool goes_on = false, all_done = true;
        for (bool again = true; again;) {
            again = end_what_ends(o);
            submit_and_make_ready(o);
            again |= has_servers(p) ? serve_all(o) : dispatch(o);
        }
        for (int64_t t = 0; t < p->n; t++) {
            goes_on |= o->begun[t] >= 0 && o->done[t] < 0;
            all_done &= o->done[t] >= 0;
        }
        if (all_done || !goes_on) {
            o->is_stuck = !all_done;
            break;
        }
        count(o);
    }
    o->total = o->now;
}

#endif
