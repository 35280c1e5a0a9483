/* test_run.c: whole runs: orchestrate, chunks past the cap, guards, the handshake table. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
#include "check.h"
#include "pto_layout.h"

enum { CELLS = 40, STEPS = 50 };

static int64_t cells[CELLS];
static _Atomic int64_t n_called;

static int32_t add_neighbour(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scratch, (void)context;
    int64_t *out = (int64_t *)args[1].data;
    *out = (int64_t)((uint64_t)*out * 3 + (uint64_t)*(int64_t *)args[0].data + (uint64_t)scalars[0]);
    atomic_fetch_add(&n_called, 1);
    return scalars[0] < 0 ? 5 : 0;
}

static const pto_kernel kernels[] = {{add_neighbour, 0}};

static pto_arg cell(int64_t at, int32_t flags)
{
    return (pto_arg){.data = (char *)&cells[at % CELLS], .extent = {1, 1}, .stride = {1, 1}, .elem_bytes = 8,
                     .flags = flags};
}

/* symbols: [0] the task that fails, [1] the task at which a guard fails; -1: none */
static int32_t orchestrate(const pto_bindings *bindings, pto_sink *sink)
{
    int64_t barrier = -1, join = sink->join_open(sink);
    for (int64_t i = 0; i < CELLS * STEPS; i++) {
        if (i == bindings->symbols[1])
            return sink->fail(sink, &(pto_guard){.guard = 4, .found = i, .lower = 0, .upper = i - 1});
        pto_arg args[2] = {cell(i * 7, PTO_READ), cell(i * 7 + 1, PTO_READ | PTO_WRITE)};
        int64_t scalar = i == bindings->symbols[0] ? -1 : i;
        pto_task task = {.worker = i % 3, .cost = i % 5, .n_args = 2, .args = args, .n_scalars = 1, .scalars = &scalar,
                         .n_order = 1, .order = &barrier};
        int64_t node = sink->submit(sink, &task);
        if (node < 0)
            return sink->status;
        sink->join_add(sink, join, node);
        if (i % 333 == 332) {
            barrier = sink->join_close(sink, join, -1);
            join = sink->join_open(sink);
        }
    }
    return PTO_OK;
}

static int32_t run(pto_pool *pool, pto_record *record, pto_sim *sim, int64_t fails, int64_t guard,
                   pto_execute_result *result)
{
    pto_bindings bindings = {.symbols = (int64_t[]){fails, guard}, .n_symbols = 2};
    pto_run_options options = {.orchestrate = orchestrate, .bindings = &bindings, .kernels = kernels, .n_kernels = 1,
                               .sim = sim};
    for (int64_t i = 0; i < CELLS; i++)
        cells[i] = i;
    atomic_store(&n_called, 0);
    return pto_run(pool, record, &options, result);
}

static void expect(int64_t *out)
{
    for (int64_t i = 0; i < CELLS; i++)
        out[i] = i;
    for (int64_t i = 0; i < CELLS * STEPS; i++) {
        int64_t *to = &out[(i * 7 + 1) % CELLS];
        *to = (int64_t)((uint64_t)*to * 3 + (uint64_t)out[i * 7 % CELLS] + (uint64_t)i);
    }
}

static void chunked_runs_give_the_same_numbers(void)
{
    static const int64_t caps[] = {0, 1, 7, 100, 1999, 2000, 5000};
    int64_t expected[CELLS];
    expect(expected);
    pto_pool *pool = pto_pool_new(3);
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
        pto_record *record = pto_record_new(&(pto_record_options){.max_tasks = caps[i], .window = 16, .infer = 1});
        pto_execute_result result;
        CHECK_EQ(run(pool, record, NULL, -1, -1, &result), PTO_OK);
        CHECK_EQ(result.n_run, CELLS * STEPS);
        CHECK_EQ(result.failed_task, -1);
        CHECK(memcmp(cells, expected, sizeof cells) == 0);
        pto_columns c;
        pto_record_columns(record, &c);
        CHECK_EQ(c.total_tasks, CELLS * STEPS);
        CHECK_EQ(c.first_task + c.n_tasks, CELLS * STEPS);
        CHECK(caps[i] == 0 || c.n_tasks <= caps[i]);
        CHECK_EQ(c.first_task > 0, caps[i] > 0 && caps[i] < CELLS * STEPS);

        pto_run_options again = {.kernels = kernels, .n_kernels = 1};
        int32_t status = pto_run(pool, record, &again, &result);
        CHECK_EQ(status, c.first_task > 0 ? PTO_E_ARGUMENT : PTO_OK);
        pto_record_free(record);
    }
    pto_pool_free(pool);
}

