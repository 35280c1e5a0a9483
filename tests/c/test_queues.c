/* test_queues.c: ready tasks by home and by priority: where they run, in which order, and that none is lost or waits for nothing. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "check.h"

enum { CELLS = 24, TASKS = 400, THREADS = 4, WIDE = 20000 };

static int64_t cells[CELLS];
static pto_pool *pools[THREADS + 1];
static pto_wall *wall;
static _Atomic int64_t n_entered;      /* tasks, of MEET, NOTE and SLOW */
static _Atomic int64_t noted[WIDE + 1];

static const pto_execute_options plainly = {0}, at_home = {.places = PTO_PLACE_HOME}, by_priority = {.by_priority = 1},
                                 both = {.places = PTO_PLACE_HOME, .by_priority = 1};
static const pto_execute_options *const ways[] = {&plainly, &at_home, &by_priority, &both};
enum { N_WAYS = sizeof ways / sizeof *ways };

static void nap(void)
{
    nanosleep(&(struct timespec){0, 200000}, NULL);
}

/* Not commutative, so that any swapped pair of conflicting tasks shows. */
static int32_t mix(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scratch, (void)context;
    uint64_t sum = (uint64_t)scalars[0];
    for (int64_t i = 0; i < args[0].extent[1]; i++)
        sum = sum * 31 + (uint64_t)((int64_t *)args[0].data)[i];
    for (int64_t i = 0; i < args[1].extent[1]; i++) {
        int64_t *out = (int64_t *)args[1].data + i;
        *out = (int64_t)((uint64_t)*out * 7 + sum);
    }
    return 0;
}

/* Wait until so many tasks have begun: those that wait have a thread each. */
static int32_t meet(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scratch, (void)context;
    atomic_fetch_add(&n_entered, 1);
    for (int32_t i = 0; i < 20000 && atomic_load(&n_entered) < scalars[0]; i++)
        nap();
    return atomic_load(&n_entered) < scalars[0];
}

static int32_t note(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scratch, (void)context;
    atomic_store(&noted[atomic_fetch_add(&n_entered, 1)], scalars[0]);
    return 0;
}

static int32_t count(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scratch, (void)context;
    atomic_fetch_add(&noted[scalars[0]], 1);
    return 0;
}

static int32_t failing(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scratch, (void)context;
    return scalars[0] == 700 || scalars[0] == 900 ? 3 : 0;
}

static int32_t slow(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scalars, (void)scratch, (void)context;
    atomic_fetch_add(&n_entered, 1);
    nap();
    return 0;
}

static int32_t cancel(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scalars, (void)scratch, (void)context;
    pto_pool_cancel(pools[2]);
    atomic_fetch_add(&n_entered, 1);
    return 0;
}

enum { MIX, MEET, NOTE, COUNT, FAILING, SLOW, CANCEL, N_KERNELS };
static const pto_kernel kernels[] = {{mix, 0}, {meet, 0}, {note, 0}, {count, 0}, {failing, 0}, {slow, 0}, {cancel, 0}};

static pto_arg cell(int64_t at, int64_t n, int32_t flags)
{
    return (pto_arg){.data = (char *)&cells[at], .extent = {1, n}, .stride = {n, 1}, .elem_bytes = 8, .flags = flags};
}

/* Of the task: home, priority, cost. */
static int64_t submit(pto_record *record, int32_t kernel, int64_t scalar, const int64_t *order, int32_t n_order, pto_task task)
{
    pto_sink *sink = pto_record_sink(record);
    task.kernel = kernel;
    task.n_scalars = 1;
    task.scalars = &scalar;
    task.n_order = n_order;
    task.order = order;
    return sink->submit(sink, &task);
}

static pto_record *new_record(int32_t infer)
{
    return pto_record_new(&(pto_record_options){.infer = infer, .keep = PTO_KEEP_PRIORITY});
}

static int32_t execute(int32_t threads, const pto_record *record, const pto_execute_options *options, pto_execute_result *result)
{
    atomic_store(&n_entered, 0);
    return pto_execute(pools[threads], record, kernels, N_KERNELS, options, result);
}

static const pto_wall_row *execute_seen(int32_t threads, const pto_record *record, const pto_execute_options *way)
{
    pto_execute_options options = *way;
    pto_execute_result result;
    pto_wall_view view;
    options.wall = wall;
    CHECK_EQ(execute(threads, record, &options, &result), PTO_OK);
    pto_wall_read(wall, &view);
    return view.rows;
}

/* ---- all of it gives what program order gives ---- */

