/* test_marks.c: marks in a record and in a run: what they wait for, what has run when they return, what stays kept. */
#include <stdatomic.h>

#include "check.h"

enum { CELLS = 8, STEPS = 300 };

static int64_t cells[CELLS];
static _Atomic int64_t n_called;
static pto_pool *cancelled_pool;

/* cell[scalar 0] of the argument grows by one; fails where scalar 1 says so, cancels its pool where scalar 2 does. */
static int32_t grow(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scratch;
    *(int64_t *)args[0].data += 1;
    atomic_fetch_add(&n_called, 1);
    context->print(context, 3, args[0].data, 8, 1, 1, 1, 1);
    if (scalars[2])
        pto_pool_cancel(cancelled_pool);
    return scalars[1] ? 9 : 0;
}

static const pto_kernel kernels[] = {{grow, 0}};

static pto_arg cell(int64_t at, int32_t flags)
{
    return (pto_arg){.data = (char *)&cells[at], .extent = {1, 1}, .stride = {1, 1}, .elem_bytes = 8, .flags = flags};
}

static int64_t submit(pto_sink *sink, int64_t at, int64_t fails, int64_t cancels)
{
    pto_arg arg = cell(at, PTO_READ | PTO_WRITE);
    int64_t scalars[3] = {at, fails, cancels};
    return sink->submit(sink, &(pto_task){.cost = 1, .n_args = 1, .args = &arg, .n_scalars = 3, .scalars = scalars,
                                          .n_index = 1, .index = &at});
}

static int64_t read_cell(pto_sink *sink, int64_t at)
{
    pto_arg arg = cell(at, PTO_READ);
    return sink->mark(sink, &(pto_mark){.flags = PTO_MARK_BLOCKS | PTO_MARK_NOW, .stall = PTO_STALL_READ, .site = 5,
                                        .n_args = 1, .args = &arg});
}

typedef struct plan {
    int64_t fails, cancels, guards;    /* at which step; -1: never */
    int64_t every;                     /* steps between two reads */
} plan;

static plan current;
static int64_t n_read;

/* Each step grows cell 0 and another; a read must see all steps so far. */
static int32_t orchestrate(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    n_read = 0;
    for (int64_t i = 0; i < STEPS; i++) {
        if (i == current.guards)
            return sink->fail(sink, &(pto_guard){.guard = 1, .found = i});
        if (submit(sink, 0, i == current.fails, i == current.cancels) < 0 || submit(sink, 1 + i % (CELLS - 1), 0, 0) < 0)
            return sink->status;
        if (i % current.every == current.every - 1) {
            if (read_cell(sink, 0) < 0)
                return sink->status;
            CHECK_EQ(cells[0], i + 1);
            n_read++;
        }
    }
    return PTO_OK;
}

static int32_t run(pto_pool *pool, pto_record *record, plan how, uint64_t seed, pto_sim *sim, pto_execute_result *result)
{
    current = how;
    memset(cells, 0, sizeof cells);
    atomic_store(&n_called, 0);
    pto_run_options options = {.orchestrate = orchestrate, .kernels = kernels, .n_kernels = 1, .sim = sim,
                               .execute = {.order_seed = seed}};
    return pto_run(pool, record, &options, result);
}

static pto_record *record_new(int64_t max_tasks)
{
    return pto_record_new(&(pto_record_options){.max_tasks = max_tasks, .window = 16, .infer = 1});
}

static void what_a_mark_waits_for_has_run(void)
{
    static const int64_t caps[] = {0, 1, 7, 100, 5000};
    for (int32_t threads = 1; threads <= 3; threads += 2) {
        pto_pool *pool = pto_pool_new(threads);
        for (size_t i = 0; i < sizeof caps / sizeof *caps; i++)
            for (int64_t every = 1; every <= 64; every *= 4)
                for (uint64_t seed = 0; seed <= 6; seed += 3) {
                    pto_record *record = record_new(caps[i]);
                    pto_execute_result result;
                    CHECK_EQ(run(pool, record, (plan){-1, -1, -1, every}, seed, NULL, &result), PTO_OK);
                    CHECK_EQ(n_read, STEPS / every);
                    CHECK_EQ(result.n_run, 2 * STEPS);
                    CHECK_EQ(atomic_load(&n_called), 2 * STEPS);
                    CHECK_EQ(cells[0], STEPS);
                    pto_record_free(record);
                }
        pto_pool_free(pool);
    }
}