/* A run in chunks and one in one piece simulate alike, also where the dependency map was pruned. */
static void chunked_runs_simulate_the_same(void)
{
    pto_pool *pool = pto_pool_new(2);
    for (int64_t window = 1; window <= 64; window *= 4) {
        pto_sim_result r[2];
        pto_sim *sims[2];
        for (int32_t i = 0; i < 2; i++) {
            pto_record *record = pto_record_new(&(pto_record_options){.max_tasks = i ? 90 : 0, .window = window,
                                                                      .infer = 1});
            pto_execute_result result;
            sims[i] = pto_sim_new(&(pto_sim_options){.n_workers = 3, .window = window, .keep_trace = 1});
            CHECK_EQ(run(pool, record, sims[i], -1, -1, &result), PTO_OK);
            if (i == 0)
                CHECK_EQ(pto_sim_feed(sims[i], record), PTO_OK);
            CHECK_EQ(pto_sim_finish(sims[i], &r[i]), PTO_OK);
            pto_record_free(record);
        }
        CHECK_EQ(r[0].n_tasks, CELLS * STEPS);
        CHECK_EQ(r[1].total_cycles, r[0].total_cycles);
        CHECK_EQ(r[1].window_stalls, r[0].window_stalls);
        CHECK(memcmp(r[0].start, r[1].start, CELLS * STEPS * sizeof *r[0].start) == 0);
        CHECK(memcmp(r[0].waiting, r[1].waiting, 3 * sizeof *r[0].waiting) == 0);
        pto_sim_free(sims[0]);
        pto_sim_free(sims[1]);
    }
    pto_pool_free(pool);
}

/* The engine keeps no window, so inside a chunk the map must not forget: task 10 writes, task 19 reads, window 2. */
static int32_t write_early_read_late(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    for (int64_t i = 0; i < 20; i++) {
        pto_arg arg = cell(i == 10 || i == 19 ? 0 : i, i == 19 ? PTO_READ : PTO_WRITE);
        pto_task task = {.n_args = 1, .args = &arg};
        sink->submit(sink, &task);
    }
    return sink->status;
}

static void pruning_spares_the_chunk_that_will_run(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.max_tasks = 10, .window = 2, .infer = 1});
    pto_execute_result result;
    CHECK_EQ(pto_run(NULL, record, &(pto_run_options){.orchestrate = write_early_read_late}, &result), PTO_OK);
    pto_columns c;
    pto_record_columns(record, &c);
    CHECK_EQ(c.first_task, 10);
    CHECK_EQ(c.pred_begin[10] - c.pred_begin[9], 1);
    CHECK_EQ(c.edge_src[c.n_edges - 1], 10);
    pto_record_free(record);
}

static int32_t fresh_buffers(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    for (int64_t i = 0; i < CASES(400000) && sink->status == PTO_OK; i++) {
        pto_arg args[2] = {cell(i, PTO_WRITE), cell(0, PTO_READ)};
        args[0].buffer = (int32_t)i + 1;
        args[1].data += 8 * i;
        pto_task task = {.n_args = 2, .args = args, .cost = 1};
        sink->submit(sink, &task);
    }
    return sink->status;
}