static void random_programs_give_program_order(void)
{
    for (int64_t i = 0; i < CASES(60); i++) {
        pto_record *record = new_record(1);
        pto_sink *sink = pto_record_sink(record);
        int64_t n = pick(1, TASKS), n_homes = pick(1, 6), cost = pick(0, 1) ? 1 : 1 << 20, expected[CELLS];
        for (int64_t c = 0; c < CELLS; c++)
            cells[c] = c;
        if (i % 3 == 0)
            submit(record, SLOW, 0, NULL, 0, (pto_task){.cost = cost});        /* a small graph then starts alone and calls for help */
        for (int64_t t = 0; t < n; t++) {
            pto_arg args[2] = {cell(pick(0, CELLS - 4), pick(1, 4), PTO_READ), cell(pick(0, CELLS - 4), pick(1, 4), PTO_READ | PTO_WRITE)};
            int64_t home = pick(0, 9) ? pick(0, n_homes - 1) : INT64_MAX - t;
            int64_t node = submit(record, MIX, t, NULL, 0, (pto_task){.worker = home, .priority = pick(-2, 2), .cost = cost, .n_args = 2,
                                                                      .args = args});
            mix(args, &t, NULL, NULL);
            if (pick(0, 5) == 0) {
                int64_t join = sink->join_open(sink);
                sink->join_add(sink, join, node);
                sink->join_add(sink, join, pick(0, node));
                join = sink->join_close(sink, join, -1);
                submit(record, FAILING, 0, &join, 1, (pto_task){.worker = pick(0, n_homes - 1), .priority = pick(-2, 2), .cost = cost});
            }
        }
        memcpy(expected, cells, sizeof cells);
        pto_columns c;
        pto_record_columns(record, &c);
        for (int32_t threads = 1; threads <= THREADS; threads++)
            for (int32_t way = 0; way < N_WAYS; way++) {
                pto_execute_result result;
                for (int64_t k = 0; k < CELLS; k++)
                    cells[k] = k;
                CHECK_EQ(execute(threads, record, ways[way], &result), PTO_OK);
                CHECK_EQ(result.n_run, c.n_tasks);
                CHECK(memcmp(cells, expected, sizeof cells) == 0);
            }
        pto_record_free(record);
    }
}

static void many_that_become_ready_at_once_run_once(void)
{
    pto_record *record = new_record(0);
    pto_sink *sink = pto_record_sink(record);
    int64_t first = submit(record, COUNT, 0, NULL, 0, (pto_task){.cost = 1 << 20}), join = sink->join_open(sink);
    for (int64_t i = 1; i < WIDE; i++)
        sink->join_add(sink, join, submit(record, COUNT, i, &first, 1, (pto_task){.worker = i / 7, .priority = i % 11}));
    join = sink->join_close(sink, join, -1);
    submit(record, COUNT, WIDE, &join, 1, (pto_task){.worker = 1});
    for (int32_t threads = 2; threads <= THREADS; threads++)
        for (int32_t way = 1; way < N_WAYS; way++) {
            pto_execute_result result;
            memset(noted, 0, sizeof noted);
            CHECK_EQ(execute(threads, record, ways[way], &result), PTO_OK);
            CHECK_EQ(result.n_run, WIDE + 1);
            for (int32_t i = 0; i <= WIDE; i++)
                CHECK_EQ(noted[i], 1);
        }
    pto_record_free(record);
}

/* ---- homes ---- */

/* Behind so many tasks one after another, and a join perhaps, as many tasks as there are threads, that wait for one another. */
static pto_record *meeting(int32_t threads, int64_t n_before, bool joined, int64_t cost, bool all_in_one)
{
    pto_record *record = new_record(0);
    pto_sink *sink = pto_record_sink(record);
    int64_t last[2] = {-1, -1};
    for (int64_t i = 0; i < n_before; i++)
        last[i % 2] = submit(record, SLOW, 0, last, 2, (pto_task){.worker = i, .cost = cost});
    if (joined) {
        int64_t join = sink->join_open(sink);
        sink->join_add(sink, join, last[0]);
        sink->join_add(sink, join, last[1]);
        last[0] = last[1] = sink->join_close(sink, join, -1);
    }
    for (int32_t k = 0; k < threads; k++)
        submit(record, MEET, n_before + threads, last, 2, (pto_task){.worker = all_in_one ? threads - 1 : 7 * threads - k - 1, .cost = cost});
    return record;
}