static bool infers;

/* Reads of what has run, among tasks that write elsewhere, then a read of what these write. */
static int32_t orchestrate_apart(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    if (submit(sink, 0, 0, 0) < 0 || read_cell(sink, 0) < 0)
        return sink->status;
    CHECK_EQ(cells[0], 1);
    for (int64_t at = 1; at < CELLS; at++) {
        if (submit(sink, at, 0, 0) < 0 || read_cell(sink, 0) < 0)
            return sink->status;
        CHECK_EQ(atomic_load(&n_called), infers ? 1 : at + 1);
    }
    if (read_cell(sink, 3) < 0)
        return sink->status;
    CHECK_EQ(atomic_load(&n_called), CELLS);
    if (submit(sink, 0, 0, 0) < 0 || read_cell(sink, 0) < 0)
        return sink->status;
    CHECK_EQ(cells[0], 2);
    return PTO_OK;
}

static void a_mark_that_waits_for_what_has_run_runs_nothing(void)
{
    for (int32_t threads = 1; threads <= 3; threads += 2)
        for (int32_t with = 0; with <= 1; with++) {
            pto_pool *pool = pto_pool_new(threads);
            pto_record *record = pto_record_new(&(pto_record_options){.window = 16, .infer = with});
            pto_run_options options = {.orchestrate = orchestrate_apart, .kernels = kernels, .n_kernels = 1};
            pto_execute_result result;
            infers = with;
            memset(cells, 0, sizeof cells);
            atomic_store(&n_called, 0);
            CHECK_EQ(pto_run(pool, record, &options, &result), PTO_OK);
            CHECK_EQ(result.n_run, CELLS + 1);
            for (int64_t at = 0; at < CELLS; at++)
                CHECK_EQ(cells[at], 1 + (at == 0));
            pto_record_free(record);
            pto_pool_free(pool);
        }
}

static void the_record_keeps_what_marks_have_run(void)
{
    pto_pool *pool = pto_pool_new(2);
    pto_record *record = record_new(0);
    pto_execute_result result;
    CHECK_EQ(run(pool, record, (plan){-1, -1, -1, 10}, 0, NULL, &result), PTO_OK);
    pto_columns c;
    pto_record_columns(record, &c);
    CHECK(c.n_tasks == 2 * STEPS && c.n_marks == STEPS / 10 && c.n_nodes == c.n_tasks + c.n_marks);
    CHECK(c.mark_node[0] == 20 && c.node_kind[20] == PTO_NODE_MARK && c.node_task[20] == -1);
    CHECK(c.mark_flags[0] == (PTO_MARK_BLOCKS | PTO_MARK_NOW) && c.mark_stall[0] == PTO_STALL_READ && c.mark_site[0] == 5);
    CHECK(c.mark_stream[0] == 0 && c.mark_delay[0] == 0);
    CHECK_EQ(pto_run(pool, record, &(pto_run_options){.kernels = kernels, .n_kernels = 1}, &result), PTO_OK);
    CHECK(result.n_run == 2 * STEPS && cells[0] == 2 * STEPS);     /* a kept record runs whole */
    pto_record_free(record);
    pto_pool_free(pool);
}

