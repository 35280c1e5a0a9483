/* test_calendar.c: records that run strictly by a calendar: each worker's tasks on one thread in the order of their positions. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "check.h"

enum { CELLS = 24, TASKS = 400, WORKERS = 5, THREADS = 4 };

static int64_t cells[CELLS];
static pto_pool *pools[THREADS + 1];

/* Written by the worker's thread alone: the thread sanitizer would see another one. */
static struct {
    int64_t positions[TASKS];
    int64_t n;
    pthread_t thread;
} logs[WORKERS];
static _Atomic int32_t n_entered;

/* Not commutative, so that any swapped pair of conflicting tasks shows. */
static void mix(int64_t task, const pto_arg *args)
{
    uint64_t sum = (uint64_t)task;
    for (int64_t i = 0; i < args[0].extent[1]; i++)
        sum = sum * 31 + (uint64_t)((int64_t *)args[0].data)[i];
    for (int64_t i = 0; i < args[1].extent[1]; i++) {
        int64_t *out = (int64_t *)args[1].data + i;
        *out = (int64_t)((uint64_t)*out * 7 + sum);
    }
}

static int32_t noted(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scratch, (void)context;
    int64_t worker = scalars[1], n = logs[worker].n++;
    logs[worker].positions[n] = scalars[2];
    CHECK(n == 0 || pthread_equal(logs[worker].thread, pthread_self()));
    logs[worker].thread = pthread_self();
    mix(scalars[0], args);
    return 0;
}

static int32_t failing(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scratch, (void)context;
    return scalars[0] == 7 || scalars[0] == 4 ? 3 : 0;
}

static int32_t slow(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scalars, (void)scratch, (void)context;
    atomic_fetch_add(&n_entered, 1);
    nanosleep(&(struct timespec){0, 500000}, NULL);
    return 0;
}

enum { NOTED, FAILING, SLOW, N_KERNELS };
static const pto_kernel kernels[] = {{noted, 0}, {failing, 0}, {slow, 0}};

static pto_record *new_record(int32_t keep)
{
    return pto_record_new(&(pto_record_options){.infer = 1, .keep = keep});
}

static pto_arg cell(int64_t at, int64_t n, int32_t flags)
{
    return (pto_arg){.data = (char *)&cells[at], .extent = {1, n}, .stride = {n, 1}, .elem_bytes = 8, .flags = flags};
}

typedef struct program {
    int64_t n;
    pto_arg args[TASKS][2];
    int64_t join_of[TASKS];            /* a task whose join the task waits for, -1: none */
    int64_t worker[TASKS];
    int64_t position[TASKS];
} program;

static void draw(program *p)
{
    p->n = pick(1, TASKS);
    for (int64_t t = 0; t < p->n; t++) {
        p->args[t][0] = cell(pick(0, CELLS - 4), pick(1, 4), PTO_READ);
        p->args[t][1] = cell(pick(0, CELLS - 4), pick(1, 4), PTO_READ | PTO_WRITE);
        p->join_of[t] = t > 1 && pick(0, 5) == 0 ? pick(1, t - 1) : -1;
        p->worker[t] = pick(0, WORKERS - 1);
        p->position[t] = 0;
    }
}

static void record_tasks(pto_record *record, const program *p)
{
    pto_sink *sink = pto_record_sink(record);
    int64_t nodes[TASKS];
    for (int64_t t = 0; t < p->n; t++) {
        int64_t order = -1, scalars[3] = {t, p->worker[t], p->position[t]};
        if (p->join_of[t] >= 0) {
            int64_t join = sink->join_open(sink);
            sink->join_add(sink, join, nodes[p->join_of[t]]);
            sink->join_add(sink, join, nodes[p->join_of[t] - 1]);
            order = sink->join_close(sink, join, -1);
        }
        nodes[t] = sink->submit(sink, &(pto_task){.kernel = NOTED, .worker = p->worker[t], .position = p->position[t], .n_args = 2,
                                                  .args = p->args[t], .n_scalars = 3, .scalars = scalars, .n_order = 1,
                                                  .order = &order});
        CHECK(nodes[t] >= 0);
    }
}