static void memory_of_a_long_stream_is_bounded(void)
{
    int64_t before = resident_kib();
    pto_record *record = pto_record_new(&(pto_record_options){.max_tasks = 1000, .window = 16, .infer = 1});
    pto_sim *sim = pto_sim_new(&(pto_sim_options){.n_workers = 1, .window = 16});
    pto_execute_result result;
    pto_sim_result simulated;
    CHECK_EQ(pto_run(NULL, record, &(pto_run_options){.orchestrate = fresh_buffers, .sim = sim}, &result), PTO_OK);
    CHECK_EQ(pto_sim_finish(sim, &simulated), PTO_OK);
    CHECK_EQ(simulated.total_cycles, CASES(400000));
    CHECK(resident_kib() - before < 24000);
    pto_sim_free(sim);
    pto_record_free(record);
}

static void a_guard_below_the_cap_runs_nothing(void)
{
    pto_pool *pool = pto_pool_new(2);
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
    pto_execute_result result;
    CHECK(pto_record_guard(record) == NULL);
    CHECK_EQ(run(pool, record, NULL, -1, 1500, &result), PTO_E_GUARD);
    CHECK_EQ(atomic_load(&n_called), 0);
    CHECK_EQ(result.n_run, 0);
    CHECK(pto_record_guard(record) != NULL && pto_record_guard(record)->guard == 4);
    CHECK(pto_record_guard(record)->found == 1500 && pto_record_guard(record)->upper == 1499);
    CHECK_EQ(run(pool, record, NULL, -1, -1, &result), PTO_OK);
    CHECK(pto_record_guard(record) == NULL);
    pto_record_free(record);
    pto_pool_free(pool);
}

static void a_kernel_failure_names_the_absolute_task(void)
{
    pto_pool *pool = pto_pool_new(2);
    for (int64_t cap = 0; cap <= 300; cap += 100) {
        pto_record *record = pto_record_new(&(pto_record_options){.max_tasks = cap, .window = 8, .infer = 1});
        pto_execute_result result;
        CHECK_EQ(run(pool, record, NULL, 1234, -1, &result), PTO_E_KERNEL);
        CHECK_EQ(result.failed_task, 1234);
        CHECK_EQ(result.failed_guard, 4);
        pto_record_free(record);
    }
    pto_pool_free(pool);
}

/* ---- Ctrl-C: the kernel presses it at one task ---- */

static _Atomic int64_t n_seen;
static int64_t pressed_at;

static void see(int number)
{
    (void)number;
    atomic_fetch_add(&n_seen, 1);
}

static int32_t press(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    if (scalars[0] == pressed_at)
        raise(SIGINT);
    return add_neighbour(args, scalars, scratch, context);
}

static int32_t run_pressed(pto_record *record, int64_t at, void (*handler)(int), pto_execute_result *result)
{
    static const pto_kernel pressing[] = {{press, 0}};
    pto_pool *pool = pto_pool_new(1);      /* on one thread, the main one */
    pto_bindings bindings = {.symbols = (int64_t[]){-1, -1}, .n_symbols = 2};
    pto_run_options options = {.orchestrate = orchestrate, .bindings = &bindings, .kernels = pressing, .n_kernels = 1,
                               .interruptible = 1};
    pressed_at = at;
    atomic_store(&n_seen, 0);
    atomic_store(&n_called, 0);
    signal(SIGINT, handler);
    int32_t status = pto_run(pool, record, &options, result);
    CHECK(signal(SIGINT, SIG_DFL) == handler);     /* put back */
    pto_pool_free(pool);
    return status;
}

static void an_interrupt_ends_the_run_and_is_not_told_twice(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
    pto_execute_result result;
    CHECK_EQ(run_pressed(record, 700, see, &result), PTO_E_CANCELLED);
    CHECK_EQ(n_called, 701);
    CHECK_EQ(n_seen, 0);
    pto_record_free(record);
}

static void an_interrupt_of_the_last_task_reaches_the_handler(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
    pto_execute_result result;
    CHECK_EQ(run_pressed(record, CELLS * STEPS - 1, see, &result), PTO_OK);
    CHECK_EQ(n_seen, 1);
    pto_record_free(record);
}