/* Reads in simulated time: the task of step i on cell 0 must be over before the next step is submitted. */
static void chunked_runs_with_reads_simulate_the_same(void)
{
    pto_pool *pool = pto_pool_new(2);
    pto_sim_result r[2];
    pto_sim *sims[2];
    for (int32_t i = 0; i < 2; i++) {
        pto_record *record = record_new(i ? 70 : 0);
        pto_execute_result result;
        sims[i] = pto_sim_new(&(pto_sim_options){.n_workers = 1, .window = 16, .keep_trace = 1});
        CHECK_EQ(run(pool, record, (plan){-1, -1, -1, 3}, 0, sims[i], &result), PTO_OK);
        if (i == 0)
            CHECK_EQ(pto_sim_feed(sims[i], record), PTO_OK);
        CHECK_EQ(pto_sim_finish(sims[i], &r[i]), PTO_OK);
        pto_record_free(record);
    }
    /* six tasks of one cycle between two reads; those of other cells are ready before the last one of cell 0 */
    CHECK_EQ(r[0].stalls[PTO_STALL_READ], STEPS / 3);
    CHECK_EQ(r[0].stall_cycles[PTO_STALL_READ], 6 * (STEPS / 3));
    CHECK_EQ(r[1].stall_cycles[PTO_STALL_READ], r[0].stall_cycles[PTO_STALL_READ]);
    CHECK_EQ(r[1].total_cycles, r[0].total_cycles);
    CHECK(memcmp(r[0].start, r[1].start, 2 * STEPS * sizeof *r[0].start) == 0);
    pto_sim_free(sims[0]);
    pto_sim_free(sims[1]);
    pto_pool_free(pool);
}

static void a_failure_ends_the_orchestration(void)
{
    pto_pool *pool = pto_pool_new(2);
    for (int64_t cap = 0; cap <= 50; cap += 25)
        for (uint64_t seed = 0; seed <= 1; seed++) {
            pto_record *record = record_new(cap);
            pto_execute_result result;
            CHECK_EQ(run(pool, record, (plan){123, -1, -1, 10}, seed, NULL, &result), PTO_E_KERNEL);
            CHECK_EQ(result.failed_task, 246);
            CHECK_EQ(result.failed_guard, 8);
            CHECK_EQ(n_read, 12);
            pto_columns c;
            pto_record_columns(record, &c);
            CHECK(c.total_tasks <= 260);           /* nothing is submitted after the mark that failed */
            CHECK_EQ(run(pool, record, (plan){-1, -1, -1, 10}, seed, NULL, &result), PTO_OK);
            CHECK_EQ(result.failed_task, -1);
            pto_record_free(record);
        }
    pto_pool_free(pool);
}

static void a_guard_after_a_mark_is_still_a_guard(void)
{
    pto_pool *pool = pto_pool_new(2);
    pto_record *record = record_new(0);
    pto_execute_result result;
    CHECK_EQ(run(pool, record, (plan){-1, -1, 57, 10}, 0, NULL, &result), PTO_E_GUARD);
    CHECK(pto_record_guard(record) != NULL && pto_record_guard(record)->found == 57);
    CHECK_EQ(result.n_run, 100);
    CHECK_EQ(atomic_load(&n_called), 100);         /* what the last read needed, and not what came after */
    pto_record_free(record);
    pto_pool_free(pool);
}

static void a_cancelled_run_reads_nothing_more(void)
{
    cancelled_pool = pto_pool_new(2);
    pto_record *record = record_new(0);
    pto_execute_result result;
    CHECK_EQ(run(cancelled_pool, record, (plan){-1, 44, -1, 10}, 0, NULL, &result), PTO_E_CANCELLED);
    CHECK_EQ(n_read, 4);
    CHECK(result.n_run < 100);
    pto_record_free(record);
    pto_pool_free(cancelled_pool);
}

static void nothing_runs_without_a_pool(void)
{
    pto_record *record = record_new(0);
    pto_execute_result result;
    CHECK_EQ(run(NULL, record, (plan){-1, -1, -1, 10}, 0, NULL, &result), PTO_E_UNEXECUTED);
    CHECK(n_read == 0 && atomic_load(&n_called) == 0);
    pto_record_reset(record);
    CHECK_EQ(read_cell(pto_record_sink(record), 0), -1);
    CHECK_EQ(pto_record_sink(record)->status, PTO_E_UNEXECUTED);
    pto_record_free(record);
}

