/* test_sim_pick.c: random tasks under random rules of executors, against a simulator that looks at every cycle and every task. */
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

static int64_t turn_of(const slow_sim *o, int64_t t, int64_t pool, int64_t worker)      /* how many classes come first */
{
    int64_t k = o->p->rules.timing_n, served = o->served[pool][o->p->rules.is_shared ? 0 : worker];
    return o->p->rules.timing == PTO_TIMING_INTERLEAVED ? (o->p->task[t].lane % k - served - 1 + k) % k : 0;
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
        o->served[pool][o->p->rules.is_shared ? 0 : from] = o->p->task[t].lane % o->p->rules.timing_n;
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

/* ---- random programs ---- */

static program current;

static void random_rules(program *p)
{
    pto_sim_options *o = &p->rules;
    *o = (pto_sim_options){.n_workers = pick(1, MAX_WORKERS), .keep_trace = 1, .window = pick(0, 1) ? pick(1, 12) : 0};
    o->n_pools = (int32_t)pick(0, MAX_POOLS);
    o->is_calendar = pick(0, 4) == 0;
    for (int32_t i = 0; i < MAX_POOLS; i++)
        p->size[i] = o->n_pools == 0 ? 1 : i >= o->n_pools ? 0 : o->is_calendar ? 1 : pick(i > 0 ? 0 : 1, MAX_SIZE);
    if (!o->is_calendar) {
        o->is_shared = pick(0, 3) == 0;
        o->steals = pick(0, 2) == 0;
        o->timing = pick(0, 3) == 0 ? PTO_TIMING_INTERLEAVED : PTO_TIMING_IMMEDIATE;
    }
    o->timing_n = pick(1, 4);
    o->dispatch_cycles = pick(0, 2) ? 0 : pick(1, 3);
    o->retire_cycles = pick(0, 2) ? 0 : pick(1, 3);
    o->bytes_per_cycle = pick(0, 2) ? 0 : (double)pick(1, 9) / (double)pick(1, 2);
    o->pool_size = p->size;
    p->has_lanes = pick(0, 1);
    p->has_pools = o->n_pools != 1 && pick(0, 3);
}

static void random_program(program *p)
{
    int64_t last_of[6] = {NONE, NONE, NONE, NONE, NONE, NONE}, slack = pick(0, 9) ? 0 : 8, most_ready = pick(0, 1);
    memset(p, 0, sizeof *p);
    random_rules(p);
    p->n = pick(1, MAX_TASKS);
    for (int64_t t = 0; t < p->n; t++) {
        pto_task *task = &p->task[t];
        do
            task->pool = p->has_pools ? pick(0, MAX_POOLS - 1) : 0;
        while (p->size[task->pool] == 0);
        task->worker = pick(0, p->rules.n_workers - 1);
        task->cost = pick(0, 3) ? pick(0, 7) : 0;
        task->priority = p->rules.n_pools == 2 ? pick(-1, 1) : 0;
        task->position = 10 * t + 7 * pick(0, slack);      /* no two are the same, as 7 * 8 < 70 */
        task->bytes = pick(0, 2) ? pick(0, 40) : 0;
        task->lane = p->has_lanes ? pick(0, 5) : 0;
        for (int32_t k = 0; k < MAX_PREDS; k++)
            p->pred[t][k] = t > 0 && pick(0, 2 + 3 * most_ready) == 0 ? pick(t > 9 ? t - 9 : 0, t - 1) : NONE;
        p->pred[t][MAX_PREDS] = task->lane > 0 ? last_of[task->lane] : NONE;
        last_of[task->lane] = t;
    }
}

static int32_t orchestrate(const pto_bindings *bindings, pto_sink *sink)
{
    int64_t node[MAX_TASKS];
    (void)bindings;
    for (int64_t t = 0; t < current.n; t++) {
        pto_task task = current.task[t];
        int64_t order[MAX_PREDS];
        for (int32_t k = 0; k < MAX_PREDS; k++)
            order[k] = current.pred[t][k] < 0 ? NONE : node[current.pred[t][k]];
        task.order = order;
        task.n_order = MAX_PREDS;
        node[t] = sink->submit(sink, &task);
    }
    return sink->status;
}

static int64_t executor_of(const program *p, int64_t pool, int64_t worker, int64_t slot)
{
    int64_t at = worker * p->size[pool] + slot;
    for (int64_t i = 0; i < pool; i++) {
        bool is_named = p->rules.n_pools > 0;
        for (int64_t t = 0; t < p->n; t++)
            is_named |= p->task[t].pool == i;
        at += is_named ? p->rules.n_workers * p->size[i] : 0;
    }
    return at;
}

/* That the reasons given for a task stood there, and held when they are said to. */
static void check_held(const pto_sim_result *r, const program *p, const slow_sim *o, int64_t t)
{
    int64_t by = r->held_by[t];
    bool is_pred = false;
    for (int32_t k = 0; k <= MAX_PREDS; k++)
        is_pred |= by >= 0 && p->pred[t][k] == by;
    switch (r->held[t]) {
    case PTO_HELD_NOT:
        CHECK(o->begun[t] == o->submitted[t] && o->submitted[t] == 0 && by == NONE);
        break;
    case PTO_HELD_EDGE:
        CHECK(is_pred && o->done[by] == o->begun[t]);
        break;
    case PTO_HELD_EXECUTOR:
    case PTO_HELD_CALENDAR:
        CHECK(by >= 0 && r->executor[by] == r->executor[t] && r->end[by] == o->begun[t] && o->ready[t] < o->begun[t]);
        CHECK_EQ(r->held[t] == PTO_HELD_CALENDAR, p->rules.is_calendar && o->start[by] > o->ready[t]);
        break;
    case PTO_HELD_WINDOW:
        CHECK(by >= 0 && o->done[by] == o->begun[t]);
        break;
    case PTO_HELD_DISPATCH:
        CHECK(has_servers(p) && o->ready[t] < o->begun[t]);
        break;
    default:
        CHECK(false);
    }
}

static void check_same(const pto_sim_result *r, const program *p, const slow_sim *o)
{
    for (int64_t t = 0; t < p->n; t++) {
        CHECK(r->submit[t] == o->submitted[t] && r->ready[t] == o->ready[t]);
        CHECK_EQ(r->start[t], o->start[t]);
        CHECK_EQ(r->end[t], o->end[t]);
        CHECK_EQ(r->executor[t], executor_of(p, p->task[t].pool, o->worker[t], o->slot[t]));
        check_held(r, p, o, t);
    }
    CHECK_EQ(r->total_cycles, o->total);
    CHECK_EQ(r->memory_cycles, o->memory_cycles);
    CHECK(r->total_cycles >= r->critical_path && r->total_cycles * r->n_executors >= r->work);
    int64_t n = 0;
    for (int64_t pool = 0; pool < MAX_POOLS; pool++) {
        bool is_named = p->rules.n_pools > 0;
        for (int64_t t = 0; t < p->n; t++)
            is_named |= p->task[t].pool == pool;
        for (int64_t w = 0; w < p->rules.n_workers && is_named; w++)
            for (int64_t slot = 0; slot < p->size[pool]; slot++, n++) {
                CHECK_EQ(r->pool[n], pool);
                CHECK_EQ(r->busy[n], o->busy[pool][w][slot]);
                CHECK_EQ(r->waiting[n], o->waiting[pool][w][slot]);
                CHECK_EQ(r->late[n], o->late[pool][w][slot]);
            }
    }
    CHECK_EQ(r->n_executors, n);
}

static void random_rules_agree_and_chunks_change_nothing(void)
{
    int64_t n_stuck = 0, seen[PTO_HELD_CALENDAR + 1] = {0}, n = CASES(4000);
    for (int64_t i = 0; i < n; i++) {
        static slow_sim slow;
        random_program(&current);
        simulate_slowly(&current, &slow);
        n_stuck += slow.is_stuck;
        for (int32_t cut = 0; cut < 2 - current.rules.is_calendar; cut++) {
            pto_record_options options = {.keep = PTO_KEEP_POOL | PTO_KEEP_BYTES | PTO_KEEP_POSITION | (current.has_lanes ? PTO_KEEP_LANE : 0) |
                                                  (current.rules.n_pools == 2 ? PTO_KEEP_PRIORITY : 0),
                                          .max_tasks = cut ? pick(1, 20) : 0, .window = current.rules.window};
            pto_record *record = pto_record_new(&options);
            pto_sim *sim = pto_sim_new(&current.rules);
            pto_execute_result ran;
            pto_sim_result r;
            pto_columns c;
            int32_t status = pto_run(NULL, record, &(pto_run_options){.orchestrate = orchestrate, .sim = sim}, &ran);
            pto_record_columns(record, &c);
            if (status == PTO_OK && c.first_task == 0)
                status = pto_sim_feed(sim, record);
            int32_t finished = pto_sim_finish(sim, &r);
            CHECK_EQ(status == PTO_OK ? finished : status, slow.is_stuck ? PTO_E_DEADLOCK : PTO_OK);
            if (!slow.is_stuck && status == PTO_OK) {
                check_same(&r, &current, &slow);
                for (int64_t t = 0; t < current.n; t++)
                    seen[r.held[t]]++;
            }
            pto_sim_free(sim);
            pto_record_free(record);
        }
    }
    CHECK(n_stuck > n / 200 && n_stuck < n / 10);
    CHECK(seen[PTO_HELD_NOT] && seen[PTO_HELD_EDGE] && seen[PTO_HELD_EXECUTOR] && seen[PTO_HELD_WINDOW] && seen[PTO_HELD_DISPATCH] &&
          seen[PTO_HELD_CALENDAR]);
}

int main(void)
{
    static const check_test tests[] = {TEST(random_rules_agree_and_chunks_change_nothing)};
    return RUN_TESTS(tests);
}