static void an_ignored_interrupt_stays_ignored(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
    pto_execute_result result;
    CHECK_EQ(run_pressed(record, 700, SIG_IGN, &result), PTO_OK);
    CHECK_EQ(n_called, CELLS * STEPS);
    pto_record_free(record);
}

/* ---- what looks whether it is cancelled ---- */

static int32_t orchestrate_nothing(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    raise(SIGINT);
    while (__atomic_load_n(sink->cancel, __ATOMIC_RELAXED) == 0)
        ;
    return PTO_E_CANCELLED;
}

static _Atomic int32_t is_pressed, is_looping;

static int32_t loop_for_long(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    if (pressed_at >= 0 && scalars[0] >= pressed_at && !atomic_exchange(&is_pressed, 1))
        kill(getpid(), SIGINT);            /* helpers block it: the main thread gets it */
    if (pressed_at >= 0 && scalars[0] >= pressed_at)
        atomic_store(&is_looping, 1);
    while (pressed_at >= 0 && scalars[0] >= pressed_at)
        if (__atomic_load_n(context->cancel, __ATOMIC_RELAXED) != 0)
            return PTO_CANCELLED;
    return add_neighbour(args, scalars, scratch, context);
}

static int32_t run_once(pto_pool *pool, pto_orchestrate_fn make, pto_kernel_fn entry, uint64_t seed)
{
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
    pto_bindings bindings = {.symbols = (int64_t[]){-1, -1}, .n_symbols = 2};
    pto_execute_result result;
    pto_run_options options = {.orchestrate = make, .bindings = &bindings, .kernels = &(pto_kernel){entry, 0}, .n_kernels = 1,
                               .execute = {.order_seed = seed}, .interruptible = 1};
    atomic_store(&n_seen, 0);
    atomic_store(&n_called, 0);
    signal(SIGINT, see);
    int32_t status = pto_run(pool, record, &options, &result);
    CHECK(signal(SIGINT, SIG_DFL) == see);
    pto_record_free(record);
    return status;
}

static void an_interrupt_ends_a_loop_that_makes_no_tasks(void)
{
    pto_pool *pool = pto_pool_new(2);
    CHECK_EQ(run_once(pool, orchestrate_nothing, add_neighbour, 0), PTO_E_CANCELLED);
    CHECK_EQ(run_once(NULL, orchestrate_nothing, add_neighbour, 0), PTO_E_CANCELLED);      /* which only records */
    CHECK_EQ(n_seen, 0);
    pressed_at = -1;
    CHECK_EQ(run_once(pool, orchestrate, loop_for_long, 0), PTO_OK);
    CHECK_EQ(n_called, CELLS * STEPS);
    pto_pool_free(pool);
}

static void an_interrupt_ends_a_loop_in_a_kernel(void)
{
    for (int32_t threads = 1; threads <= 3; threads++)
        for (uint64_t seed = 0; seed < 2; seed++) {
            pto_pool *pool = pto_pool_new(threads);
            pressed_at = 700;
            atomic_store(&is_pressed, 0);
            CHECK_EQ(run_once(pool, orchestrate, loop_for_long, seed), PTO_E_CANCELLED);
            CHECK(n_called < CELLS * STEPS);
            CHECK_EQ(n_seen, 0);
            pressed_at = -1;
            CHECK_EQ(run_once(pool, orchestrate, loop_for_long, seed), PTO_OK);
            CHECK_EQ(n_called, CELLS * STEPS);
            pto_pool_free(pool);
        }
}

static void *cancel_soon(void *pool)
{
    struct timespec nap = {0, 1000000};
    while (!atomic_load(&is_looping))      /* a cancel before the run begins is none of this run */
        nanosleep(&nap, NULL);
    pto_pool_cancel(pool);
    return NULL;
}

