/* test_sim_front.c: when tasks are submitted, released and started: each rule of the simulator by hand. */
#include "check.h"

static pto_record *record_new(void)
{
    return pto_record_new(&(pto_record_options){0});
}

static int64_t task(pto_sink *sink, int32_t stream, int64_t worker, int64_t cost)
{
    return sink->submit(sink, &(pto_task){.stream = stream, .worker = worker, .cost = cost});
}

/* A task that writes an intermediate of rows x cols elements of 4 bytes, reads it in another argument, and writes an output. */
static int64_t task_that_writes(pto_sink *sink, int64_t worker, int64_t cost, int64_t rows, int64_t cols)
{
    static char memory[4096];
    pto_arg args[3] = {{.flags = PTO_KEPT | PTO_WRITE}, {.flags = PTO_KEPT | PTO_READ}, {.flags = PTO_WRITE}};
    for (int32_t i = 0; i < 3; i++) {
        args[i].data = memory;
        args[i].extent[0] = rows;
        args[i].extent[1] = cols;
        args[i].stride[0] = cols;
        args[i].stride[1] = 1;
        args[i].elem_bytes = 4;
        args[i].buffer = i;
    }
    return sink->submit(sink, &(pto_task){.worker = worker, .cost = cost, .n_args = 3, .args = args});
}

static int64_t mark(pto_sink *sink, int32_t stream, int32_t flags, int64_t before, int64_t delay)
{
    return sink->mark(sink, &(pto_mark){.stream = stream, .flags = flags, .why = PTO_EDGE_CHANNEL, .site = -1, .n_before = 1,
                                        .before = &before, .delay = delay});
}

static void fork_streams(pto_sink *sink, int32_t n)
{
    int64_t fork = mark(sink, 0, PTO_MARK_RESTS, -1, 0);
    for (int32_t stream = 1; stream <= n; stream++)
        mark(sink, stream, PTO_MARK_BLOCKS, fork, 0);
}

static pto_sim *last;

static int32_t simulate(pto_record *record, pto_sim_options options, pto_sim_result *out)
{
    pto_sim_free(last);
    options.keep_trace = 1;
    last = pto_sim_new(&options);
    CHECK(last != NULL);
    int32_t fed = pto_sim_feed(last, record), finished = pto_sim_finish(last, out);
    CHECK(fed == PTO_OK || fed == finished);
    return finished;
}

static void check_times(const int64_t *found, const int64_t *expected, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        CHECK_EQ(found[i], expected[i]);
}

