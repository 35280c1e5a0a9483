/* test_sim.c: virtual time: small cases by hand, random ones against a simulator that looks at every cycle. */
#include "check.h"

enum { MAX_TASKS = 60, MAX_PREDS = 3, MAX_WORKERS = 3 };

typedef struct stream {
    int64_t n, n_workers, window;
    int64_t cost[MAX_TASKS], worker[MAX_TASKS];
    int64_t pred[MAX_TASKS][MAX_PREDS];    /* -1: none */
} stream;

static int64_t submit(pto_sink *sink, int64_t worker, int64_t cost, const int64_t *order, int32_t n)
{
    pto_task task = {.worker = worker, .cost = cost, .n_order = n, .order = order};
    return sink->submit(sink, &task);
}

static pto_record *record_new(void)
{
    return pto_record_new(&(pto_record_options){0});
}

static pto_sim_result simulate(pto_sim **sim, const pto_record *record, int64_t n_workers, int64_t window)
{
    pto_sim_result result;
    *sim = pto_sim_new(&(pto_sim_options){.n_workers = n_workers, .window = window, .keep_trace = 1});
    CHECK_EQ(pto_sim_feed(*sim, record), PTO_OK);
    CHECK_EQ(pto_sim_finish(*sim, &result), PTO_OK);
    return result;
}

static void nothing_takes_no_time(void)
{
    pto_record *record = record_new();
    pto_sim *sim;
    pto_sim_result r = simulate(&sim, record, 2, 4);
    CHECK(r.total_cycles == 0 && r.n_tasks == 0 && r.critical_path == 0 && r.window_high_water == 0);
    pto_sim_free(sim);
    pto_record_free(record);
}

static void two_workers_halve_equal_tasks(void)
{
    pto_record *record = record_new();
    for (int64_t i = 0; i < 10; i++)
        submit(pto_record_sink(record), i % 2, 7, NULL, 0);
    pto_sim *sim;
    pto_sim_result r = simulate(&sim, record, 2, 0);
    CHECK_EQ(r.total_cycles, 35);
    CHECK_EQ(r.work, 70);
    CHECK_EQ(r.critical_path, 7);
    CHECK(r.busy[0] == 35 && r.busy[1] == 35 && r.waiting[0] == 0 && r.tasks_run[1] == 5);
    CHECK_EQ(r.window_high_water, 10);
    pto_sim_free(sim);
    pto_record_free(record);
}

/* Tasks a(5) on 0, b(3) on 1 after a, c(2) on 1 after nothing, window 2: c waits for a's slot until 5, is ready then
   together with b, and b has the lower id. */
static void a_window_delays_and_counts(void)
{
    pto_record *record = record_new();
    pto_sink *sink = pto_record_sink(record);
    int64_t a = submit(sink, 0, 5, NULL, 0);
    submit(sink, 1, 3, &a, 1);
    submit(sink, 1, 2, NULL, 0);
    pto_sim *sim;
    pto_sim_result r = simulate(&sim, record, 2, 2);
    CHECK_EQ(r.total_cycles, 10);
    CHECK(r.start[1] == 5 && r.start[2] == 8 && r.end[2] == 10 && r.ready[2] == 5);
    CHECK(r.window_stalls == 1 && r.window_stall_cycles == 5 && r.window_high_water == 2);
    CHECK(r.waiting[1] == 5 && r.waiting[0] == 0);
    pto_sim_free(sim);
    r = simulate(&sim, record, 2, 0);
    CHECK_EQ(r.total_cycles, 8);
    CHECK(r.start[2] == 0 && r.start[1] == 5);
    CHECK_EQ(r.waiting[1], 3);          /* 2 .. 5: c runs before that */
    CHECK_EQ(r.critical_path, 8);
    CHECK_EQ(r.window_stalls, 0);
    pto_sim_free(sim);
    pto_record_free(record);
}

/* A slot frees only when all earlier tasks are done: with window 2, task 1 is over at 1 but task 0 holds the ring. */
static void the_window_is_a_ring(void)
{
    pto_record *record = record_new();
    pto_sink *sink = pto_record_sink(record);
    submit(sink, 0, 9, NULL, 0);
    submit(sink, 1, 1, NULL, 0);
    submit(sink, 1, 1, NULL, 0);
    pto_sim *sim;
    pto_sim_result r = simulate(&sim, record, 2, 2);
    CHECK_EQ(r.start[2], 9);
    CHECK_EQ(r.total_cycles, 10);
    pto_sim_free(sim);
    pto_record_free(record);
}

