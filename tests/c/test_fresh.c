/* test_fresh.c: tensors made in a body: their memory, their alias groups, what a long stream of them takes. */
#include "check.h"

enum { N = 40, MANY = 1000000 };

static int64_t in[N], out[N];

static int32_t copy(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scratch, (void)context;
    for (int64_t i = 0; i < args[1].extent[1]; i++)
        ((int64_t *)args[1].data)[i] = *(int64_t *)args[0].data + scalars[0];
    return 0;
}

static int32_t add(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scratch, (void)context;
    *(int64_t *)args[1].data += *(int64_t *)args[0].data + scalars[0];
    return 0;
}

static const pto_kernel kernels[] = {{copy, 0}, {add, 0}};

static pto_arg bound(int64_t *at, int32_t flags)
{
    return (pto_arg){.data = (char *)at, .extent = {1, 1}, .stride = {1, 1}, .elem_bytes = 8, .flags = flags};
}

static pto_arg whole(const pto_tensor *t, int32_t flags)
{
    return (pto_arg){.data = t->data, .extent = {1, t->dim[0]}, .stride = {t->dim[0], 1}, .buffer = t->buffer,
                     .elem_bytes = 8, .flags = flags};
}

static int64_t submit(pto_sink *sink, int32_t kernel, pto_arg from, pto_arg to, int64_t scalar)
{
    pto_arg args[2] = {from, to};
    return sink->submit(sink, &(pto_task){.kernel = kernel, .cost = 1, .n_args = 2, .args = args, .n_scalars = 1,
                                          .scalars = &scalar});
}

static void it_is_contiguous_and_alone(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
    pto_sink *sink = pto_record_sink(record);
    pto_tensor t[3];
    CHECK_EQ(sink->fresh(sink, &t[0], 4, 3, (int64_t[]){2, 3, 5}), PTO_OK);
    CHECK_EQ(sink->fresh(sink, &t[1], 2, 0, NULL), PTO_OK);
    CHECK_EQ(sink->fresh(sink, &t[2], 8, 2, (int64_t[]){7, 0}), PTO_OK);
    CHECK(t[0].rank == 3 && t[0].stride[0] == 15 && t[0].stride[1] == 5 && t[0].stride[2] == 1);
    CHECK(t[0].dim[0] == 2 && t[0].dim[1] == 3 && t[0].dim[2] == 5 && t[1].rank == 0 && t[2].dim[1] == 0);
    for (int32_t i = 0; i < 3; i++) {
        CHECK(t[i].data != NULL && (uintptr_t)t[i].data % 64 == 0);
        CHECK(t[i].buffer < -1);
        for (int32_t j = 0; j < i; j++)
            CHECK(t[i].buffer != t[j].buffer && t[i].data != t[j].data);
    }
    memset(t[0].data, 1, 2 * 3 * 5 * 4);
    int32_t first = t[0].buffer;
    pto_record_reset(record);
    CHECK_EQ(sink->fresh(sink, &t[0], 4, 0, NULL), PTO_OK);
    CHECK_EQ(t[0].buffer, first);      /* a reset gives all back */
    pto_record_free(record);
}

static void impossible_ones_are_refused(void)
{
    static const int64_t negative[] = {4, -1}, huge[] = {INT64_MAX / 2, 3}, ones[PTO_TENSOR_RANK + 1] = {1};
    static const struct { int32_t elem_bytes, rank; const int64_t *dims; } wrong[] = {
        {4, 2, negative}, {4, 2, huge}, {0, 1, ones}, {4, PTO_TENSOR_RANK + 1, ones}, {4, -1, ones}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
        pto_sink *sink = pto_record_sink(record);
        pto_tensor t;
        CHECK_EQ(sink->fresh(sink, &t, wrong[i].elem_bytes, wrong[i].rank, wrong[i].dims), PTO_E_ARGUMENT);
        CHECK_EQ(sink->status, PTO_E_ARGUMENT);
        pto_record_free(record);
    }
}

static void only_open_ones_are_released(void)
{
    for (int32_t i = 0; i < 3; i++) {
        pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
        pto_sink *sink = pto_record_sink(record);
        pto_tensor t, bound_one = {.buffer = 0};
        sink->fresh(sink, &t, 4, 0, NULL);
        if (i == 0)
            sink->release(sink, &t);
        else
            t.buffer -= i;
        CHECK_EQ(sink->release(sink, i == 2 ? &bound_one : &t), PTO_E_ARGUMENT);
        pto_record_free(record);
    }
}