static void tasks_run_at_home_when_nobody_is_idle(void)
{
    for (int32_t threads = 2; threads <= THREADS; threads++) {
        pto_record *record = meeting(threads, 0, false, 1 << 20, false);
        for (int32_t again = 0; again < 20; again++) {
            const pto_wall_row *rows = execute_seen(threads, record, again % 2 ? &both : &at_home);
            for (int32_t k = 0; k < threads; k++)
                CHECK_EQ(rows[k].thread, threads - k - 1);
        }
        pto_record_free(record);
    }
}

/* Of two threads the one that makes both tasks ready goes on with its own. A small graph starts on one thread, where all of the first four
   run. */
static void tasks_that_become_ready_go_home(void)
{
    for (int32_t way = 0; way < 4; way++) {
        pto_record *record = meeting(2, 4, way % 2, way / 2 ? 1 : 1 << 20, false);
        for (int32_t again = 0; again < 20; again++) {
            const pto_wall_row *rows = execute_seen(2, record, &at_home);
            CHECK_EQ(rows[4].thread, 1);
            CHECK_EQ(rows[5].thread, 0);
        }
        pto_record_free(record);
    }
}

static void a_thread_goes_on_with_what_it_alone_made_ready(void)
{
    pto_record *record = new_record(0);
    int64_t last = -1;
    for (int64_t t = 0; t < 200; t++)
        last = submit(record, t % 50 ? FAILING : SLOW, 0, &last, 1, (pto_task){.worker = t, .cost = 1 << 20});
    const pto_wall_row *rows = execute_seen(THREADS, record, &at_home);
    for (int64_t t = 1; t < 200; t++)
        CHECK_EQ(rows[t].thread, rows[0].thread);
    pto_record_free(record);
}

/* A task that waits for others in vain fails. */
static void idle_threads_take_what_is_at_home_elsewhere(void)
{
    for (int32_t threads = 2; threads <= THREADS; threads++)
        for (int32_t n_before = 0; n_before <= 4; n_before += 4)
            for (int32_t small = 0; small < 2; small++) {
                pto_record *record = meeting(threads, n_before, n_before > 0, small && n_before > 0 ? 1 : 1 << 20, true);
                for (int32_t way = 1; way < N_WAYS; way++)
                    execute_seen(threads, record, ways[way]);
                pto_record_free(record);
            }
}

/* ---- priorities: one thread is kept busy, the other one takes what goes first ---- */

typedef struct noting {
    int64_t n;
    int64_t before[TASKS][2];
    int64_t home[TASKS];
    int64_t priority[TASKS];
} noting;

/* The order in which thread 1 has to take them: of its own while there are any. */
static void expect_order(const noting *p, bool with_homes, int64_t *order)
{
    bool done[TASKS] = {false};
    for (int64_t n = 0; n < p->n; n++) {
        int64_t best = -1;
        for (int64_t t = 0; t < p->n; t++) {
            bool ready = !done[t];
            for (int32_t k = 0; k < 2; k++)
                ready = ready && (p->before[t][k] < 0 || done[p->before[t][k]]);
            if (!ready)
                continue;
            int64_t own = with_homes && p->home[t] == 1, best_own = best >= 0 && with_homes && p->home[best] == 1;
            if (best < 0 || own > best_own || (own == best_own && p->priority[t] > p->priority[best]))
                best = t;
        }
        done[best] = true;
        order[n] = best;
    }
}

static void of_ready_tasks_the_highest_goes_first(void)
{
    static noting p;
    static int64_t expected[TASKS];
    for (int64_t i = 0; i < CASES(60); i++) {
        bool with_homes = i % 2;
        p.n = pick(1, 60);
        pto_record *record = new_record(0);
        int64_t nodes[TASKS], n_waiting = with_homes ? 2 : 1;
        submit(record, MEET, p.n + n_waiting, NULL, 0, (pto_task){.priority = INT64_MAX, .cost = 1 << 20});
        if (with_homes)        /* thread 1 waits until the other one waits, for it might take that, too */
            submit(record, MEET, n_waiting, NULL, 0, (pto_task){.priority = INT64_MAX, .worker = 1});
        for (int64_t t = 0; t < p.n; t++) {
            int64_t order[2];
            for (int32_t k = 0; k < 2; k++) {
                p.before[t][k] = t > 0 && pick(0, 2) == 0 ? pick(0, t - 1) : -1;
                order[k] = p.before[t][k] < 0 ? -1 : nodes[p.before[t][k]];
            }
            p.home[t] = pick(0, 1);
            p.priority[t] = pick(0, 4) ? pick(-3, 3) : pick(0, 1) ? INT64_MIN : INT64_MAX - 1;
            nodes[t] = submit(record, NOTE, t, order, 2, (pto_task){.worker = p.home[t], .priority = p.priority[t]});
        }
        expect_order(&p, with_homes, expected);
        pto_execute_result result;
        CHECK_EQ(execute(2, record, with_homes ? &both : &by_priority, &result), PTO_OK);
        for (int64_t n = 0; n < p.n; n++)
            CHECK_EQ(noted[n_waiting + n], expected[n]);
        pto_record_free(record);
    }
}