static void joins_take_no_time_and_no_slot(void)
{
    pto_record *record = record_new();
    pto_sink *sink = pto_record_sink(record);
    int64_t a = submit(sink, 0, 4, NULL, 0), b = submit(sink, 1, 6, NULL, 0), join = sink->join_open(sink);
    sink->join_add(sink, join, a);
    sink->join_add(sink, join, b);
    int64_t both = sink->join_close(sink, join, -1);
    submit(sink, 0, 1, &both, 1);
    pto_sim *sim;
    pto_sim_result r = simulate(&sim, record, 2, 3);
    CHECK(r.total_cycles == 7 && r.n_tasks == 3 && r.critical_path == 7 && r.window_stalls == 0);
    CHECK(r.waiting[0] == 2 && r.ready[2] == 6);
    pto_sim_free(sim);
    pto_record_free(record);
}

static void tasks_of_no_cost_cascade(void)
{
    pto_record *record = record_new();
    int64_t last = -1;
    for (int64_t i = 0; i < 20; i++)
        last = submit(pto_record_sink(record), i % 3, 0, &last, 1);
    pto_sim *sim;
    pto_sim_result r = simulate(&sim, record, 3, 2);
    CHECK(r.total_cycles == 0 && r.n_tasks == 20 && r.window_stalls == 0 && r.tasks_run[0] == 7);
    pto_sim_free(sim);
    pto_record_free(record);
}

static void wrong_workers_and_foreign_chunks_are_refused(void)
{
    pto_record *record = record_new();
    submit(pto_record_sink(record), 2, 1, NULL, 0);
    pto_sim *sim = pto_sim_new(&(pto_sim_options){.n_workers = 2});
    CHECK_EQ(pto_sim_feed(sim, record), PTO_E_ARGUMENT);
    pto_record_reset(record);
    submit(pto_record_sink(record), 1, 1, NULL, 0);
    CHECK_EQ(pto_sim_feed(sim, record), PTO_OK);
    CHECK_EQ(pto_sim_feed(sim, record), PTO_E_ARGUMENT);
    pto_sim_free(sim);
    pto_record_free(record);
}

/* ---- against the same rules, written down cycle by cycle ---- */

typedef struct slow_sim {
    int64_t submitted[MAX_TASKS], ready[MAX_TASKS], start[MAX_TASKS], end[MAX_TASKS];
    int64_t total, stall_cycles, stalls, waiting[MAX_WORKERS], late[MAX_WORKERS];
} slow_sim;

static bool is_done(const slow_sim *o, int64_t task, int64_t now)
{
    return o->start[task] >= 0 && o->end[task] <= now;
}

static void simulate_slowly(const stream *s, slow_sim *o)
{
    memset(o, 0xff, sizeof *o);
    o->total = o->stall_cycles = o->stalls = 0;
    memset(o->waiting, 0, sizeof o->waiting);
    memset(o->late, 0, sizeof o->late);
    int64_t next = 0, n_done = 0, stalled_since = -1;
    for (int64_t now = 0; n_done < s->n; now++) {
        for (bool changed = true; changed;) {
            changed = false;
            int64_t retired = 0;
            while (retired < next && is_done(o, retired, now))
                retired++;
            while (next < s->n && (s->window == 0 || next - retired < s->window)) {
                if (stalled_since >= 0 && now > stalled_since) {
                    o->stalls++;
                    o->stall_cycles += now - stalled_since;
                }
                stalled_since = -1;
                o->submitted[next++] = now;
            }
            if (next < s->n && stalled_since < 0)
                stalled_since = now;
            for (int64_t t = 0; t < next; t++) {
                bool ready = true;
                for (int32_t p = 0; p < MAX_PREDS; p++)
                    ready &= s->pred[t][p] < 0 || is_done(o, s->pred[t][p], now);
                if (ready && o->ready[t] < 0)
                    o->ready[t] = now;
            }
            for (int64_t w = 0; w < s->n_workers; w++) {
                int64_t best = -1;
                bool busy = false;
                for (int64_t t = 0; t < next; t++) {
                    if (s->worker[t] != w)
                        continue;
                    busy |= o->start[t] >= 0 && !is_done(o, t, now);
                    if (o->ready[t] >= 0 && o->start[t] < 0 && (best < 0 || o->ready[t] < o->ready[best]))
                        best = t;
                }
                if (!busy && best >= 0) {
                    o->start[best] = now;
                    o->end[best] = now + s->cost[best];
                    changed |= s->cost[best] == 0;
                }
            }
        }
        n_done = 0;
        for (int64_t t = 0; t < s->n; t++) {
            n_done += is_done(o, t, now);
            if (is_done(o, t, now) && o->end[t] > o->total)
                o->total = o->end[t];
        }
        bool stands = false;
        for (int64_t t = 0; t < next; t++)
            stands |= o->ready[t] >= 0 && o->start[t] < 0;
        for (int64_t w = 0; w < s->n_workers; w++) {
            bool busy = false, waits = false;
            for (int64_t t = 0; t < next; t++) {
                busy |= s->worker[t] == w && o->start[t] >= 0 && !is_done(o, t, now);
                waits |= s->worker[t] == w && o->ready[t] < 0;
            }
            o->waiting[w] += !busy && waits && !stands;
            o->late[w] += !busy && stands;
        }
    }
}

