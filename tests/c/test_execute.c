/* test_execute.c: the native engine: program order's results on any number of threads, failures, cancelling. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "check.h"

enum { CELLS = 64, THREADS = 4 };

static int64_t cells[CELLS];
static _Atomic int64_t n_called;
static _Atomic int32_t gate;
static _Atomic int32_t n_seen[20002];
static pto_pool *pools[THREADS + 1];

static pto_arg cell(int64_t at, int64_t n, int32_t flags)
{
    return (pto_arg){.data = (char *)&cells[at], .extent = {1, n}, .stride = {n, 1}, .elem_bytes = 8, .flags = flags};
}

static void nap(void)
{
    nanosleep(&(struct timespec){0, 200000}, NULL);
}

/* Not commutative, so that any swapped pair of conflicting tasks shows. */
static int32_t mix(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    uint64_t sum = (uint64_t)scalars[0];
    (void)context;
    memset(scratch, 0x5a, 256);
    for (int64_t i = 0; i < args[0].extent[1]; i++)
        sum = sum * 31 + (uint64_t)((int64_t *)args[0].data)[i];
    for (int64_t i = 0; i < args[1].extent[1]; i++) {
        int64_t *out = (int64_t *)args[1].data + i;
        *out = (int64_t)((uint64_t)*out * 7 + sum);
    }
    return 0;
}

static int32_t count(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scalars, (void)scratch, (void)context;
    atomic_fetch_add(&n_called, 1);
    return 0;
}

static int32_t see(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scratch, (void)context;
    atomic_fetch_add(&n_seen[scalars[0]], 1);
    return 0;
}

static int32_t fail_as_told(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scratch;
    if (scalars[0] == 3)
        context->fault = (pto_fault){.row = 4, .col = context->node, .value = -6, .lower = 7, .upper = 8};
    return (int32_t)scalars[0];
}

static int32_t check_scratch(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)context;
    for (int32_t i = 0; i < 1000; i++)
        scratch[i] = (char)scalars[0];
    for (int32_t i = 0; i < 1000; i++)
        if (scratch[i] != (char)scalars[0])
            return 1;
    return (uintptr_t)scratch % 64 == 0 ? 0 : 2;
}

static int32_t slow(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scalars, (void)scratch, (void)context;
    atomic_store(&gate, 1);
    nap();
    return 0;
}

enum { MIX, COUNT, FAIL, SCRATCH, SLOW, SEE, N_KERNELS };
static const pto_kernel kernels[] = {{mix, 256}, {count, 0}, {fail_as_told, 0}, {check_scratch, 1000}, {slow, 0}, {see, 0}};

static int64_t submit(pto_sink *sink, int32_t kernel, int64_t scalar, const pto_arg *args, int32_t n_args, int64_t order,
                      int64_t cost)
{
    pto_task task = {.kernel = kernel, .cost = cost, .n_args = n_args, .args = args, .n_scalars = 1,
                     .scalars = &scalar, .n_order = 1, .order = &order};
    return sink->submit(sink, &task);
}

static int32_t execute(pto_pool *pool, const pto_record *record, int32_t threads, uint64_t seed,
                       pto_execute_result *result)
{
    pto_execute_options options = {.threads = threads, .order_seed = seed};
    return pto_execute(pool, record, kernels, N_KERNELS, &options, result);
}

static void random_programs_give_program_order(void)
{
    for (int64_t i = 0; i < CASES(60); i++) {
        pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
        pto_sink *sink = pto_record_sink(record);
        int64_t n = pick(1, i % 4 == 0 ? 3000 : 200), cost = pick(0, 1) ? 1 : 1 << 20, join = -1;
        int64_t expected[CELLS];
        for (int64_t c = 0; c < CELLS; c++)
            cells[c] = c;
        if (i % 3 == 0)
            submit(sink, SLOW, 0, NULL, 0, -1, cost);   /* a small graph then starts alone and calls for help */
        for (int64_t t = 0; t < n; t++) {
            int64_t in = pick(0, CELLS - 4), out = pick(0, CELLS - 4);
            pto_arg args[2] = {cell(in, pick(1, 4), PTO_READ), cell(out, pick(1, 4), PTO_READ | PTO_WRITE)};
            int64_t node = submit(sink, MIX, t, args, 2, -1, cost);
            mix(args, &t, (char[256]){0}, NULL);
            if (pick(0, 5) == 0) {
                join = sink->join_open(sink);
                sink->join_add(sink, join, node);
                sink->join_add(sink, join, pick(0, node));
                submit(sink, COUNT, 0, NULL, 0, sink->join_close(sink, join, -1), cost);
            }
        }
        memcpy(expected, cells, sizeof cells);
        pto_columns c;
        pto_record_columns(record, &c);
        for (int32_t threads = 1; threads <= THREADS; threads++)
            for (uint64_t seed = 0; seed < 3; seed++) {
                pto_execute_result result;
                for (int64_t k = 0; k < CELLS; k++)
                    cells[k] = k;
                CHECK_EQ(execute(pools[threads], record, 0, seed, &result), PTO_OK);
                CHECK_EQ(result.n_run, c.n_tasks);
                CHECK_EQ(result.failed_task, -1);
                CHECK(result.threads >= 1 && result.threads <= threads);
                CHECK(memcmp(cells, expected, sizeof cells) == 0);
            }
        pto_record_free(record);
    }
}

