/* test_sanitize_memory.c: elements that nobody wrote, and own bodies on copies. */
#include "check.h"

enum { SIDE = 6 };

static float given[SIDE * SIDE], made[SIDE * SIDE], out[SIDE * SIDE];

/* ---- kernels: args are in, out ---- */

static float *at(const pto_arg *arg, int64_t row, int64_t col)
{
    return (float *)(void *)arg->data + row * arg->stride[0] + col * arg->stride[1];
}

static int32_t copy(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scalars, (void)scratch, (void)context;
    for (int64_t r = 0; r < args[1].extent[0]; r++)
        for (int64_t c = 0; c < args[1].extent[1]; c++)
            *at(&args[1], r, c) = *at(&args[0], r, c);
    return 0;
}

static int32_t copy_first_column(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scalars, (void)scratch, (void)context;
    for (int64_t r = 0; r < args[1].extent[0]; r++)
        *at(&args[1], r, 0) = *at(&args[0], r, 0);
    return 0;
}

static int32_t copy_from(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scratch, (void)context;
    *at(&args[1], scalars[2], scalars[3]) = *at(&args[0], scalars[0], scalars[1]);
    return 0;
}

static int32_t use_scratch(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)context;
    for (int64_t i = 0; i < scalars[0]; i++)
        scratch[i] = 1;
    *at(&args[1], 0, 0) = *at(&args[0], 0, 0);
    return 0;
}

static const pto_kernel kernels[] = {{copy, 0}, {copy_first_column, 0}, {copy_from, 0}, {copy_from, 0}, {use_scratch, 64}};
static const uint8_t own_body[] = {0, 0, 0, 1, 1};

/* ---- two tasks: the first given -> made, the second made -> out (or given -> out) ---- */

typedef struct step {
    int32_t kernel;
    int32_t from, to;                  /* tensors */
    int64_t row, col, rows, cols;
    int64_t scalars[4];
} step;

static const step *steps;
static int32_t n_steps;
static float *const memory[] = {given, made, out};

static pto_arg region(const step *s, int32_t tensor, int32_t flags)
{
    return (pto_arg){.data = (char *)(memory[tensor] + s->row * SIDE + s->col), .extent = {s->rows, s->cols}, .stride = {SIDE, 1},
                     .elem_bytes = 4, .flags = flags, .buffer = tensor};
}

static int32_t orchestrate(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    int64_t last = -1;
    for (int32_t i = 0; i < n_steps; i++) {
        pto_arg args[2] = {region(&steps[i], steps[i].from, PTO_READ), region(&steps[i], steps[i].to, PTO_WRITE)};
        int64_t number = i;
        pto_task task = {.kernel = steps[i].kernel, .site = i, .n_args = 2, .args = args, .n_scalars = 4, .scalars = steps[i].scalars,
                         .n_index = 1, .index = &number, .n_order = 1, .order = &last};
        last = sink->submit(sink, &task);
    }
    return sink->status;
}

static int32_t run(const step *of, int32_t n, pto_misuse *misuse)
{
    static pto_pool *pool;
    if (pool == NULL)
        pool = pto_pool_new(1);
    steps = of;
    n_steps = n;
    pto_tensor tensors[3];
    int32_t elem_bytes[3] = {4, 4, 4}, site_begin[9], site_tensors[16];
    for (int32_t i = 0; i < 3; i++)
        tensors[i] = (pto_tensor){.data = (char *)memory[i], .dim = {SIDE, SIDE}, .stride = {SIDE, 1}, .buffer = i, .rank = 2};
    for (int32_t i = 0; i < 8; i++) {
        site_begin[i] = 2 * i;
        site_tensors[2 * i] = i < n ? of[i].from : 0;
        site_tensors[2 * i + 1] = i < n ? of[i].to : 0;
    }
    site_begin[8] = 16;
    const uint8_t undefined[3] = {0, 1, 0};
    pto_sanitizer *sanitizer = pto_sanitizer_new(&(pto_sanitizer_options){
        .keep = 0xff, .n_sites = 8, .n_tensors = 3, .n_kernels = 5, .tensors = tensors, .elem_bytes = elem_bytes, .undefined = undefined,
        .site_begin = site_begin, .site_tensors = site_tensors, .own_body = own_body});
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
    for (int32_t i = 0; i < SIDE * SIDE; i++) {
        given[i] = (float)(i + 1);
        out[i] = -1;
    }
    pto_execute_result result;
    pto_bindings bindings = {0};
    pto_run_options options = {.orchestrate = orchestrate, .bindings = &bindings, .kernels = kernels, .n_kernels = 5,
                               .execute = {.order_seed = 3, .sanitizer = sanitizer}};
    int32_t status = pto_run(pool, record, &options, &result);
    pto_sanitizer_report report;
    pto_sanitizer_read(sanitizer, &report);
    *misuse = report.misuse;
    pto_record_free(record);
    pto_sanitizer_free(sanitizer);
    return status;
}

static void what_is_written_is_read(void)
{
    pto_misuse m;
    const step whole[] = {{0, 0, 1, 0, 0, SIDE, SIDE, {0}}, {0, 1, 2, 1, 1, 4, 4, {0}}};
    CHECK_EQ(run(whole, 2, &m), PTO_OK);
    for (int32_t r = 0; r < SIDE; r++)
        for (int32_t c = 0; c < SIDE; c++)
            CHECK(out[r * SIDE + c] == (r >= 1 && r < 5 && c >= 1 && c < 5 ? given[r * SIDE + c] : -1));
}