static void random_stream(stream *s)
{
    s->n = pick(1, MAX_TASKS);
    s->n_workers = pick(1, MAX_WORKERS);
    s->window = pick(0, 2) ? pick(1, 12) : 0;
    for (int64_t t = 0; t < s->n; t++) {
        s->cost[t] = pick(0, 2) ? pick(0, 6) : 0;
        s->worker[t] = pick(0, s->n_workers - 1);
        for (int32_t p = 0; p < MAX_PREDS; p++)
            s->pred[t][p] = t > 0 && pick(0, 2) == 0 ? pick(t > 9 ? t - 9 : 0, t - 1) : -1;
    }
}

static void check_same(const pto_sim_result *r, const stream *s, const slow_sim *o)
{
    int64_t chain[MAX_TASKS], longest = 0;
    for (int64_t t = 0; t < s->n; t++) {
        CHECK_EQ(r->start[t], o->start[t]);
        CHECK_EQ(r->end[t], o->end[t]);
        CHECK_EQ(r->ready[t], o->ready[t]);
        chain[t] = 0;
        for (int32_t p = 0; p < MAX_PREDS; p++)
            if (s->pred[t][p] >= 0 && chain[s->pred[t][p]] > chain[t])
                chain[t] = chain[s->pred[t][p]];
        chain[t] += s->cost[t];
        longest = chain[t] > longest ? chain[t] : longest;
    }
    CHECK_EQ(r->total_cycles, o->total);
    CHECK_EQ(r->critical_path, longest);
    CHECK_EQ(r->window_stalls, o->stalls);
    CHECK_EQ(r->window_stall_cycles, o->stall_cycles);
    for (int64_t w = 0; w < s->n_workers; w++)
        CHECK(r->waiting[w] == o->waiting[w] && r->late[w] == o->late[w]);
    CHECK(s->window == 0 || r->window_high_water <= s->window);
}

/* One orchestrator for both: the stream comes in through a global, as an artifact's would through its bindings. */
static stream current;

static int32_t orchestrate(const pto_bindings *bindings, pto_sink *sink)
{
    int64_t node[MAX_TASKS];
    (void)bindings;
    for (int64_t t = 0; t < current.n; t++) {
        int64_t order[MAX_PREDS];
        for (int32_t p = 0; p < MAX_PREDS; p++)
            order[p] = current.pred[t][p] < 0 ? -1 : node[current.pred[t][p]];
        if (t % 4 == 3) {       /* the same predecessors through a join */
            int64_t join = sink->join_open(sink);
            for (int32_t p = 0; p < MAX_PREDS; p++)
                sink->join_add(sink, join, order[p]);
            order[0] = sink->join_close(sink, join, -1);
            order[1] = order[2] = -1;
        }
        node[t] = submit(sink, current.worker[t], current.cost[t], order, MAX_PREDS);
    }
    return sink->status;
}

static void random_streams_agree_and_chunks_change_nothing(void)
{
    for (int64_t i = 0; i < CASES(3000); i++) {
        static slow_sim slow;
        random_stream(&current);
        simulate_slowly(&current, &slow);
        pto_record *record = record_new();
        orchestrate(NULL, pto_record_sink(record));
        pto_sim *sim;
        pto_sim_result r = simulate(&sim, record, current.n_workers, current.window);
        check_same(&r, &current, &slow);
        pto_sim_free(sim);
        pto_record_free(record);

        record = pto_record_new(&(pto_record_options){.max_tasks = pick(1, 20), .window = current.window});
        sim = pto_sim_new(&(pto_sim_options){.n_workers = current.n_workers, .window = current.window,
                                             .keep_trace = 1});
        pto_execute_result ran;
        CHECK_EQ(pto_run(NULL, record, &(pto_run_options){.orchestrate = orchestrate, .sim = sim}, &ran), PTO_OK);
        pto_columns c;
        pto_record_columns(record, &c);
        CHECK_EQ(c.total_tasks, current.n);
        if (c.first_task == 0)
            CHECK_EQ(pto_sim_feed(sim, record), PTO_OK);
        CHECK_EQ(pto_sim_finish(sim, &r), PTO_OK);
        check_same(&r, &current, &slow);
        pto_sim_free(sim);
        pto_record_free(record);
    }
}

int main(void)
{
    static const check_test tests[] = {
        TEST(nothing_takes_no_time), TEST(two_workers_halve_equal_tasks), TEST(a_window_delays_and_counts),
        TEST(the_window_is_a_ring), TEST(joins_take_no_time_and_no_slot), TEST(tasks_of_no_cost_cascade),
        TEST(wrong_workers_and_foreign_chunks_are_refused), TEST(random_streams_agree_and_chunks_change_nothing)};
    return RUN_TESTS(tests);
}
