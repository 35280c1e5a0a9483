/* test_wall.c: the wall-clock trace: every task once, after what it waits for, on one thread at a time. */
#include <time.h>

#include "check.h"

enum { TASKS = 300, WORKERS = 5, THREADS = 4, NAP_NS = 300000 };

static pto_pool *pools[THREADS + 1];
static pto_wall *wall;

static int32_t nothing(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scalars, (void)scratch, (void)context;
    return 0;
}

static int32_t nap(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scalars, (void)scratch, (void)context;
    nanosleep(&(struct timespec){0, NAP_NS}, NULL);
    return 0;
}

static int32_t failing(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scalars, (void)scratch, (void)context;
    return 1;
}

enum { NOTHING, NAP, FAILING, N_KERNELS };
static const pto_kernel kernels[] = {{nothing, 0}, {nap, 0}, {failing, 0}};

static int64_t submit(pto_sink *sink, int32_t kernel, int64_t order, int64_t worker, int64_t position, int64_t cost)
{
    return sink->submit(sink, &(pto_task){.kernel = kernel, .worker = worker, .position = position, .cost = cost, .n_order = 1,
                                          .order = &order});
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int by_thread(const void *left, const void *right)
{
    const pto_wall_row *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

/* All tasks of the record, between two times, in an order that its edges allow, one by one on each thread. */
static void check_rows(const pto_record *record, int32_t threads, int64_t begin, int64_t end)
{
    static int64_t completed[3 * TASKS];
    pto_columns c;
    pto_wall_view view;
    pto_record_columns(record, &c);
    pto_wall_read(wall, &view);
    CHECK_EQ(view.n, c.n_tasks);
    CHECK_EQ(view.is_cut, 0);
    CHECK(view.row_ns > 0 && view.row_ns < 1e6);
    for (int64_t i = 0; i < c.n_nodes; i++) {
        int64_t task = c.node_task[i];
        completed[i] = 0;
        for (int64_t e = c.pred_begin[i]; e < c.pred_begin[i + 1]; e++)
            completed[i] = completed[c.edge_src[e]] > completed[i] ? completed[c.edge_src[e]] : completed[i];
        if (task < 0)
            continue;
        const pto_wall_row *row = &view.rows[task];
        CHECK(row->start_ns >= begin && row->start_ns >= completed[i]);
        CHECK(row->end_ns <= end && row->end_ns - row->start_ns >= (c.task_kernel[task] == NAP ? NAP_NS : 0));
        CHECK(row->thread >= 0 && row->thread < threads);
        completed[i] = row->end_ns;
    }
    pto_wall_row *sorted = malloc((size_t)(view.n + 1) * sizeof *sorted);
    if (view.n > 0)
        memcpy(sorted, view.rows, (size_t)view.n * sizeof *sorted);
    qsort(sorted, (size_t)view.n, sizeof *sorted, by_thread);
    for (int64_t i = 1; i < view.n; i++)
        CHECK(sorted[i].thread != sorted[i - 1].thread || sorted[i].start_ns >= sorted[i - 1].end_ns);
    free(sorted);
}

static int32_t execute(int32_t threads, const pto_record *record, pto_execute_options options, pto_execute_result *result)
{
    options.wall = wall;
    return pto_execute(pools[threads], record, kernels, N_KERNELS, &options, result);
}

static void tasks_run_after_what_they_wait_for(void)
{
    for (int64_t i = 0; i < CASES(30); i++) {
        pto_record *record = pto_record_new(&(pto_record_options){0});
        pto_sink *sink = pto_record_sink(record);
        int64_t n = i == 0 ? 0 : pick(1, TASKS), cost = i % 2 ? 1 : 1 << 20;     /* small graphs begin on one thread */
        for (int64_t t = 0; t < n; t++) {
            int64_t node = submit(sink, pick(0, 40) ? NOTHING : NAP, t > 0 && pick(0, 2) ? pick(0, t - 1) : -1, 0, 0, cost);
            if (pick(0, 9) == 0) {
                int64_t join = sink->join_open(sink);
                sink->join_add(sink, join, node);
                sink->join_add(sink, join, pick(0, node));
                submit(sink, NOTHING, sink->join_close(sink, join, -1), 0, 0, cost);
            }
        }
        for (int32_t threads = 1; threads <= THREADS; threads++)
            for (uint64_t seed = 0; seed < 2; seed++) {        /* each run replaces the rows of the one before */
                pto_execute_result result;
                int64_t begin = now_ns();
                CHECK_EQ(execute(threads, record, (pto_execute_options){.order_seed = seed}, &result), PTO_OK);
                check_rows(record, seed ? 1 : threads, begin, now_ns());
            }
        pto_record_free(record);
    }
}

static void tasks_that_nap_share_the_threads(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){0});
    for (int64_t t = 0; t < 40; t++)
        submit(pto_record_sink(record), NAP, -1, 0, 0, 1 << 20);
    pto_execute_result result;
    int64_t begin = now_ns();
    CHECK_EQ(execute(THREADS, record, (pto_execute_options){0}, &result), PTO_OK);
    check_rows(record, THREADS, begin, now_ns());
    pto_wall_view view;
    pto_wall_read(wall, &view);
    int32_t n_threads = 0;
    for (int32_t k = 0; k < THREADS; k++) {
        bool ran = false;
        for (int64_t t = 0; t < view.n; t++)
            ran |= view.rows[t].thread == k;
        n_threads += ran;
    }
    CHECK_EQ(n_threads, result.threads);
    CHECK(n_threads > 1);
    pto_record_free(record);
}