static void prints_keep_their_tasks(void)
{
    pto_pool *pool = pto_pool_new(2);
    for (int64_t cap = 0; cap <= 50; cap += 50) {
        pto_record *record = record_new(cap);
        pto_prints *prints = pto_prints_new(&(pto_prints_options){.max_bytes = 1 << 20, .threshold = 9, .edge = 3});
        current = (plan){-1, -1, -1, 10};
        memset(cells, 0, sizeof cells);
        pto_run_options options = {.orchestrate = orchestrate, .kernels = kernels, .n_kernels = 1,
                                   .execute = {.prints = prints}};
        pto_execute_result result;
        CHECK_EQ(pto_run(pool, record, &options, &result), PTO_OK);
        pto_prints_view view;
        pto_prints_read(prints, &view);
        CHECK_EQ(view.n, 2 * STEPS);
        for (int64_t i = 0; i < view.n; i++) {
            int64_t value;
            memcpy(&value, view.data + view.rows[i].data, sizeof value);
            CHECK_EQ(view.rows[i].task, i);
            CHECK_EQ(view.rows[i].index[0], i % 2 ? 1 + i / 2 % (CELLS - 1) : 0);
            CHECK_EQ(value, i % 2 ? i / 2 / (CELLS - 1) + 1 : i / 2 + 1);
        }
        pto_prints_free(prints);
        pto_record_free(record);
    }
    pto_pool_free(pool);
}

/* ---- edges ---- */

static int64_t preds(const pto_columns *c, int64_t node)
{
    return c->pred_begin[node + 1] - c->pred_begin[node];
}

static void reads_wait_for_writers_and_hold_nobody_back(void)
{
    for (int32_t infer = 0; infer < 2; infer++) {
        pto_record *record = pto_record_new(&(pto_record_options){.infer = infer});
        pto_sink *sink = pto_record_sink(record);
        pto_arg write = cell(0, PTO_WRITE), read = cell(0, PTO_READ), both[2] = {cell(0, PTO_READ), cell(1, PTO_READ)};
        int64_t after = 0;
        sink->submit(sink, &(pto_task){.n_args = 1, .args = &write});                                  /* 0 */
        sink->submit(sink, &(pto_task){.n_args = 1, .args = &read});                                   /* 1 */
        sink->mark(sink, &(pto_mark){.stream = 4, .n_args = 2, .args = both, .flags = PTO_MARK_BLOCKS,
                                     .why = PTO_EDGE_EVENT, .n_before = 1, .before = (int64_t[]){1},
                                     .n_order = 2, .order = (int64_t[]){-1, after}, .delay = 12});      /* 2 */
        sink->submit(sink, &(pto_task){.n_args = 1, .args = &write, .stream = 3});                     /* 3 */
        sink->mark(sink, &(pto_mark){.n_args = 2, .args = both});                                      /* 4 */
        CHECK_EQ(sink->status, PTO_OK);
        pto_columns c;
        pto_record_columns(record, &c);
        CHECK(c.n_marks == 2 && c.mark_delay[0] == 12 && c.mark_stream[0] == 4 && c.mark_node[1] == 4);
        CHECK(c.task_stream[0] == 0 && c.task_stream[2] == 3);
        int64_t at = c.pred_begin[2];
        CHECK_EQ(preds(&c, 2), 2);
        CHECK(c.edge_src[at] == 0 && c.edge_why[at] == (PTO_EDGE_ORDER | (infer ? PTO_EDGE_READ : 0)));
        CHECK(c.edge_src[at + 1] == 1 && c.edge_why[at + 1] == PTO_EDGE_EVENT);
        CHECK_EQ(preds(&c, 3), infer ? 2 : 0);     /* the writer and the task that reads, not the mark */
        CHECK_EQ(preds(&c, 4), infer ? 1 : 0);
        CHECK(!infer || (c.edge_src[c.pred_begin[4]] == 3 && c.edge_why[c.pred_begin[4]] == PTO_EDGE_READ));
        pto_record_free(record);
    }
}

