/* test_window.c: the memory of fresh tensors follows the window, and what uses memory again waits for those that used it. */
#include <stdatomic.h>
#include <time.h>

#include "check.h"

enum { BYTES = 640, MAX_RUNS = 20000 };

/* What tasks do. `write` fills its tensor with the scalar; `look` expects it there, is sometimes slow, and counts what it sees else.
   Both also say that they ran. */
static _Atomic int64_t n_wrong, n_ran;
static int64_t slow_every;

static void wait_a_little(int64_t number)
{
    if (slow_every > 0 && number % slow_every == 0)
        nanosleep(&(struct timespec){0, 20000}, NULL);
}

static int32_t write(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scratch, (void)context;
    for (int64_t i = 0; i < args[0].extent[1]; i++)
        ((int64_t *)args[0].data)[i] = scalars[0];
    wait_a_little(scalars[0]);
    atomic_fetch_add(&n_ran, 1);
    return 0;
}

static int32_t look(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scratch, (void)context;
    wait_a_little(scalars[0] + 1);
    for (int64_t i = 0; i < args[0].extent[1]; i++)
        atomic_fetch_add(&n_wrong, ((int64_t *)args[0].data)[i] != scalars[0]);
    atomic_fetch_add(&n_ran, 1);
    return 0;
}

static const pto_kernel kernels[] = {{write, 0}, {look, 0}};

static pto_arg whole(const pto_tensor *t, int32_t flags)
{
    return (pto_arg){.data = t->data, .extent = {1, t->dim[0]}, .stride = {t->dim[0], 1}, .buffer = t->buffer, .elem_bytes = 8,
                     .flags = flags};
}

static void submit_two(pto_sink *sink, int32_t kernel, const pto_tensor *t, const pto_tensor *waits_for, int64_t tag)
{
    pto_arg args[2] = {whole(t, kernel == 0 ? PTO_WRITE | PTO_KEPT : PTO_READ)};
    if (waits_for != NULL)
        args[1] = whole(waits_for, PTO_READ);
    sink->submit(sink, &(pto_task){.kernel = kernel, .cost = 1, .n_args = 1 + (waits_for != NULL), .args = args, .n_scalars = 1,
                                   .scalars = &tag});
}

static void submit(pto_sink *sink, int32_t kernel, const pto_tensor *t, int64_t tag)
{
    submit_two(sink, kernel, t, NULL, tag);
}

/* ---- one tensor an iteration, of one size, with n_readers tasks that read it ---- */

static int64_t n_iterations, n_readers;

static int32_t one_each(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    for (int64_t i = 0; i < n_iterations && sink->status == PTO_OK; i++) {
        pto_tensor t;
        int64_t n = BYTES / 8;
        if (sink->fresh(sink, &t, 8, 1, &n) != PTO_OK)
            break;
        submit(sink, 0, &t, i);
        for (int64_t k = 0; k < n_readers; k++)
            submit(sink, 1, &t, i);
        sink->release(sink, &t);
    }
    return sink->status;
}

static pto_memory run(pto_pool *pool, pto_record_options options, pto_orchestrate_fn orchestrate, uint64_t seed)
{
    options.infer = 1;
    pto_record *record = pto_record_new(&options);
    pto_run_options o = {.orchestrate = orchestrate, .kernels = kernels, .n_kernels = 2, .execute = {.order_seed = seed}};
    pto_execute_result result;
    pto_memory memory;
    atomic_store(&n_wrong, 0);
    for (int32_t k = 0; k < 3; k++) {  /* the record is used again */
        atomic_store(&n_ran, 0);
        CHECK_EQ(pto_run(pool, record, &o, &result), PTO_OK);
        CHECK_EQ(atomic_load(&n_ran), result.n_run);
        CHECK_EQ(atomic_load(&n_wrong), 0);
        o.orchestrate = NULL;
    }
    pto_record_memory(record, &memory);
    pto_record_free(record);
    return memory;
}

/* With k tasks an iteration, what iteration i has made is free at a fresh one of iteration j when its last user is a window before the
   next task: k (i + 1) <= k j + 1 - window. So the tensors of (window - 1) / k
   iterations, rounded up, are in use beside the one that is made. */
static void memory_follows_a_window_of_tasks(void)
{
    static const struct { int64_t window, readers, tensors; } cases[] = {
        {8, 1, 5}, {9, 1, 5}, {10, 1, 6}, {16, 1, 9}, {64, 1, 33}, {512, 1, 257}, {4096, 1, 2049},
        {8, 3, 3}, {9, 3, 3}, {12, 3, 4}, {13, 3, 4}, {4096, 3, 1025}, {1, 1, 1}, {2, 1, 2}, {3, 1, 2}};
    pto_pool *pool = pto_pool_new(2);
    slow_every = 97;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        n_readers = cases[i].readers;
        n_iterations = cases[i].tensors + 100;
        pto_memory memory = run(pool, (pto_record_options){.window = cases[i].window}, one_each, 0);
        CHECK_EQ(memory.peak_bytes, cases[i].tensors * BYTES);
        CHECK(memory.held_bytes <= memory.peak_bytes + memory.peak_bytes / 7 + 4096);
        CHECK_EQ(memory.n_gates, 100);
    }
    pto_pool_free(pool);
}

