/* test_sim_pick.c: random tasks under random rules of executors, against slow_executors.h, and under all rules at once. */
#include "slow_executors.h"

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

/* Feeds all at once, or in chunks of so many tasks. */
static pto_sim *simulate_current(int64_t chunk, int32_t *status, pto_sim_result *r)
{
    int32_t keep = PTO_KEEP_POOL | PTO_KEEP_BYTES | PTO_KEEP_POSITION;
    keep |= (current.has_lanes ? PTO_KEEP_LANE : 0) | (current.rules.n_pools == 2 ? PTO_KEEP_PRIORITY : 0);
    pto_record *record = pto_record_new(&(pto_record_options){.keep = keep, .max_tasks = chunk, .window = current.rules.window});
    pto_sim *sim = pto_sim_new(&current.rules);
    pto_execute_result ran;
    pto_columns c;
    *status = pto_run(NULL, record, &(pto_run_options){.orchestrate = orchestrate, .sim = sim}, &ran);
    pto_record_columns(record, &c);
    if (*status == PTO_OK && c.first_task == 0)
        *status = pto_sim_feed(sim, record);
    int32_t finished = pto_sim_finish(sim, r);
    *status = *status == PTO_OK ? finished : *status;
    pto_record_free(record);
    return sim;
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
            int32_t status;
            pto_sim_result r;
            pto_sim *sim = simulate_current(cut ? pick(1, 20) : 0, &status, &r);
            CHECK_EQ(status, slow.is_stuck ? PTO_E_DEADLOCK : PTO_OK);
            if (!slow.is_stuck && status == PTO_OK) {
                check_same(&r, &current, &slow);
                for (int64_t t = 0; t < current.n; t++)
                    seen[r.held[t]]++;
            }
            pto_sim_free(sim);
        }
    }
    CHECK(n_stuck > n / 200 && n_stuck < n / 10);
    CHECK(seen[PTO_HELD_NOT] && seen[PTO_HELD_EDGE] && seen[PTO_HELD_EXECUTOR] && seen[PTO_HELD_WINDOW] && seen[PTO_HELD_DISPATCH] &&
          seen[PTO_HELD_CALENDAR]);
}

/* ---- all rules at once ---- */

static void add_rules_of_submission(pto_sim_options *o)
{
    if (o->timing == PTO_TIMING_IMMEDIATE)
        o->timing = (int32_t[]){PTO_TIMING_IMMEDIATE, PTO_TIMING_BATCHED, PTO_TIMING_RATE}[pick(0, 2)];
    o->release_num = pick(1, 12);
    o->release_den = pick(1, 5);
    o->start_after = (int64_t[]){0, 0, PTO_AFTER_ALL, pick(1, 20)}[pick(0, 3)];
    o->submit_cycles = pick(0, 1) ? pick(1, 4) : 0;
    if (o->window > 0 && pick(0, 3) == 0)
        o->window_mode = PTO_WINDOW_BENCHMARK;
}

/* Edges are kept, no executor runs two tasks, what is said of executors adds up. */
static void check_law(const pto_sim_result *r, const program *p)
{
    for (int64_t t = 0; t < p->n; t++) {
        CHECK(r->submit[t] <= r->ready[t] && r->ready[t] <= r->start[t] && r->start[t] + p->task[t].cost <= r->end[t]);
        CHECK(is_slowed(p, t) || r->start[t] + p->task[t].cost == r->end[t]);
        CHECK(r->end[t] + p->rules.retire_cycles <= r->total_cycles && r->start[t] >= r->ready[t] + p->rules.dispatch_cycles);
        for (int32_t k = 0; k <= MAX_PREDS; k++)
            CHECK(p->pred[t][k] < 0 || r->end[p->pred[t][k]] + p->rules.retire_cycles <= r->ready[t]);
        for (int64_t other = 0; other < t; other++)
            CHECK(r->executor[t] != r->executor[other] || r->start[t] >= r->end[other] || r->start[other] >= r->end[t]);
    }
    int64_t n_run = 0, busy = 0;
    for (int64_t i = 0; i < r->n_executors; i++) {
        CHECK(r->busy[i] >= 0 && r->waiting[i] >= 0 && r->late[i] >= 0);
        CHECK(r->busy[i] + r->waiting[i] + r->late[i] <= r->total_cycles);
        n_run += r->tasks_run[i];
        busy += r->busy[i];
    }
    CHECK(n_run == p->n && busy == r->work + r->memory_cycles);
    CHECK(r->total_cycles >= r->critical_path && r->total_cycles * r->n_executors >= r->work);
}

static void all_rules_together_keep_the_law(void)
{
    for (int64_t i = 0; i < CASES(3000); i++) {
        random_program(&current);
        add_rules_of_submission(&current.rules);
        int32_t status, cut_status;
        pto_sim_result r, cut;
        pto_sim *sim = simulate_current(0, &status, &r), *cut_sim = NULL;
        CHECK(status == PTO_OK || (status == PTO_E_DEADLOCK && current.rules.is_calendar));
        if (status == PTO_OK)
            check_law(&r, &current);
        if (status == PTO_OK && !current.rules.is_calendar) {
            cut_sim = simulate_current(pick(1, 20), &cut_status, &cut);
            CHECK(cut_status == PTO_OK && cut.total_cycles == r.total_cycles && cut.memory_cycles == r.memory_cycles);
            size_t bytes = (size_t)current.n * sizeof *r.start;
            CHECK(memcmp(r.start, cut.start, bytes) == 0 && memcmp(r.executor, cut.executor, bytes) == 0);
            CHECK(memcmp(r.held_by, cut.held_by, bytes) == 0 && memcmp(r.held, cut.held, (size_t)current.n) == 0);
        }
        pto_sim_free(cut_sim);
        pto_sim_free(sim);
    }
}

int main(void)
{
    static const check_test tests[] = {TEST(random_rules_agree_and_chunks_change_nothing), TEST(all_rules_together_keep_the_law)};
    return RUN_TESTS(tests);
}