static void by_a_calendar_the_thread_is_that_of_the_worker(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.keep = PTO_KEEP_POSITION});
    for (int64_t t = 0; t < TASKS; t++)
        submit(pto_record_sink(record), t % 50 ? NOTHING : NAP, t % 7 ? t - 1 : -1, t % WORKERS, t, 1);
    for (int32_t threads = 1; threads <= THREADS; threads++) {
        pto_execute_result result;
        pto_wall_view view;
        int64_t begin = now_ns();
        CHECK_EQ(execute(threads, record, (pto_execute_options){.places = PTO_PLACE_CALENDAR}, &result), PTO_OK);
        check_rows(record, threads, begin, now_ns());
        pto_wall_read(wall, &view);
        for (int64_t t = 0; t < view.n; t++)
            CHECK_EQ(view.rows[t].thread, t % WORKERS % threads);
    }
    pto_record_free(record);
}

static void of_a_run_that_fails_the_tasks_that_ran_are_kept(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){0});
    int64_t last = -1;
    for (int64_t t = 0; t < 100; t++)
        last = submit(pto_record_sink(record), t == 60 ? FAILING : NOTHING, last, 0, 0, 1000);
    for (int32_t threads = 1; threads <= THREADS; threads++) {
        pto_execute_result result;
        pto_wall_view view;
        CHECK_EQ(execute(threads, record, (pto_execute_options){0}, &result), PTO_E_KERNEL);
        pto_wall_read(wall, &view);
        CHECK_EQ(view.n, 100);
        for (int64_t t = 0; t < view.n; t++)
            CHECK_EQ(view.rows[t].thread < 0, t > 60);
    }
    pto_record_free(record);
}

/* symbols: [0] how many tasks */
static int32_t orchestrate(const pto_bindings *bindings, pto_sink *sink)
{
    for (int64_t t = 0; t < bindings->symbols[0]; t++)
        if (submit(sink, NOTHING, -1, 0, 0, 1) < 0)
            return sink->status;
    return PTO_OK;
}

static void a_stream_longer_than_the_record_has_none(void)
{
    static const int64_t sizes[] = {100, 101, 1000, 7, 0, 250, 20};
    pto_record *record = pto_record_new(&(pto_record_options){.max_tasks = 100});
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pto_bindings bindings = {.symbols = &(int64_t){sizes[i]}, .n_symbols = 1};
        pto_run_options options = {.orchestrate = orchestrate, .bindings = &bindings, .kernels = kernels, .n_kernels = N_KERNELS,
                                   .execute.wall = wall};
        pto_execute_result result;
        pto_wall_view view;
        int64_t begin = now_ns();
        CHECK_EQ(pto_run(pools[2], record, &options, &result), PTO_OK);
        CHECK_EQ(result.n_run, sizes[i]);
        pto_wall_read(wall, &view);
        CHECK_EQ(view.is_cut, sizes[i] > 100);
        if (view.is_cut) {
            CHECK_EQ(view.n, 0);
            CHECK(view.rows == NULL);
        } else {
            check_rows(record, 2, begin, now_ns());
        }
    }
    pto_record_free(record);
}

static void a_run_without_it_leaves_it_alone(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){0});
    for (int64_t t = 0; t < 10; t++)
        submit(pto_record_sink(record), NOTHING, -1, 0, 0, 1);
    pto_execute_result result;
    pto_wall_view before, after;
    int64_t begin = now_ns();
    CHECK_EQ(execute(2, record, (pto_execute_options){0}, &result), PTO_OK);
    int64_t end = now_ns();
    pto_wall_read(wall, &before);
    pto_wall_row first = before.rows[0];
    CHECK_EQ(pto_execute(pools[2], record, kernels, N_KERNELS, &(pto_execute_options){0}, &result), PTO_OK);
    pto_wall_read(wall, &after);
    CHECK(memcmp(&first, &after.rows[0], sizeof first) == 0);
    check_rows(record, 2, begin, end);
    pto_record_free(record);
}

int main(void)
{
    for (int32_t i = 1; i <= THREADS; i++)
        pools[i] = pto_pool_new(i);
    wall = pto_wall_new();
    static const check_test tests[] = {
        TEST(tasks_run_after_what_they_wait_for), TEST(tasks_that_nap_share_the_threads),
        TEST(by_a_calendar_the_thread_is_that_of_the_worker), TEST(of_a_run_that_fails_the_tasks_that_ran_are_kept),
        TEST(a_stream_longer_than_the_record_has_none), TEST(a_run_without_it_leaves_it_alone)};
    int status = RUN_TESTS(tests);
    pto_wall_free(wall);
    pto_wall_free(NULL);
    for (int32_t i = 1; i <= THREADS; i++)
        pto_pool_free(pools[i]);
    return status;
}