/* ---- runs: out[i] = 2 * in[i] + i + 1 through a fresh tensor of each iteration ---- */

static int64_t n_iterations, n_elements;

static int32_t through_fresh(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    for (int64_t i = 0; i < n_iterations && sink->status == PTO_OK; i++) {
        pto_tensor t;
        int64_t at = i % N;
        if (sink->fresh(sink, &t, 8, 1, &n_elements) != PTO_OK)
            return sink->status;
        submit(sink, 0, bound(&in[at], PTO_READ), whole(&t, PTO_WRITE), at);
        submit(sink, 1, bound(&in[at], PTO_READ), whole(&t, PTO_READ | PTO_WRITE), 1);
        submit(sink, 0, whole(&t, PTO_READ), bound(&out[at], PTO_WRITE), 0);
        sink->release(sink, &t);
    }
    return sink->status;
}

static void fill_in(void)
{
    for (int64_t i = 0; i < N; i++)
        in[i] = i * i, out[i] = -1;
}

static void check_out(void)
{
    for (int64_t i = 0; i < N; i++)
        CHECK_EQ(out[i], 2 * in[i] + i + 1);
}

static void iterations_are_independent_and_run_again(void)
{
    pto_pool *pool = pto_pool_new(3);
    n_iterations = N;
    n_elements = 100;
    for (uint64_t seed = 0; seed < 4; seed++) {
        pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
        pto_run_options options = {.orchestrate = through_fresh, .kernels = kernels, .n_kernels = 2,
                                   .execute = {.order_seed = seed}};
        pto_execute_result result;
        fill_in();
        CHECK_EQ(pto_run(pool, record, &options, &result), PTO_OK);
        check_out();
        pto_columns c;
        pto_record_columns(record, &c);
        CHECK_EQ(c.n_edges, 2 * N);
        for (int64_t i = 0; i < N; i++)
            in[i] = 5 - i, out[i] = -1;
        options.orchestrate = NULL;
        CHECK_EQ(pto_run(pool, record, &options, &result), PTO_OK);
        check_out();
        pto_record_free(record);
    }
    pto_pool_free(pool);
}

static void a_full_arena_hands_over(void)
{
    pto_pool *pool = pto_pool_new(2);
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1, .arena_bytes = 8000, .window = 1000});
    pto_run_options options = {.orchestrate = through_fresh, .kernels = kernels, .n_kernels = 2};
    pto_execute_result result;
    n_iterations = N;
    n_elements = 100;                  /* 832 bytes: nine of them */
    fill_in();
    CHECK_EQ(pto_run(pool, record, &options, &result), PTO_OK);
    CHECK_EQ(result.n_run, 3 * N);
    check_out();
    pto_columns c;
    pto_record_columns(record, &c);
    CHECK(c.first_task > 0 && c.n_tasks <= 27 && c.total_tasks == 3 * N);
    for (int64_t e = 0; e < c.n_edges; e++)        /* memory used again is of a new tensor: no edges from the old one */
        CHECK(c.edge_src[e] >= c.first_node);
    pto_record_reset(record);
    CHECK_EQ(through_fresh(NULL, pto_record_sink(record)), PTO_E_NOMEM);       /* nobody to hand over to */
    pto_record_free(record);
    pto_pool_free(pool);
}

static void a_million_of_them_take_no_memory(void)
{
    pto_pool *pool = pto_pool_new(2);
    int64_t before = resident_kib();
    for (int32_t by_tasks = 0; by_tasks < 2; by_tasks++) {
        pto_record *record = pto_record_new(&(pto_record_options){.infer = 1, .window = by_tasks ? 16 : 30000, .max_tasks = by_tasks ? 900 : 0,
                                                                  .arena_bytes = by_tasks ? 0 : 1 << 20});
        pto_sim *sim = pto_sim_new(&(pto_sim_options){.n_workers = 1, .window = 16});
        pto_run_options options = {.orchestrate = through_fresh, .kernels = kernels, .n_kernels = 2, .sim = sim};
        pto_execute_result result;
        pto_sim_result simulated;
        n_iterations = CASES(MANY) / 2;
        n_elements = 16;
        fill_in();
        CHECK_EQ(pto_run(pool, record, &options, &result), PTO_OK);
        CHECK_EQ(result.n_run, 3 * n_iterations);
        check_out();
        CHECK_EQ(pto_sim_finish(sim, &simulated), PTO_OK);
        CHECK_EQ(simulated.total_cycles, 3 * n_iterations);
        pto_sim_free(sim);
        pto_record_free(record);
    }
#ifdef PTO_TEST_SLOW
    (void)before;                      /* a sanitizer holds on to what has been freed */
#else
    CHECK(resident_kib() - before < 24000);
#endif
    pto_pool_free(pool);
}