/* ---- failures and cancels ---- */

static void the_first_failure_in_program_order_is_told(void)
{
    for (int32_t chain = 0; chain < 2; chain++) {
        pto_record *record = new_record(0);
        int64_t last = -1;
        for (int64_t t = 0; t < 2000; t++)     /* the highest priority comes last */
            last = submit(record, FAILING, t, &last, chain, (pto_task){.worker = t / 5, .priority = t, .cost = 1000});
        for (int32_t threads = 1; threads <= THREADS; threads++)
            for (int32_t way = 1; way < N_WAYS; way++) {
                pto_execute_result result;
                CHECK_EQ(execute(threads, record, ways[way], &result), PTO_E_KERNEL);
                CHECK_EQ(result.failed_task, 700);
                CHECK_EQ(result.failed_guard, 2);
                CHECK(result.n_run >= 700);
            }
        pto_record_free(record);
    }
}

static void *cancel_soon(void *pool)
{
    while (atomic_load(&n_entered) < 3)
        nap();
    pto_pool_cancel(pool);
    return NULL;
}

static void a_cancelled_run_ends_and_the_next_is_whole(void)
{
    pto_record *record = new_record(0), *after = new_record(0);
    int64_t first = submit(record, SLOW, 0, NULL, 0, (pto_task){.cost = 1 << 20});
    for (int64_t t = 1; t < 3000; t++)
        submit(record, SLOW, 0, &first, t % 2, (pto_task){.worker = t % 3, .priority = t % 5});
    int64_t all = submit(after, COUNT, 0, NULL, 0, (pto_task){.cost = 1 << 20});
    for (int64_t t = 1; t < 3000; t++)
        submit(after, COUNT, t, &all, t % 2, (pto_task){.worker = t % 3, .priority = t % 5});
    for (int32_t threads = 2; threads <= THREADS; threads++)
        for (int32_t way = 1; way < N_WAYS; way++) {
            pthread_t thread;
            pto_execute_result result;
            atomic_store(&n_entered, 0);
            pthread_create(&thread, NULL, cancel_soon, pools[threads]);
            CHECK_EQ(execute(threads, record, ways[way], &result), PTO_E_CANCELLED);
            CHECK(result.n_run >= 1 && result.n_run < 3000);
            pthread_join(thread, NULL);
            for (int32_t next = 0; next < N_WAYS; next++) {
                memset(noted, 0, sizeof noted);
                CHECK_EQ(execute(threads, after, ways[next], &result), PTO_OK);
                for (int32_t t = 0; t < 3000; t++)
                    CHECK_EQ(noted[t], 1);
            }
        }
    pto_record_free(record);
    pto_record_free(after);
}

/* Thread 1 is busy while ten tasks are sent to it, and the run is cancelled before it looks. */
static void what_a_cancelled_run_has_sent_is_gone(void)
{
    enum { SENT = 10 };
    pto_record *record = new_record(0), *after = new_record(0);
    int64_t before = submit(record, MEET, 2, NULL, 0, (pto_task){.cost = 1 << 20});
    submit(record, MEET, 3, NULL, 0, (pto_task){.worker = 1});
    submit(record, CANCEL, 0, &before, 1, (pto_task){0});
    for (int64_t t = 0; t < SENT; t++)
        submit(record, SLOW, 0, &before, 1, (pto_task){.worker = 1});
    for (int64_t t = 0; t < 100; t++)
        submit(after, COUNT, t, NULL, 0, (pto_task){.worker = t, .cost = 1 << 20});
    for (int32_t i = 0; i < 20; i++) {
        pto_execute_result result;
        CHECK_EQ(execute(2, record, i % 2 ? &both : &at_home, &result), PTO_E_CANCELLED);
        CHECK(result.n_run >= 3 && result.n_run < 3 + SENT);
        for (int32_t next = 0; next < N_WAYS; next++) {
            memset(noted, 0, sizeof noted);
            CHECK_EQ(execute(2, after, ways[(i + next) % N_WAYS], &result), PTO_OK);
            for (int32_t t = 0; t < 100; t++)
                CHECK_EQ(noted[t], 1);
        }
    }
    pto_record_free(record);
    pto_record_free(after);
}