#define TIMES(found, ...) \
    check_times(found, (const int64_t[]){__VA_ARGS__}, (int64_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

/* n tasks of `cost`, each on an executor of its own */
static pto_record *apart(int64_t n, int64_t cost)
{
    pto_record *record = record_new();
    for (int64_t i = 0; i < n; i++)
        task(pto_record_sink(record), 0, i, cost);
    return record;
}

/* ---- windows ---- */

/* 3 entries a task, 8 in all: two at a time. Task 1 ends first, but task 0 holds the ring until 20; task 3 waits for 2's end. */
static void a_window_of_entries(void)
{
    pto_record *record = record_new();
    const int64_t cost[4] = {20, 5, 10, 1};
    for (int64_t i = 0; i < 4; i++)
        task_that_writes(pto_record_sink(record), i, cost[i], 1, 1);
    pto_sim_result r;
    pto_sim_options o = {.n_workers = 4, .window = 8, .window_unit = PTO_WINDOW_ENTRIES};
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    TIMES(r.submit, 0, 0, 20, 20);
    CHECK_EQ(r.total_cycles, 30);
    CHECK(r.window_stalls == 1 && r.window_stall_cycles == 20 && r.window_high_water == 6);
    o.window = 5;
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    TIMES(r.submit, 0, 20, 25, 35);
    CHECK(r.window_stalls == 3 && r.window_stall_cycles == 35 && r.window_high_water == 3);
    pto_record_free(record);
}

/* 2 x 8, 1 x 8, 0 and 3 x 8 elements of 4 bytes are 64, 32, 0 and 96 bytes. With 100: the first two and the third, which takes
   nothing; the fourth has room at 10, when 64 bytes are freed and 32 are left: 96 + 32 > 100, so it waits for 30. */
static void a_window_of_bytes(void)
{
    pto_record *record = record_new();
    const int64_t cost[4] = {10, 30, 7, 1}, rows[4] = {2, 1, 0, 3};
    for (int64_t i = 0; i < 4; i++)
        task_that_writes(pto_record_sink(record), i, cost[i], rows[i], 8);
    pto_sim_result r;
    pto_sim_options o = {.n_workers = 4, .window = 100, .window_unit = PTO_WINDOW_BYTES};
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    TIMES(r.submit, 0, 0, 0, 30);
    CHECK(r.total_cycles == 31 && r.window_high_water == 96 && r.window_stalls == 1 && r.window_stall_cycles == 30);
    o.window = 128;
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    TIMES(r.submit, 0, 0, 0, 10);
    CHECK(r.total_cycles == 30 && r.window_high_water == 128);
    o.window = 0;
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    CHECK(r.total_cycles == 30 && r.window_high_water == 192 && r.window_stalls == 0);
    pto_record_free(record);
}

/* 3 entries a task, 1200 in all: 400 tasks at 0, all of which end at 5, and as many then. */
static void a_window_of_many_tasks(void)
{
    pto_record *record = record_new();
    for (int64_t i = 0; i < 800; i++)
        task_that_writes(pto_record_sink(record), i, 5, 1, 1);
    pto_sim_result r;
    CHECK_EQ(simulate(record, (pto_sim_options){.n_workers = 800, .window = 1200, .window_unit = PTO_WINDOW_ENTRIES}, &r), PTO_OK);
    CHECK(r.submit[399] == 0 && r.submit[400] == 5 && r.submit[799] == 5 && r.total_cycles == 10);
    CHECK(r.window_high_water == 1200 && r.window_stalls == 1);
    pto_record_free(record);
}

/* Task 1 takes 96 of 95 bytes: waiting would not help. It is found when its stream comes to it, with nothing else to blame. */
static void a_task_that_no_window_holds(void)
{
    pto_record *record = record_new();
    task_that_writes(pto_record_sink(record), 0, 10, 1, 8);
    task_that_writes(pto_record_sink(record), 1, 10, 3, 8);
    pto_sim_result r;
    pto_sim_options o = {.n_workers = 2, .window = 95, .window_unit = PTO_WINDOW_BYTES};
    for (o.window_mode = PTO_WINDOW_STALL; o.window_mode <= PTO_WINDOW_ABORT; o.window_mode++) {
        CHECK_EQ(simulate(record, o, &r), PTO_E_WINDOW);
        CHECK_EQ(r.failed_task, 1);
        pto_record *more = apart(1, 1);
        CHECK_EQ(pto_sim_feed(last, more), PTO_E_WINDOW);
        pto_record_free(more);
    }
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    CHECK(r.window_stalls == 1 && r.window_stall_cycles == 0 && r.window_high_water == 128 && r.failed_task == -1);
    pto_record_free(record);
}

/* Five tasks, two slots. With a cost the third finds none; without one there is a slot before time goes on. */
static void an_abort_is_where_a_stall_would_be(void)
{
    for (int64_t cost = 0; cost < 2; cost++) {
        pto_record *record = apart(5, cost);
        pto_sim_result r;
        pto_sim_options o = {.n_workers = 5, .window = 2};
        CHECK_EQ(simulate(record, o, &r), PTO_OK);
        CHECK(r.window_stalls == 2 * cost && r.total_cycles == 3 * cost);
        o.window_mode = PTO_WINDOW_ABORT;
        CHECK_EQ(simulate(record, o, &r), cost ? PTO_E_WINDOW : PTO_OK);
        CHECK_EQ(r.failed_task, cost ? 2 : -1);
        pto_record_free(record);
    }
}

/* Stream 1 fills its slot before stream 2 does, but at one time: the first task in the record is named. */
static void the_first_of_two_aborts_is_named(void)
{
    pto_record *record = record_new();
    pto_sink *sink = pto_record_sink(record);
    fork_streams(sink, 2);
    task(sink, 1, 0, 3);
    task(sink, 2, 1, 3);
    task(sink, 2, 1, 3);       /* task 2 */
    task(sink, 1, 0, 3);
    pto_sim_result r;
    CHECK_EQ(simulate(record, (pto_sim_options){.n_workers = 2, .window = 1, .window_mode = PTO_WINDOW_ABORT}, &r), PTO_E_WINDOW);
    CHECK_EQ(r.failed_task, 2);
    pto_record_free(record);
}

/* Ten tasks at once, four slots: six find none, and nobody waits. */
static void a_benchmark_counts_and_goes_on(void)
{
    pto_record *record = apart(10, 5);
    pto_sim_result r;
    CHECK_EQ(simulate(record, (pto_sim_options){.n_workers = 10, .window = 4, .window_mode = PTO_WINDOW_BENCHMARK}, &r), PTO_OK);
    CHECK(r.total_cycles == 5 && r.window_stalls == 6 && r.window_stall_cycles == 0 && r.window_high_water == 10);
    pto_record_free(record);
}

/* ---- the time of submitting ---- */

/* 4 cycles a task from 0 on, 3 cycles of work each: the last one, submitted at 12, ends at 15. */
static void submitting_takes_its_stream_time(void)
{
    pto_record *record = apart(4, 3);
    pto_sim_result r;
    pto_sim_options o = {.n_workers = 4, .submit_cycles = 4};
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    TIMES(r.submit, 0, 4, 8, 12);
    CHECK(r.total_cycles == 15 && r.window_high_water == 1 && r.window_stalls == 0);
    o.submit_cycles = 1;       /* busy until 1, then held by the window until 3 */
    o.window = 1;
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    TIMES(r.submit, 0, 3, 6, 9);
    CHECK(r.total_cycles == 12 && r.window_stalls == 3 && r.window_stall_cycles == 6);
    pto_record_free(record);
}

/* Streams submit side by side; a stream comes to a mark when it is no longer busy: the token leaves at 5, not at 1. */
static void streams_submit_side_by_side(void)
{
    pto_record *record = record_new();
    pto_sink *sink = pto_record_sink(record);
    fork_streams(sink, 2);
    int64_t token = (task(sink, 1, 0, 1), mark(sink, 1, 0, -1, 2));
    task(sink, 2, 1, 1);
    task(sink, 2, 1, 1);
    mark(sink, 2, PTO_MARK_BLOCKS, token, 0);
    task(sink, 2, 1, 1);
    pto_sim_result r;
    CHECK_EQ(simulate(record, (pto_sim_options){.n_workers = 2, .submit_cycles = 5}, &r), PTO_OK);
    TIMES(r.submit, 0, 0, 5, 10);
    CHECK_EQ(r.total_cycles, 11);
    pto_record_free(record);
}

/* Stream 0 stood at a mark until 5; when it goes on after its rest, at 12, nothing had held it. */
static void a_rest_ends_what_held_a_stream(void)
{
    pto_record *record = record_new();
    pto_sink *sink = pto_record_sink(record);
    int64_t stood = mark(sink, 0, PTO_MARK_BLOCKS, task(sink, 0, 0, 5), 0);
    task(sink, 0, 0, 1);
    mark(sink, 0, PTO_MARK_RESTS, -1, 0);
    mark(sink, 1, PTO_MARK_BLOCKS, task(sink, 1, 1, 7), 0);
    task(sink, 1, 1, 1);
    task(sink, 0, 0, 1);
    pto_sim_result r;
    CHECK_EQ(simulate(record, (pto_sim_options){.n_workers = 2}, &r), PTO_OK);
    TIMES(r.submit, 0, 5, 5, 12, 12);
    CHECK(r.held[1] == PTO_HELD_MARK && r.held_by[1] == stood && r.held[4] == PTO_HELD_NOT && r.held_by[4] == -1);
    pto_record_free(record);
}

/* ---- timing ---- */

/* Submitted at 0, 2, 4, 6, 8; three at a time: at 4, and the rest of two when the stream has ended, at 10. */
static void batches_go_together(void)
{
    pto_record *record = apart(5, 10);
    pto_sim_result r;
    pto_sim_options o = {.n_workers = 5, .submit_cycles = 2, .timing = PTO_TIMING_BATCHED, .timing_n = 3};
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    TIMES(r.start, 4, 4, 4, 10, 10);
    TIMES(r.ready, 0, 2, 4, 6, 8);
    CHECK(r.total_cycles == 20 && r.waiting[0] == 0);
    /* with two slots no batch is ever full: a pair goes when the window holds the stream, at 4 and, both slots freed at 14, at 18 */
    o.window = 2;
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    TIMES(r.submit, 0, 2, 14, 16, 28);
    TIMES(r.start, 4, 4, 18, 18, 30);
    CHECK_EQ(r.total_cycles, 40);
    pto_record_free(record);
}

/* Each stream has its own batch of 2: stream 2's one task and stream 1's third go when a mark blocks the one, the end the other. */
static void every_stream_has_its_own_batch(void)
{
    pto_record *record = record_new();
    pto_sink *sink = pto_record_sink(record);
    fork_streams(sink, 2);
    task(sink, 2, 0, 1);
    mark(sink, 2, PTO_MARK_BLOCKS, task(sink, 1, 1, 6), 0);
    task(sink, 1, 2, 1);
    task(sink, 1, 3, 1);
    mark(sink, 1, PTO_MARK_RESTS, -1, 0);
    task(sink, 2, 0, 1);
    pto_sim_result r;
    CHECK_EQ(simulate(record, (pto_sim_options){.n_workers = 4, .submit_cycles = 3, .timing = PTO_TIMING_BATCHED, .timing_n = 2}, &r),
             PTO_OK);
    TIMES(r.submit, 0, 0, 3, 6, 9);
    TIMES(r.start, 3, 3, 3, 9, 12);    /* stream 2 stands at the mark from 3 to 9 and ends at 12; stream 1 comes to its rest at 9 */
    CHECK_EQ(r.total_cycles, 13);
    pto_record_free(record);
}

/* 7/2 cycles: due at 0, 3.5, 7, 10.5, 14. A rate above the clock lets several go in a cycle: 2/5 is 0, 0.4, 0.8, 1.2, 1.6. */
static void a_rate_is_exact(void)
{
    pto_record *record = apart(5, 1);
    pto_sim_result r;
    pto_sim_options o = {.n_workers = 5, .timing = PTO_TIMING_RATE, .release_num = 7, .release_den = 2};
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    TIMES(r.start, 0, 4, 7, 11, 14);
    TIMES(r.ready, 0, 0, 0, 0, 0);
    o.release_num = 2, o.release_den = 5;
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    TIMES(r.start, 0, 1, 1, 2, 2);
    o.release_num = 10, o.release_den = 1, o.submit_cycles = 12;   /* the stream is slower than the rate */
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    TIMES(r.start, 0, 12, 24, 36, 48);
    pto_record_free(record);

    const int64_t n = 30001;           /* 1e6/3 a millisecond at 1 GHz, say: 10/3 cycles, for long */
    record = apart(n, 1);
    o = (pto_sim_options){.n_workers = n, .timing = PTO_TIMING_RATE, .release_num = 10, .release_den = 3};
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    CHECK_EQ(r.start[n - 1], 100000);
    CHECK_EQ(r.start[n - 2], 99997);   /* 99996.67 */
    pto_record_free(record);
}

/* Two tasks, then nothing until 50: what was not used of the rate is lost. */
static void an_idle_gap_lets_no_burst_through(void)
{
    pto_record *record = record_new();
    pto_sink *sink = pto_record_sink(record);
    task(sink, 0, 0, 1);
    task(sink, 0, 1, 1);
    mark(sink, 0, PTO_MARK_BLOCKS, -1, 50);
    for (int64_t i = 2; i < 5; i++)
        task(sink, 0, i, 1);
    pto_sim_result r;
    CHECK_EQ(simulate(record, (pto_sim_options){.n_workers = 5, .timing = PTO_TIMING_RATE, .release_num = 7, .release_den = 2}, &r),
             PTO_OK);
    TIMES(r.start, 0, 4, 50, 54, 57);
    pto_record_free(record);
}

/* Streams 1 and 2 submit at 0, one task each, and then stream 1 again when it is no longer busy: one release in 10 cycles for both. */
static void a_rate_is_of_all_streams(void)
{
    pto_record *record = record_new();
    pto_sink *sink = pto_record_sink(record);
    fork_streams(sink, 2);
    task(sink, 1, 0, 1);
    task(sink, 1, 0, 1);
    task(sink, 2, 1, 1);
    task(sink, 2, 1, 1);
    pto_sim_result r;
    CHECK_EQ(simulate(record, (pto_sim_options){.n_workers = 2, .submit_cycles = 3, .timing = PTO_TIMING_RATE, .release_num = 10,
                                                .release_den = 1}, &r), PTO_OK);
    TIMES(r.submit, 0, 3, 0, 3);
    TIMES(r.start, 0, 20, 10, 30);
    pto_record_free(record);
}

/* ---- the start ---- */

/* Submitted at 0, 2, 4, 6. After 3: at 4; after 4: at 6; after all, or more than there are: at 8, when the stream is done with the
   last. total_cycles still counts from the first submission. */
static void the_start_waits_for_tasks(void)
{
    pto_record *record = apart(4, 10);
    pto_sim_result r;
    pto_sim_options o = {.n_workers = 4, .submit_cycles = 2, .start_after = 3};
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    TIMES(r.start, 4, 4, 4, 6);
    CHECK_EQ(r.total_cycles, 16);
    for (int32_t i = 0; i < 3; i++) {
        int64_t start = i == 0 ? 6 : 8;
        o.start_after = (const int64_t[]){4, PTO_AFTER_ALL, 100}[i];
        CHECK_EQ(simulate(record, o, &r), PTO_OK);
        TIMES(r.start, start, start, start, start);
        CHECK_EQ(r.total_cycles, start + 10);
    }
    o.window = 2;              /* it holds the stream when it is no longer busy with the second task */
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    TIMES(r.submit, 0, 2, 14, 16);
    TIMES(r.start, 4, 4, 14, 16);
    CHECK(r.held[0] == PTO_HELD_START && r.held[2] == PTO_HELD_WINDOW && r.held_by[2] == 0 && r.held[3] == PTO_HELD_SUBMIT);
    o.start_after = 4;         /* submitting the fourth is no second start */
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    CHECK(r.start[0] == 4 && r.held[0] == PTO_HELD_START && r.held[2] == PTO_HELD_WINDOW);
    o = (pto_sim_options){.n_workers = 4, .start_after = PTO_AFTER_ALL};
    CHECK_EQ(simulate(record, o, &r), PTO_OK);
    CHECK_EQ(r.total_cycles, 10);
    pto_record_free(record);
}

/* Stream 1 stands at a mark from 0 on; it is stream 2's end, at 9, that starts. */
static void all_streams_have_to_stand_for_a_start(void)
{
    pto_record *record = record_new();
    pto_sink *sink = pto_record_sink(record);
    fork_streams(sink, 2);
    mark(sink, 1, PTO_MARK_BLOCKS, task(sink, 2, 0, 1), 0);
    task(sink, 1, 1, 1);
    task(sink, 2, 0, 1);
    task(sink, 2, 0, 1);
    pto_sim_result r;
    CHECK_EQ(simulate(record, (pto_sim_options){.n_workers = 2, .submit_cycles = 3, .start_after = PTO_AFTER_ALL}, &r), PTO_OK);
    TIMES(r.start, 9, 10, 10, 11);
    pto_record_free(record);
}

/* ---- what is refused ---- */

static void rules_without_a_meaning_are_refused(void)
{
    static const pto_sim_options wrong[] = {
        {.n_workers = 1, .timing = PTO_TIMING_BATCHED}, {.n_workers = 1, .timing = PTO_TIMING_RATE, .release_den = 1},
        {.n_workers = 1, .timing = PTO_TIMING_RATE, .release_num = 1}, {.n_workers = 1, .timing = 4}, {.n_workers = 1, .window = -1},
        {.n_workers = 1, .window_unit = PTO_N_WINDOWS}, {.n_workers = 1, .window_mode = 3}, {.n_workers = 1, .start_after = -2},
        {.n_workers = 1, .submit_cycles = -1}, {.n_workers = 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(pto_sim_new(&wrong[i]) == NULL);
}

/* Columns that retime a stream may leave out arguments, but not where the window weighs them; a worker out of range is named. */
static void columns_at_fault_are_refused(void)
{
    pto_record *record = apart(3, 1);
    pto_columns c;
    pto_record_columns(record, &c);
    c.args = NULL;
    c.arg_begin = NULL;
    pto_sim_result r;
    for (int32_t unit = PTO_WINDOW_TASKS; unit <= PTO_WINDOW_ENTRIES; unit++) {
        pto_sim *sim = pto_sim_new(&(pto_sim_options){.n_workers = 3, .window = 2, .window_unit = unit});
        CHECK_EQ(pto_sim_feed_columns(sim, &c), unit == PTO_WINDOW_TASKS ? PTO_OK : PTO_E_ARGUMENT);
        pto_sim_free(sim);
    }
    pto_sim *sim = pto_sim_new(&(pto_sim_options){.n_workers = 2});
    CHECK_EQ(pto_sim_feed(sim, record), PTO_E_ARGUMENT);
    pto_sim_finish(sim, &r);
    CHECK_EQ(r.failed_task, 2);
    pto_sim_free(sim);
    pto_record_free(record);
}

int main(void)
{
    static const check_test tests[] = {
        TEST(a_window_of_entries), TEST(a_window_of_bytes), TEST(a_window_of_many_tasks), TEST(a_task_that_no_window_holds),
        TEST(an_abort_is_where_a_stall_would_be), TEST(the_first_of_two_aborts_is_named), TEST(a_benchmark_counts_and_goes_on),
        TEST(submitting_takes_its_stream_time), TEST(streams_submit_side_by_side), TEST(a_rest_ends_what_held_a_stream),
        TEST(batches_go_together),
        TEST(every_stream_has_its_own_batch), TEST(a_rate_is_exact), TEST(an_idle_gap_lets_no_burst_through),
        TEST(a_rate_is_of_all_streams), TEST(the_start_waits_for_tasks), TEST(all_streams_have_to_stand_for_a_start),
        TEST(rules_without_a_meaning_are_refused), TEST(columns_at_fault_are_refused)};
    int status = RUN_TESTS(tests);
    pto_sim_free(last);
    return status;
}