static void memory_follows_a_window_of_bytes_and_of_entries(void)
{
    pto_pool *pool = pto_pool_new(2);
    n_readers = 1;
    for (int64_t tensors = 8; tensors <= 4096; tensors *= 4) {
        n_iterations = tensors + 50;
        pto_record_options options = {.window = tensors * BYTES, .window_unit = PTO_WINDOW_BYTES};
        CHECK_EQ(run(pool, options, one_each, 0).peak_bytes, tensors * BYTES);
        options.window += BYTES - 1;
        CHECK_EQ(run(pool, options, one_each, 0).peak_bytes, tensors * BYTES);
        options = (pto_record_options){.window = tensors, .window_unit = PTO_WINDOW_ENTRIES};      /* one argument a task */
        CHECK_EQ(run(pool, options, one_each, 0).peak_bytes, (tensors / 2 + 1) * BYTES);
    }
    CHECK_EQ(run(pool, (pto_record_options){0}, one_each, 0).peak_bytes, n_iterations * BYTES);    /* no window */
    pto_pool_free(pool);
}

/* ---- tensors of many sizes, some of them open for long, in each other's memory ---- */

static uint64_t drawn_from;

static int32_t many_sizes(const pto_bindings *bindings, pto_sink *sink)
{
    pto_tensor open[4];
    int64_t tag[4] = {0}, next = 0;
    bool is_open[4] = {false};
    (void)bindings;
    check_random_state = drawn_from;
    for (int64_t i = 0; i < n_iterations && sink->status == PTO_OK; i++) {
        int64_t at = pick(0, 3), n = pick(1, pick(0, 9) == 0 ? 3000 : 90);
        if (is_open[at]) {
            for (int64_t k = pick(0, 2); k >= 0; k--)
                submit(sink, 1, &open[at], tag[at]);
            if (pick(0, 3) == 0) {
                submit(sink, 0, &open[at], tag[at] = ++next);
                continue;
            }
            sink->release(sink, &open[at]);
        }
        if (sink->fresh(sink, &open[at], 8, 1, &n) != PTO_OK)
            break;
        is_open[at] = true;
        int64_t other = pick(0, 3);
        submit_two(sink, 0, &open[at], other != at && is_open[other] ? &open[other] : NULL, tag[at] = ++next);
    }
    for (int32_t at = 0; at < 4; at++)
        if (is_open[at])
            sink->release(sink, &open[at]);
    return sink->status;
}

static void no_tensor_is_written_over_while_it_is_used(void)
{
    pto_pool *pools[] = {pto_pool_new(1), pto_pool_new(2), pto_pool_new(4)};
    for (int32_t round = 0; round < 8; round++) {
        n_iterations = CASES(2000);
        slow_every = round % 2 ? 37 : 0;
        drawn_from = 88172645463325252u + (uint64_t)round;
        pto_record_options options = {.infer = 1, .window = (int64_t[]){1, 7, 64, 300}[round / 2], .max_tasks = round % 3 == 2 ? 500 : 0};
        for (int32_t p = 0; p < 3; p++)
            if (options.max_tasks == 0)
                run(pools[p], options, many_sizes, 0);
        if (options.max_tasks == 0) {
            run(pools[0], options, many_sizes, 7 + (uint64_t)round);
            run(pools[0], (pto_record_options){.window = 100000, .window_unit = PTO_WINDOW_BYTES}, many_sizes, 0);
            continue;
        }
        pto_record *record = pto_record_new(&options);     /* dropped and recorded anew each time */
        pto_run_options o = {.orchestrate = many_sizes, .kernels = kernels, .n_kernels = 2};
        pto_execute_result result;
        atomic_store(&n_wrong, 0);
        CHECK_EQ(pto_run(pools[1], record, &o, &result), PTO_OK);
        CHECK_EQ(atomic_load(&n_wrong), 0);
        pto_record_free(record);
    }
    for (int32_t p = 0; p < 3; p++)
        pto_pool_free(pools[p]);
}

/* ---- poison: nobody has the memory of another, and the order of a seed is that of a run without ---- */

static int64_t order_seen[MAX_RUNS], n_seen;

static int32_t note_order(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scratch;
    order_seen[n_seen++] = context->node * 100000 + scalars[0];
    return 0;
}

static void poison_has_the_same_order(void)
{
    static const pto_kernel noting[] = {{note_order, 0}, {note_order, 0}};
    static int64_t plain[MAX_RUNS];
    pto_pool *pool = pto_pool_new(1);
    n_iterations = 300;
    n_readers = 2;
    for (int32_t poison = 0; poison < 2; poison++) {
        pto_record *record = pto_record_new(&(pto_record_options){.infer = 1, .window = 20, .poison = poison});
        pto_run_options o = {.orchestrate = one_each, .kernels = noting, .n_kernels = 2, .execute = {.order_seed = 99}};
        pto_execute_result result;
        pto_memory memory;
        pto_columns c;
        n_seen = 0;
        CHECK_EQ(pto_run(pool, record, &o, &result), PTO_OK);
        CHECK_EQ(n_seen, 3 * n_iterations);
        if (poison == 0)
            memcpy(plain, order_seen, sizeof plain);
        else
            CHECK(memcmp(plain, order_seen, (size_t)n_seen * 8) == 0);
        pto_record_memory(record, &memory);
        CHECK_EQ(memory.n_gates, n_iterations - 8);        /* 3 (i + 1) <= 3 j + 1 - 20: eight are in use */
        pto_record_columns(record, &c);
        int64_t n_shared = 0;
        for (int64_t i = 0; i < c.n_tasks; i += 3)
            for (int64_t j = 0; j < i; j += 3)
                n_shared += c.args[i].data == c.args[j].data;
        CHECK(poison ? n_shared == 0 : n_shared > n_iterations);
        pto_record_free(record);
    }
    pto_pool_free(pool);
}

int main(void)
{
    static const check_test tests[] = {TEST(memory_follows_a_window_of_tasks), TEST(memory_follows_a_window_of_bytes_and_of_entries),
                                       TEST(no_tensor_is_written_over_while_it_is_used), TEST(poison_has_the_same_order)};
    return RUN_TESTS(tests);
}
