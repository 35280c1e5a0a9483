/* test_prints.c: what tasks print is read in program order, whatever the threads did, and never takes more than its bound. */
#include "check.h"

enum { THREADS = 4, N = 2000, SIDE = 40 };

static double tile[SIDE][SIDE];

/* Prints the value of its scalar, then its tile's transpose where the scalar is a multiple of 500. */
static int32_t show(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scratch;
    int64_t twice = 2 * scalars[0];
    context->print(context, 7, &scalars[0], 8, 1, 1, 1, 1);
    context->print(context, 8, &twice, 8, 1, 1, 1, 1);
    if (scalars[0] % 500 == 0)
        context->print(context, 9, tile, 8, SIDE, SIDE, 1, SIDE);
    return 0;
}

static const pto_kernel kernels[] = {{show, 0}};

static pto_record *tasks(int64_t n)
{
    pto_record *record = pto_record_new(&(pto_record_options){0});
    for (int64_t i = 0; i < n; i++) {
        int64_t index[2] = {i / 10, i % 10};
        pto_task task = {.site = (int32_t)(i % 3), .cost = 1000, .n_scalars = 1, .scalars = &i, .n_index = 2, .index = index};
        pto_record_sink(record)->submit(pto_record_sink(record), &task);
    }
    return record;
}

static void run(int32_t threads, const pto_record *record, pto_prints *prints)
{
    pto_pool *pool = pto_pool_new(threads);
    pto_execute_options options = {.threads = threads, .prints = prints};
    pto_execute_result result;
    CHECK_EQ(pto_execute(pool, record, kernels, 1, &options, &result), PTO_OK);
    pto_pool_free(pool);
}

static int64_t number(const pto_prints_view *view, int64_t row)
{
    int64_t value;
    memcpy(&value, view->data + view->rows[row].data, sizeof value);
    return value;
}

static void values_come_in_program_order(void)
{
    pto_record *record = tasks(N);
    for (int32_t threads = 1; threads <= THREADS; threads += THREADS - 1) {
        pto_prints *prints = pto_prints_new(&(pto_prints_options){.max_bytes = 1 << 24, .threshold = 1 << 20, .edge = 3});
        run(threads, record, prints);
        pto_prints_view view;
        pto_prints_read(prints, &view);
        CHECK_EQ(view.n, 2 * N + 4);
        CHECK_EQ(view.n_total, view.n);
        int64_t at = 0;
        for (int64_t i = 0; i < N && at < view.n; i++) {
            CHECK_EQ(view.rows[at].task, i);
            CHECK_EQ(view.rows[at].site, i % 3);
            CHECK_EQ(view.rows[at].n_index, 2);
            CHECK_EQ(view.rows[at].index[0], i / 10);
            CHECK_EQ(view.rows[at].index[1], i % 10);
            CHECK_EQ(view.rows[at].statement, 7);
            CHECK_EQ(number(&view, at++), i);
            CHECK_EQ(view.rows[at].statement, 8);
            CHECK_EQ(number(&view, at++), 2 * i);
            if (i % 500 == 0)
                CHECK_EQ(view.rows[at++].statement, 9);
        }
        pto_prints_free(prints);
    }
    pto_record_free(record);
}

static void a_large_value_is_kept_at_its_edges(void)
{
    for (int64_t r = 0; r < SIDE; r++)
        for (int64_t c = 0; c < SIDE; c++)
            tile[r][c] = (double)(r * SIDE + c);
    pto_record *record = tasks(1);
    for (int64_t threshold = SIDE * SIDE - 1; threshold <= SIDE * SIDE; threshold++) {
        pto_prints *prints = pto_prints_new(&(pto_prints_options){.max_bytes = 1 << 24, .threshold = threshold, .edge = 2});
        run(1, record, prints);
        pto_prints_view view;
        pto_prints_read(prints, &view);
        const pto_printed *row = &view.rows[2];
        int64_t kept = threshold < SIDE * SIDE ? 4 : SIDE;
        CHECK_EQ(row->rows, SIDE);
        CHECK_EQ(row->kept_rows, kept);
        CHECK_EQ(row->kept_cols, kept);
        CHECK_EQ(row->size_bytes, kept * kept * 8);
        for (int64_t r = 0; r < kept; r++)
            for (int64_t c = 0; c < kept; c++) {
                int64_t from_row = r < kept / 2 ? r : SIDE - kept + r, from_col = c < kept / 2 ? c : SIDE - kept + c;
                double value;
                memcpy(&value, view.data + row->data + (r * kept + c) * 8, sizeof value);
                CHECK(value == tile[from_col][from_row]);      /* printed transposed */
            }
        pto_prints_free(prints);
    }
    pto_record_free(record);
}

static void what_is_kept_depends_on_no_thread(void)
{
    pto_record *record = tasks(N);
    enum { KEPT = 501 };               /* two values of 136 bytes in each of 100 tasks, more in the first */
    for (int32_t threads = 1; threads <= THREADS; threads++)
        for (int64_t repeat = 0; repeat < CASES(10); repeat++) {
            int64_t bound = KEPT * (PTO_PRINT_BYTES + 8) + SIDE * SIDE * 8 + PTO_PRINT_BYTES;
            pto_prints *prints = pto_prints_new(&(pto_prints_options){.max_bytes = bound, .threshold = 1 << 20, .edge = 3});
            run(threads, record, prints);
            pto_prints_view view;
            pto_prints_read(prints, &view);
            CHECK_EQ(view.n, KEPT + 1);
            CHECK_EQ(view.n_total, 2 * N + 4);
            CHECK_EQ(view.rows[view.n - 1].task, (KEPT - 1) / 2);
            CHECK_EQ(number(&view, view.n - 1), (KEPT - 1) / 2);
            pto_prints_free(prints);
        }
    pto_record_free(record);
}

static void a_value_that_can_never_fit_ends_what_is_kept(void)
{
    pto_record *record = tasks(N);
    for (int32_t threads = 1; threads <= THREADS; threads++) {
        pto_prints *prints = pto_prints_new(&(pto_prints_options){.max_bytes = SIDE * SIDE * 8, .threshold = 1 << 20, .edge = 3});
        run(threads, record, prints);
        pto_prints_view view;
        pto_prints_read(prints, &view);
        CHECK_EQ(view.n, 2);           /* those of task 0 before its tile */
        pto_prints_free(prints);
    }
    pto_record_free(record);
}

static void without_a_keeper_nothing_is_kept(void)
{
    pto_record *record = tasks(10);
    run(1, record, NULL);
    pto_record_free(record);
    pto_prints_free(NULL);
}

int main(void)
{
    const check_test tests[] = {
        TEST(values_come_in_program_order), TEST(a_large_value_is_kept_at_its_edges), TEST(what_is_kept_depends_on_no_thread),
        TEST(a_value_that_can_never_fit_ends_what_is_kept), TEST(without_a_keeper_nothing_is_kept),
    };
    return RUN_TESTS(tests);
}