static void wrong_marks_are_refused(void)
{
    static const int64_t later = 7;
    pto_arg shapeless = {.data = (char *)cells, .extent = {1, 1}, .stride = {1, 1}};
    const pto_mark wrong[] = {
        {.stream = -1}, {.flags = 8}, {.why = 256}, {.stall = PTO_N_STALLS}, {.stall = -1}, {.delay = -1}, {.n_before = -1},
        {.n_order = -1}, {.n_args = PTO_MAX_ARGS + 1}, {.n_before = 1, .before = &later, .why = PTO_EDGE_CHANNEL},
        {.n_before = 1, .before = &later}, {.n_order = 1, .order = &later}, {.n_args = 1, .args = &shapeless}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pto_record *record = record_new(0);
        pto_sink *sink = pto_record_sink(record);
        CHECK_EQ(sink->mark(sink, &wrong[i]), -1);
        CHECK_EQ(sink->status, PTO_E_ARGUMENT);
        CHECK_EQ(sink->mark(sink, &(pto_mark){0}), -1);
        CHECK_EQ(sink->fresh(sink, &(pto_tensor){0}, 4, 0, NULL), PTO_E_ARGUMENT);
        pto_record_reset(record);
        CHECK_EQ(sink->mark(sink, &(pto_mark){0}), 0);
        CHECK_EQ(sink->submit(sink, &(pto_task){.stream = -1}), -1);
        pto_record_free(record);
    }
}

static int32_t only_marks(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    for (int64_t i = 0, last = -1; i < 1000; i++)
        last = sink->mark(sink, &(pto_mark){.n_order = 1, .order = &last, .delay = 1, .flags = PTO_MARK_BLOCKS});
    submit(sink, 0, 0, 0);
    return sink->status;
}

static void marks_fill_a_record_too(void)
{
    pto_record *record = record_new(10);
    pto_sim *sim = pto_sim_new(&(pto_sim_options){.n_workers = 1, .window = 4});
    pto_execute_result result;
    pto_sim_result simulated;
    CHECK_EQ(pto_run(NULL, record, &(pto_run_options){.orchestrate = only_marks, .sim = sim}, &result), PTO_OK);
    pto_columns c;
    pto_record_columns(record, &c);
    CHECK(c.first_node > 0 && c.first_node + c.n_nodes == 1001 && c.n_nodes <= 81 && c.first_task == 0);
    CHECK_EQ(pto_sim_finish(sim, &simulated), PTO_OK);
    CHECK(simulated.total_cycles == 1001 && simulated.critical_path == 1001 && simulated.n_tasks == 1);
    pto_sim_free(sim);
    pto_record_free(record);
}

/* ---- deadlock reports ---- */

static void a_deadlock_report_is_kept(void)
{
    pto_record *record = record_new(0);
    pto_sink *sink = pto_record_sink(record);
    const pto_stuck rows[2] = {{1, 7, PTO_STUCK_SEND, 0, 4, 2, 0}, {2, 9, PTO_STUCK_RECEIVE, 1, 0, -1, 0}}, *found;
    CHECK_EQ(pto_record_stuck(record, &found), 0);
    CHECK_EQ(sink->stuck(sink, rows, 2), PTO_E_DEADLOCK);
    CHECK_EQ(sink->status, PTO_E_DEADLOCK);
    CHECK_EQ(sink->stuck(sink, rows, 1), PTO_E_DEADLOCK);      /* the first report stays */
    CHECK_EQ(pto_record_stuck(record, &found), 2);
    CHECK(memcmp(found, rows, sizeof rows) == 0);
    CHECK_EQ(sink->mark(sink, &(pto_mark){0}), -1);
    pto_record_reset(record);
    CHECK_EQ(pto_record_stuck(record, &found), 0);
    CHECK_EQ(sink->status, PTO_OK);
    pto_record_free(record);
}

int main(void)
{
    static const check_test tests[] = {
        TEST(what_a_mark_waits_for_has_run), TEST(a_mark_that_waits_for_what_has_run_runs_nothing),
        TEST(the_record_keeps_what_marks_have_run),
        TEST(chunked_runs_with_reads_simulate_the_same), TEST(a_failure_ends_the_orchestration),
        TEST(a_guard_after_a_mark_is_still_a_guard), TEST(a_cancelled_run_reads_nothing_more),
        TEST(nothing_runs_without_a_pool), TEST(prints_keep_their_tasks), TEST(reads_wait_for_writers_and_hold_nobody_back),
        TEST(wrong_marks_are_refused), TEST(marks_fill_a_record_too), TEST(a_deadlock_report_is_kept)};
    return RUN_TESTS(tests);
}