static void a_cancelled_pool_ends_a_loop_in_a_kernel(void)
{
    pto_pool *pool = pto_pool_new(2);
    pthread_t thread;
    pressed_at = 1;
    atomic_store(&is_pressed, 1);          /* nobody presses it */
    atomic_store(&is_looping, 0);
    CHECK(pthread_create(&thread, NULL, cancel_soon, pool) == 0);
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
    CHECK_EQ(orchestrate(&(pto_bindings){.symbols = (int64_t[]){-1, -1}, .n_symbols = 2}, pto_record_sink(record)), PTO_OK);
    pto_execute_result result;
    CHECK_EQ(pto_execute(pool, record, &(pto_kernel){loop_for_long, 0}, 1, &(pto_execute_options){0}, &result), PTO_E_CANCELLED);
    pthread_join(thread, NULL);
    pressed_at = -1;
    CHECK_EQ(pto_execute(pool, record, &(pto_kernel){loop_for_long, 0}, 1, &(pto_execute_options){0}, &result), PTO_OK);
    pto_record_free(record);
    pto_pool_free(pool);
}

static void *press_soon(void *process)
{
    struct timespec nap = {0, 10000000};
    nanosleep(&nap, NULL);
    kill(*(pid_t *)process, SIGINT);
    return NULL;
}

static void an_interrupt_ends_a_simulation(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
    CHECK_EQ(orchestrate(&(pto_bindings){.symbols = (int64_t[]){-1, -1}, .n_symbols = 2}, pto_record_sink(record)), PTO_OK);
    pthread_t thread;
    pid_t process = getpid();
    atomic_store(&n_seen, 0);
    signal(SIGINT, see);
    CHECK(pthread_create(&thread, NULL, press_soon, &process) == 0);
    int32_t status = PTO_OK;
    while (status == PTO_OK && atomic_load(&n_seen) == 0) {        /* seen: it came between two calls */
        pto_sim *sim = pto_sim_new(&(pto_sim_options){.n_workers = 3, .window = 8, .interruptible = 1});
        pto_sim_result timed;
        status = pto_sim_feed(sim, record);
        if (status == PTO_OK)
            status = pto_sim_finish(sim, &timed);
        pto_sim_free(sim);
    }
    pthread_join(thread, NULL);
    CHECK(signal(SIGINT, SIG_DFL) == see);
    CHECK_EQ(status == PTO_E_CANCELLED, n_seen == 0);
    pto_record_free(record);
}

static void the_layout_table_covers_the_text(void)
{
    static const pto_layout artifact[] = {PTO_LAYOUT_ARTIFACT};
    const pto_layout *rows;
    int32_t n = pto_abi_layout(&rows);
    int64_t covered = 0, whole = 0;
    CHECK_EQ(pto_abi_version(), PTO_ABI_VERSION);
    for (int32_t i = 0; i < n; i++) {
        bool is_struct = strchr(rows[i].name, '.') == NULL;
        *(is_struct ? &whole : &covered) += rows[i].size_bytes;
        for (int32_t j = 0; j < i; j++)
            CHECK(strcmp(rows[i].name, rows[j].name) != 0);
    }
    CHECK_EQ(covered, whole);       /* no field is missing, and no padding hides in any struct */
    for (size_t i = 0; i < sizeof artifact / sizeof *artifact; i++)
        CHECK(strcmp(artifact[i].name, rows[i].name) == 0 && artifact[i].offset_bytes == rows[i].offset_bytes);
}

int main(void)
{
    static const check_test tests[] = {
        TEST(chunked_runs_give_the_same_numbers), TEST(chunked_runs_simulate_the_same),
        TEST(pruning_spares_the_chunk_that_will_run), TEST(memory_of_a_long_stream_is_bounded),
        TEST(a_guard_below_the_cap_runs_nothing), TEST(a_kernel_failure_names_the_absolute_task),
        TEST(an_interrupt_ends_the_run_and_is_not_told_twice), TEST(an_interrupt_of_the_last_task_reaches_the_handler),
        TEST(an_ignored_interrupt_stays_ignored),
        TEST(an_interrupt_ends_a_loop_that_makes_no_tasks), TEST(an_interrupt_ends_a_loop_in_a_kernel),
        TEST(a_cancelled_pool_ends_a_loop_in_a_kernel), TEST(an_interrupt_ends_a_simulation), TEST(the_layout_table_covers_the_text)};
    return RUN_TESTS(tests);
}