static void the_first_element_that_nobody_wrote_is_named(void)
{
    for (int64_t rows = 0; rows < 4; rows++)
        for (int64_t cols = 1; cols < 4; cols++) {
            pto_misuse m;
            const step part[] = {{0, 0, 1, 1, 1, rows, cols, {0}}, {0, 1, 2, 1, 1, 3, 3, {0}}};
            int32_t status = run(part, 2, &m);
            if (rows == 3 && cols == 3) {
                CHECK_EQ(status, PTO_OK);
                continue;
            }
            CHECK_EQ(status, PTO_E_MISUSE);
            CHECK_EQ(m.kind, PTO_MISUSE_UNWRITTEN);
            CHECK_EQ(m.task, 1);
            CHECK_EQ(m.arg, 0);
            CHECK_EQ(m.row, rows > 0 && cols < 3 ? 0 : rows);
            CHECK_EQ(m.col, rows > 0 && cols < 3 ? cols : 0);
            CHECK_EQ(m.n_elements, 9 - rows * cols);
        }
}

static void a_kernel_that_stores_a_part_has_written_that_part(void)
{
    pto_misuse m;
    const step used[] = {{1, 0, 1, 0, 0, 3, 3, {0}}, {1, 1, 2, 0, 0, 3, 3, {0}}};
    CHECK_EQ(run(used, 2, &m), PTO_OK);
    const step unused[] = {{1, 0, 1, 0, 0, 3, 3, {0}}, {0, 1, 2, 0, 0, 3, 3, {0}}};
    CHECK_EQ(run(unused, 2, &m), PTO_E_MISUSE);
    CHECK(m.row == 0 && m.col == 1 && m.n_elements == 6);
}

static void a_region_outside_its_tensor_is_found_before_anything_runs(void)
{
    pto_misuse m;
    const step below[] = {{0, 0, 2, 0, 0, 2, 2, {0}}, {0, 0, 2, 4, 0, 3, 2, {0}}};
    CHECK_EQ(run(below, 2, &m), PTO_E_MISUSE);
    CHECK(m.kind == PTO_MISUSE_REGION && m.task == 1 && m.arg == 0);
    CHECK(out[0] == -1);
}

/* Every element around and in a region of 2 x 3: a body may write inside and read inside. */
static void own_bodies_are_held_to_their_regions(void)
{
    for (int64_t row = -2; row < 4; row++)
        for (int64_t col = -2; col < 5; col++) {
            pto_misuse m;
            bool inside = row >= 0 && row < 2 && col >= 0 && col < 3;
            const step write[] = {{3, 0, 2, 2, 2, 2, 3, {1, 1, row, col}}};
            CHECK_EQ(run(write, 1, &m), inside ? PTO_OK : PTO_E_MISUSE);
            int64_t to = (2 + row) * SIDE + 2 + col;
            for (int64_t i = 0; i < SIDE * SIDE; i++)
                CHECK(out[i] == (inside && i == to ? given[3 * SIDE + 3] : -1));
            if (!inside)
                CHECK(m.kind == PTO_MISUSE_WRITE && m.arg == 1 && m.row * SIDE + m.col == row * SIDE + col);
            const step read[] = {{3, 0, 2, 2, 2, 2, 3, {row, col, 1, 1}}};
            CHECK_EQ(run(read, 1, &m), inside ? PTO_OK : PTO_E_MISUSE);
            if (!inside)
                CHECK(m.kind == PTO_MISUSE_READ && m.arg == 0);
        }
}

static void own_bodies_read_what_others_wrote(void)
{
    pto_misuse m;
    const step wrote[] = {{0, 0, 1, 0, 0, 1, 2, {0}}, {3, 1, 2, 0, 0, 2, 2, {0, 1, 1, 1}}};
    CHECK_EQ(run(wrote, 2, &m), PTO_OK);
    CHECK(out[SIDE + 1] == given[1]);
    const step missed[] = {{0, 0, 1, 0, 0, 1, 2, {0}}, {3, 1, 2, 0, 0, 2, 2, {1, 1, 1, 1}}};
    CHECK_EQ(run(missed, 2, &m), PTO_E_MISUSE);
    CHECK(m.kind == PTO_MISUSE_UNWRITTEN && m.task == 1 && m.arg == 0);
}

static void scratch_memory_has_an_end(void)
{
    pto_misuse m;
    const step fits[] = {{4, 0, 2, 0, 0, 1, 1, {64, 0, 0, 0}}}, exceeds[] = {{4, 0, 2, 0, 0, 1, 1, {65, 0, 0, 0}}};
    CHECK_EQ(run(fits, 1, &m), PTO_OK);
    CHECK_EQ(run(exceeds, 1, &m), PTO_E_MISUSE);
    CHECK_EQ(m.kind, PTO_MISUSE_SCRATCH);
}

int main(void)
{
    static const check_test tests[] = {
        TEST(what_is_written_is_read),
        TEST(the_first_element_that_nobody_wrote_is_named),
        TEST(a_kernel_that_stores_a_part_has_written_that_part),
        TEST(a_region_outside_its_tensor_is_found_before_anything_runs),
        TEST(own_bodies_are_held_to_their_regions),
        TEST(own_bodies_read_what_others_wrote),
        TEST(scratch_memory_has_an_end),
    };
    return RUN_TESTS(tests);
}