/* ---- windows, chunks and marks: cells[i % CELLS] = 3 * cells + i, through memory that is used again ---- */

enum { STEPS = 900, PIECE = 70 };

static int32_t copy(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scratch, (void)context;
    for (int64_t i = 0; i < args[1].extent[1]; i++)
        ((int64_t *)args[1].data)[i] = (int64_t)((uint64_t)*(int64_t *)args[0].data * 3 + (uint64_t)scalars[0]);
    return 0;
}

static int32_t take_back(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scalars, (void)scratch, (void)context;
    *(int64_t *)args[1].data = ((int64_t *)args[0].data)[args[0].extent[1] - 1];
    return 0;
}

static int32_t through_fresh(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    for (int64_t i = 0; i < STEPS && sink->status == PTO_OK; i++) {
        pto_tensor t;
        int64_t at = i % CELLS, n = 64;
        if (sink->fresh(sink, &t, 8, 1, &n) != PTO_OK)
            return sink->status;
        pto_arg between = {.data = t.data, .extent = {1, n}, .stride = {n, 1}, .buffer = t.buffer, .elem_bytes = 8, .flags = PTO_WRITE};
        pto_arg there[2] = {cell(at, 1, PTO_READ), between}, back[2] = {between, cell(at, 1, PTO_WRITE)};
        back[0].flags = PTO_READ;
        pto_task task = {.kernel = 0, .worker = at / 5, .priority = i % 5, .cost = 1000, .n_args = 2, .args = there, .n_scalars = 1,
                         .scalars = &i};
        sink->submit(sink, &task);
        task.kernel = 1;
        task.args = back;
        int64_t last = sink->submit(sink, &task);
        sink->release(sink, &t);
        if (i % PIECE == PIECE - 1)    /* what has been recorded runs now, on a graph of its own */
            sink->mark(sink, &(pto_mark){.flags = PTO_MARK_BLOCKS | PTO_MARK_NOW, .why = PTO_EDGE_AFTER, .site = -1, .n_before = 1,
                                         .before = &last});
    }
    return sink->status;
}

static void windows_chunks_and_pieces_give_the_same(void)
{
    static const pto_kernel through[] = {{copy, 0}, {take_back, 0}};
    static const struct { int64_t max_tasks, window; } bounds[] = {{0, 0}, {0, 16}, {100, 0}, {100, 16}};
    int64_t expected[CELLS] = {0};
    for (int64_t i = 0; i < STEPS; i++)
        expected[i % CELLS] = (int64_t)((uint64_t)expected[i % CELLS] * 3 + (uint64_t)i);
    for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
        pto_record *record = pto_record_new(&(pto_record_options){.infer = 1, .keep = PTO_KEEP_PRIORITY, .max_tasks = bounds[b].max_tasks,
                                                                  .window = bounds[b].window});
        for (int32_t threads = 1; threads <= THREADS; threads++)
            for (int32_t way = 1; way < N_WAYS; way++) {
                pto_run_options options = {.orchestrate = through_fresh, .kernels = through, .n_kernels = 2, .execute = *ways[way]};
                pto_execute_result result;
                memset(cells, 0, sizeof cells);
                CHECK_EQ(pto_run(pools[threads], record, &options, &result), PTO_OK);
                CHECK_EQ(result.n_run, 2 * STEPS);
                CHECK(memcmp(cells, expected, sizeof cells) == 0);
            }
        pto_record_free(record);
    }
}

int main(void)
{
    for (int32_t threads = 1; threads <= THREADS; threads++)
        pools[threads] = pto_pool_new(threads);
    wall = pto_wall_new();
    static const check_test tests[] = {
        TEST(random_programs_give_program_order), TEST(many_that_become_ready_at_once_run_once),
        TEST(tasks_run_at_home_when_nobody_is_idle), TEST(tasks_that_become_ready_go_home),
        TEST(a_thread_goes_on_with_what_it_alone_made_ready), TEST(idle_threads_take_what_is_at_home_elsewhere),
        TEST(of_ready_tasks_the_highest_goes_first), TEST(the_first_failure_in_program_order_is_told),
        TEST(a_cancelled_run_ends_and_the_next_is_whole),
        TEST(what_a_cancelled_run_has_sent_is_gone), TEST(windows_chunks_and_pieces_give_the_same)};
    int failed = RUN_TESTS(tests);
    pto_wall_free(wall);
    for (int32_t threads = 1; threads <= THREADS; threads++)
        pto_pool_free(pools[threads]);
    return failed;
}