static void a_missing_edge_shows_in_some_seeded_order(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 0});
    pto_sink *sink = pto_record_sink(record);
    for (int64_t t = 0; t < 8; t++) {
        pto_arg args[2] = {cell(0, 1, PTO_READ), cell(0, 1, PTO_READ | PTO_WRITE)};
        submit(sink, MIX, t, args, 2, -1, 1);
    }
    pto_execute_result result;
    int64_t first = 0;
    bool differs = false;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        cells[0] = 1;
        CHECK_EQ(execute(pools[2], record, 0, seed, &result), PTO_OK);
        if (seed == 1)
            first = cells[0];
        differs |= cells[0] != first;
        int64_t once = cells[0];
        cells[0] = 1;
        execute(pools[1], record, 0, seed, &result);
        CHECK_EQ(cells[0], once);       /* one seed, one order */
    }
    CHECK(differs);
    pto_record_free(record);
}

static void wide_release_overflows_no_deque(void)
{
    enum { WIDE = 20000 };
    pto_record *record = pto_record_new(&(pto_record_options){0});
    pto_sink *sink = pto_record_sink(record);
    int64_t first = submit(sink, SEE, 0, NULL, 0, -1, 1 << 20), join = sink->join_open(sink);
    for (int32_t i = 1; i <= WIDE; i++)
        sink->join_add(sink, join, submit(sink, SEE, i, NULL, 0, first, 1));
    submit(sink, SEE, WIDE + 1, NULL, 0, sink->join_close(sink, join, -1), 1);
    for (int32_t threads = 1; threads <= THREADS; threads++) {
        pto_execute_result result;
        memset(n_seen, 0, sizeof n_seen);
        CHECK_EQ(execute(pools[threads], record, 0, 0, &result), PTO_OK);
        for (int32_t i = 0; i < WIDE + 2; i++)
            CHECK_EQ(n_seen[i], 1);
    }
    pto_record_free(record);
}

static void scratch_is_aligned_and_private(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){0});
    for (int64_t i = 0; i < 5000; i++)
        submit(pto_record_sink(record), SCRATCH, i, NULL, 0, -1, 1000);
    pto_execute_result result;
    CHECK_EQ(execute(pools[THREADS], record, 0, 0, &result), PTO_OK);
    pto_record_free(record);
}

static void first_failure_is_reported_and_stops_the_run(void)
{
    for (int32_t threads = 1; threads <= THREADS; threads++) {
        pto_record *record = pto_record_new(&(pto_record_options){0});
        int64_t last = -1;
        for (int64_t i = 0; i < 2000; i++)
            last = submit(pto_record_sink(record), i == 700 || i == 900 ? FAIL : COUNT, i == 700 ? 3 : 9, NULL, 0, last,
                          1000);
        pto_execute_result result;
        atomic_store(&n_called, 0);
        CHECK_EQ(execute(pools[threads], record, 0, 0, &result), PTO_E_KERNEL);
        CHECK_EQ(result.failed_task, 700);
        CHECK_EQ(result.failed_guard, 2);
        CHECK_EQ(result.fault.row, 4);
        CHECK_EQ(result.fault.col, 700);
        CHECK_EQ(result.fault.value, -6);
        CHECK_EQ(result.fault.lower, 7);
        CHECK_EQ(result.fault.upper, 8);
        CHECK_EQ(result.n_run, 700);
        CHECK_EQ(atomic_load(&n_called), 700);
        pto_record_free(record);
    }
}

static void failures_of_independent_tasks_name_the_earliest(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){0});
    for (int64_t i = 0; i < 4000; i++)
        submit(pto_record_sink(record), FAIL, i % 2, NULL, 0, -1, 1000);
    pto_execute_result result;
    CHECK_EQ(execute(pools[1], record, 0, 0, &result), PTO_E_KERNEL);
    CHECK_EQ(result.failed_task, 1);
    for (uint64_t seed = 0; seed < (uint64_t)CASES(20); seed++) {
        CHECK_EQ(execute(pools[THREADS], record, 0, seed, &result), PTO_E_KERNEL);
        CHECK_EQ(result.failed_task, 1);
    }
    CHECK_EQ(result.fault.row, 0);             /* nothing is left of an earlier run's */
    pto_record_free(record);
}