/* Positions in a random order that the edges allow. */
static void draw_calendar(program *p)
{
    pto_record *record = new_record(0);
    record_tasks(record, p);
    pto_columns c;
    pto_record_columns(record, &c);
    uint8_t *done = calloc((size_t)c.n_nodes, 1);
    int64_t n_of[WORKERS] = {0};
    for (int64_t n_done = 0; n_done < c.n_nodes;) {
        int64_t at = pick(0, c.n_nodes - 1);
        bool ready = !done[at];
        for (int64_t e = c.pred_begin[at]; ready && e < c.pred_begin[at + 1]; e++)
            ready = done[c.edge_src[e]];
        if (!ready)
            continue;
        done[at] = 1;
        n_done++;
        int64_t t = c.node_task[at];
        if (t >= 0)
            p->position[t] = 3 * n_of[p->worker[t]]++ + pick(0, 2);
    }
    free(done);
    pto_record_free(record);
}

static void random_calendars_are_followed_on_any_number_of_threads(void)
{
    static program p;
    for (int64_t i = 0; i < CASES(40); i++) {
        draw(&p);
        draw_calendar(&p);
        pto_record *record = new_record(PTO_KEEP_POSITION);
        record_tasks(record, &p);
        int64_t expected[CELLS];
        for (int64_t k = 0; k < CELLS; k++)
            cells[k] = k;
        for (int64_t t = 0; t < p.n; t++)
            mix(t, p.args[t]);
        memcpy(expected, cells, sizeof cells);
        for (int32_t threads = 1; threads <= THREADS; threads++)
            for (int32_t again = 0; again < 2; again++) {
                pto_execute_result result;
                for (int64_t k = 0; k < CELLS; k++)
                    cells[k] = k;
                memset(logs, 0, sizeof logs);
                CHECK_EQ(pto_execute(pools[threads], record, kernels, N_KERNELS, &(pto_execute_options){.places = PTO_PLACE_CALENDAR}, &result), PTO_OK);
                CHECK_EQ(result.n_run, p.n);
                CHECK(memcmp(cells, expected, sizeof cells) == 0);
                for (int64_t w = 0; w < WORKERS; w++)
                    for (int64_t k = 1; k < logs[w].n; k++)
                        CHECK(logs[w].positions[k - 1] < logs[w].positions[k]);
            }
        pto_record_free(record);
    }
}

static int64_t submit(pto_sink *sink, int32_t kernel, int64_t number, int64_t worker, int64_t position, int64_t order)
{
    return sink->submit(sink, &(pto_task){.kernel = kernel, .worker = worker, .position = position, .n_scalars = 1, .scalars = &number,
                                          .n_order = 1, .order = &order});
}

static void the_first_failure_in_program_order_is_told(void)
{
    pto_record *record = new_record(PTO_KEEP_POSITION);
    for (int64_t t = 0; t < 20; t++)
        submit(pto_record_sink(record), FAILING, t, t % 2, 20 - t, -1);     /* each worker backwards: task 7 runs before task 4 */
    for (int32_t threads = 1; threads <= THREADS; threads++) {
        pto_execute_result result;
        CHECK_EQ(pto_execute(pools[threads], record, kernels, N_KERNELS, &(pto_execute_options){.places = PTO_PLACE_CALENDAR}, &result), PTO_E_KERNEL);
        CHECK_EQ(result.failed_task, 4);
        CHECK_EQ(result.failed_guard, 2);
    }
    pto_record_free(record);
}

static void a_calendar_that_an_edge_forbids_is_a_deadlock(void)
{
    pto_record *record = new_record(PTO_KEEP_POSITION);
    pto_sink *sink = pto_record_sink(record);
    int64_t a = submit(sink, SLOW, 0, 0, 1, -1), b = submit(sink, SLOW, 1, 1, 0, a);
    submit(sink, SLOW, 2, 0, 0, b);
    pto_execute_result result;
    atomic_store(&n_entered, 0);
    CHECK_EQ(pto_execute(pools[2], record, kernels, N_KERNELS, &(pto_execute_options){.places = PTO_PLACE_CALENDAR}, &result), PTO_E_DEADLOCK);
    CHECK_EQ(atomic_load(&n_entered), 0);
    pto_record_free(record);
}