/* ---- a tensor that stays open while others come and go ---- */

static int32_t sum_in_fresh(const pto_bindings *bindings, pto_sink *sink)
{
    pto_tensor sum, t;
    int64_t one = 1;
    (void)bindings;
    sink->fresh(sink, &sum, 8, 1, &one);
    submit(sink, 0, bound(&in[0], PTO_READ), whole(&sum, PTO_WRITE), 0);
    for (int64_t i = 1; i < N; i++) {
        sink->fresh(sink, &t, 8, 1, &n_elements);
        submit(sink, 0, bound(&in[i], PTO_READ), whole(&t, PTO_WRITE), 0);
        submit(sink, 1, whole(&t, PTO_READ), whole(&sum, PTO_READ | PTO_WRITE), 0);
        sink->release(sink, &t);
    }
    submit(sink, 0, whole(&sum, PTO_READ), bound(&out[0], PTO_WRITE), 0);
    sink->release(sink, &sum);
    return sink->status;
}

static void an_open_one_outlives_a_hand_over(void)
{
    pto_pool *pool = pto_pool_new(2);
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1, .arena_bytes = 2000});
    pto_run_options options = {.orchestrate = sum_in_fresh, .kernels = kernels, .n_kernels = 2};
    pto_execute_result result;
    int64_t expected = 0;
    fill_in();
    for (int64_t i = 0; i < N; i++)
        expected += in[i];
    n_elements = 60;
    CHECK_EQ(pto_run(pool, record, &options, &result), PTO_OK);
    CHECK_EQ(out[0], expected);
    pto_columns c;
    pto_record_columns(record, &c);
    CHECK(c.first_task > 0);
    pto_record_free(record);
    pto_pool_free(pool);
}

static void what_must_be_open_may_exceed_the_arena(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1, .arena_bytes = 1000});
    pto_sink *sink = pto_record_sink(record);
    pto_tensor t[20];
    for (int32_t i = 0; i < 20; i++) {
        CHECK_EQ(sink->fresh(sink, &t[i], 1, 1, (int64_t[]){900}), PTO_OK);
        memset(t[i].data, i, 900);
    }
    for (int32_t i = 0; i < 20; i++)
        CHECK(t[i].data[0] == i && t[i].data[899] == i);
    pto_record_free(record);
}

/* ---- poison ---- */

static int64_t n_poisoned;

static int32_t look(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scalars, (void)scratch, (void)context;
    n_poisoned += ((int64_t *)args[0].data)[0] == -1 && ((int64_t *)args[0].data)[2] == -1;
    memset(args[0].data, 7, 24);
    return 0;
}

static int32_t look_once(const pto_bindings *bindings, pto_sink *sink)
{
    pto_tensor t;
    (void)bindings;
    sink->fresh(sink, &t, 8, 1, (int64_t[]){3});
    pto_arg arg = whole(&t, PTO_READ | PTO_WRITE);
    sink->submit(sink, &(pto_task){.n_args = 1, .args = &arg});
    return sink->release(sink, &t);
}

static void poison_is_fresh_in_every_run(void)
{
    static const pto_kernel looks[] = {{look, 0}};
    pto_pool *pool = pto_pool_new(1);
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1, .poison = 1});
    pto_run_options options = {.orchestrate = look_once, .kernels = looks, .n_kernels = 1};
    pto_execute_result result;
    n_poisoned = 0;
    for (int64_t runs = 1; runs <= 3; runs++) {
        CHECK_EQ(pto_run(pool, record, &options, &result), PTO_OK);
        CHECK_EQ(n_poisoned, runs);
        options.orchestrate = NULL;
    }
    pto_record_free(record);
    pto_pool_free(pool);
}

int main(void)
{
    static const check_test tests[] = {
        TEST(it_is_contiguous_and_alone), TEST(impossible_ones_are_refused), TEST(only_open_ones_are_released),
        TEST(iterations_are_independent_and_run_again), TEST(a_full_arena_hands_over),
        TEST(a_million_of_them_take_no_memory), TEST(an_open_one_outlives_a_hand_over),
        TEST(what_must_be_open_may_exceed_the_arena), TEST(poison_is_fresh_in_every_run)};
    return RUN_TESTS(tests);
}