static void *cancel_when_running(void *pool)
{
    while (!atomic_load(&gate))
        nap();
    pto_pool_cancel(pool);
    return NULL;
}

static void a_cancelled_run_stops_and_the_next_works(void)
{
    for (int32_t threads = 1; threads <= THREADS; threads++) {
        pto_record *record = pto_record_new(&(pto_record_options){0});
        for (int64_t i = 0; i < 3000; i++)
            submit(pto_record_sink(record), SLOW, 0, NULL, 0, -1, threads % 2 ? 1 : 100000);
        pto_record *after = pto_record_new(&(pto_record_options){0});
        for (int64_t i = 0; i < 3000; i++)
            submit(pto_record_sink(after), COUNT, 0, NULL, 0, -1, 1000);
        atomic_store(&gate, 0);
        pthread_t thread;
        pthread_create(&thread, NULL, cancel_when_running, pools[threads]);
        pto_execute_result result;
        CHECK_EQ(execute(pools[threads], record, 0, 0, &result), PTO_E_CANCELLED);
        CHECK(result.n_run >= 1 && result.n_run < 3000);
        CHECK_EQ(result.failed_task, -1);
        pthread_join(thread, NULL);
        CHECK_EQ(execute(pools[threads], after, 0, 0, &result), PTO_OK);
        pto_record_free(record);
        pto_record_free(after);
    }
}

static void long_small_graphs_get_help(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){0});
    int64_t first = -1;
    for (int64_t i = 0; i < 60; i++) {
        int64_t node = submit(pto_record_sink(record), SLOW, 0, NULL, 0, i % 20 ? first : -1, 1);
        first = i % 20 ? first : node;
    }
    pto_execute_result result = {0};
    for (int32_t turn = 0; turn < 20 && result.threads < 2; turn++) {     /* help comes late where other processes have the cores */
        CHECK_EQ(execute(pools[THREADS], record, 0, 0, &result), PTO_OK);
        CHECK_EQ(result.n_run, 60);
    }
    CHECK(result.threads > 1);
    CHECK_EQ(execute(pools[THREADS], record, 1, 0, &result), PTO_OK);
    CHECK_EQ(result.threads, 1);
    pto_record_free(record);
}

typedef struct shared_run {
    pto_pool *pool;
    const pto_record *record;
    int32_t status;
} shared_run;

static void *execute_often(void *user)
{
    shared_run *run = user;
    for (int32_t i = 0; i < 50 && run->status == PTO_OK; i++) {
        pto_execute_result result;
        run->status = execute(run->pool, run->record, i % 3, 0, &result);
    }
    return NULL;
}

static void concurrent_runs_of_one_pool_and_one_record_take_turns(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){0});
    for (int64_t i = 0; i < 500; i++)
        submit(pto_record_sink(record), COUNT, 0, NULL, 0, i >= 7 ? i - 7 : -1, 1000);
    shared_run runs[3] = {{pools[2], record, 0}, {pools[2], record, 0}, {pools[3], record, 0}};
    pthread_t threads[3];
    atomic_store(&n_called, 0);
    for (int32_t i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, execute_often, &runs[i]);
    for (int32_t i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQ(runs[i].status, PTO_OK);
    }
    CHECK_EQ(atomic_load(&n_called), 3 * 50 * 500);
    pto_record_free(record);
}

static void wrong_kernel_numbers_are_refused(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){0});
    pto_execute_result result;
    CHECK_EQ(execute(pools[2], record, 0, 0, &result), PTO_OK);
    CHECK_EQ(result.n_run, 0);
    submit(pto_record_sink(record), N_KERNELS, 0, NULL, 0, -1, 1);
    CHECK_EQ(execute(pools[2], record, 0, 0, &result), PTO_E_ARGUMENT);
    pto_record_free(record);
}

int main(void)
{
    for (int32_t i = 1; i <= THREADS; i++) {
        pools[i] = pto_pool_new(i);
        CHECK_EQ(pto_pool_threads(pools[i]), i);
    }
    static const check_test tests[] = {
        TEST(random_programs_give_program_order), TEST(a_missing_edge_shows_in_some_seeded_order),
        TEST(wide_release_overflows_no_deque), TEST(scratch_is_aligned_and_private),
        TEST(first_failure_is_reported_and_stops_the_run), TEST(failures_of_independent_tasks_name_the_earliest),
        TEST(a_cancelled_run_stops_and_the_next_works), TEST(long_small_graphs_get_help),
        TEST(concurrent_runs_of_one_pool_and_one_record_take_turns), TEST(wrong_kernel_numbers_are_refused)};
    int status = RUN_TESTS(tests);
    for (int32_t i = 1; i <= THREADS; i++)
        pto_pool_free(pools[i]);
    return status;
}