static void a_record_without_positions_has_no_calendar(void)
{
    pto_record *record = new_record(0);
    submit(pto_record_sink(record), SLOW, 0, 0, 0, -1);
    pto_execute_result result;
    CHECK_EQ(pto_execute(pools[2], record, kernels, N_KERNELS, &(pto_execute_options){.places = PTO_PLACE_CALENDAR}, &result), PTO_E_ARGUMENT);
    pto_record_free(record);
}

static void *cancel_soon(void *pool)
{
    while (atomic_load(&n_entered) < 3)
        nanosleep(&(struct timespec){0, 100000}, NULL);
    pto_pool_cancel(pool);
    return NULL;
}

static void a_cancelled_run_ends_though_others_wait(void)
{
    pto_record *record = new_record(PTO_KEEP_POSITION);
    int64_t before = -1;
    for (int64_t t = 0; t < 2000; t++)
        before = submit(pto_record_sink(record), SLOW, t, t % 2, t, before);
    pthread_t thread;
    pto_execute_result result;
    atomic_store(&n_entered, 0);
    pthread_create(&thread, NULL, cancel_soon, pools[2]);
    CHECK_EQ(pto_execute(pools[2], record, kernels, N_KERNELS, &(pto_execute_options){.places = PTO_PLACE_CALENDAR}, &result), PTO_E_CANCELLED);
    pthread_join(thread, NULL);
    CHECK(result.n_run < 2000);
    pto_record_free(record);
}

typedef struct often {
    const pto_record *record;
    int32_t threads;
    int32_t n_wrong;
} often;

static void *execute_often(void *user)
{
    often *o = user;
    for (int32_t i = 0; i < CASES(100); i++) {
        pto_execute_result result;
        int32_t status = pto_execute(pools[o->threads], o->record, kernels, N_KERNELS, &(pto_execute_options){.places = PTO_PLACE_CALENDAR},
                                     &result);
        o->n_wrong += status != PTO_OK || result.n_run != TASKS;
    }
    return NULL;
}

/* Each number of threads has lists of its own. */
static void one_record_runs_on_two_pools_at_once(void)
{
    pto_record *record = new_record(PTO_KEEP_POSITION);
    for (int64_t t = 0; t < TASKS; t++)
        submit(pto_record_sink(record), FAILING, 0, t % WORKERS, t, t >= 3 ? t - 3 : -1);
    often runs[2] = {{record, 2, 0}, {record, 3, 0}};
    pthread_t threads[2];
    for (int32_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, execute_often, &runs[i]);
    for (int32_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQ(runs[i].n_wrong, 0);
    }
    pto_record_free(record);
}

static void an_empty_record_runs(void)
{
    pto_record *record = new_record(PTO_KEEP_POSITION);
    pto_execute_result result;
    CHECK_EQ(pto_execute(pools[2], record, kernels, N_KERNELS, &(pto_execute_options){.places = PTO_PLACE_CALENDAR}, &result), PTO_OK);
    pto_record_free(record);
}

int main(void)
{
    for (int32_t threads = 1; threads <= THREADS; threads++)
        pools[threads] = pto_pool_new(threads);
    const check_test tests[] = {
        TEST(random_calendars_are_followed_on_any_number_of_threads),
        TEST(the_first_failure_in_program_order_is_told),
        TEST(a_calendar_that_an_edge_forbids_is_a_deadlock),
        TEST(a_record_without_positions_has_no_calendar),
        TEST(a_cancelled_run_ends_though_others_wait),
        TEST(one_record_runs_on_two_pools_at_once),
        TEST(an_empty_record_runs),
    };
    int failed = RUN_TESTS(tests);
    for (int32_t threads = 1; threads <= THREADS; threads++)
        pto_pool_free(pools[threads]);
    return failed;
}
