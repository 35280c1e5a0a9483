/* test_sim_calendar.c: tasks in the order, and not before the starts, that a calendar gives: each rule of the simulator by hand. */
#include "sim_by_hand.h"

/* One executor: tasks 0, 1, 2 (2, 3, 4 cycles) at positions 30, -5, 7: 1, 2, 0. */
static void a_calendar_orders_an_executor(void)
{
    pto_record *record = record_new(PTO_KEEP_POSITION);
    const int64_t position[] = {30, -5, 7};
    for (int32_t i = 0; i < 3; i++)
        add(record, (pto_task){.cost = 2 + i, .position = position[i]}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 1, POOLS(1), .is_calendar = 1);
    IS(r.start, 7, 0, 3);
    is_held(&r, 2, PTO_HELD_EXECUTOR, 1);
    is_held(&r, 0, PTO_HELD_CALENDAR, 2);      /* it could have run at 0, and task 2 only began at 3 */
    pto_record_free(record);
}

/* Worker 1: task 2 (after task 0, ready at 5) stands before task 1 (ready at 0), so the executor waits until 5. */
static void a_task_that_is_not_ready_blocks_its_executor(void)
{
    pto_record *record = record_new(PTO_KEEP_POSITION);
    int64_t first = add(record, (pto_task){.worker = 0, .cost = 5, .position = 0}, -1);
    add(record, (pto_task){.worker = 1, .cost = 3, .position = 1}, -1);
    add(record, (pto_task){.worker = 1, .cost = 2, .position = 0}, first);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 2, POOLS(1), .is_calendar = 1);
    IS(r.start, 0, 7, 5);
    IS(r.late, 2, 5);           /* task 1 stands from 0 to 7; executor 0 is idle from 5 on */
    CHECK_EQ(r.total_cycles, 10);
    is_held(&r, 2, PTO_HELD_EDGE, 0);
    is_held(&r, 1, PTO_HELD_CALENDAR, 2);
    SIMULATE(record, &r, POOLS(1), .is_calendar = 1);      /* it names two workers */
    CHECK(r.n_executors == 2 && r.total_cycles == 10);
    pto_record_free(record);
}

/* Task 1 is to run before task 0, but the window has one place, and task 0 takes it. */
static void calendars_that_cannot_go_on_end(void)
{
    pto_record *record = record_new(PTO_KEEP_POSITION);
    int64_t first = add(record, (pto_task){.cost = 1, .position = 1}, -1);
    add(record, (pto_task){.cost = 1, .position = 0}, -1);
    pto_sim_result r;
    CHECK_EQ(simulate(record, (pto_sim_options){.n_workers = 1, .is_calendar = 1, .window = 1}, &r), PTO_E_DEADLOCK);
    SIMULATE(record, &r, .n_workers = 1, .is_calendar = 1, .window = 2);
    add(record, (pto_task){.cost = 1, .position = 0, .worker = 1}, first);
    add(record, (pto_task){.cost = 1, .position = -1}, 2);      /* before task 0, whose result it needs */
    CHECK_EQ(simulate(record, (pto_sim_options){.n_workers = 2, .is_calendar = 1}, &r), PTO_E_DEADLOCK);
    CHECK_EQ(pto_sim_feed(last, record), PTO_E_DEADLOCK);
    pto_record_reset(record);
    SIMULATE(record, &r, .is_calendar = 1);
    CHECK(r.n_executors == 1 && r.total_cycles == 0);
    add(record, (pto_task){.worker = PTO_MAX_CALENDAR}, -1);
    CHECK_EQ(simulate(record, (pto_sim_options){.is_calendar = 1}, &r), PTO_E_ARGUMENT);
    CHECK_EQ(r.failed_task, 0);
    pto_record_reset(record);
    add(record, (pto_task){.position = 4}, -1);
    add(record, (pto_task){.position = 4, .worker = 1}, -1);
    add(record, (pto_task){.position = 4}, -1);
    add(record, (pto_task){.position = 4, .worker = 1}, -1);
    CHECK_EQ(simulate(record, (pto_sim_options){.n_workers = 2, .is_calendar = 1}, &r), PTO_E_ARGUMENT);
    CHECK_EQ(r.failed_task, 2);
    pto_record_free(record);
}

/* Released at 0 and 10: the one that comes first in the calendar is submitted last. */
static void a_calendar_waits_for_releases(void)
{
    pto_record *record = record_new(PTO_KEEP_POSITION);
    add(record, (pto_task){.cost = 1, .position = 1}, -1);
    add(record, (pto_task){.cost = 1, .position = 0}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 1, .is_calendar = 1, .timing = PTO_TIMING_RATE, .release_num = 10, .release_den = 1);
    IS(r.start, 11, 10);
    is_held(&r, 1, PTO_HELD_RELEASE, -1);
    pto_record_free(record);
}

#define STARTS(...) .starts = (int64_t[]){__VA_ARGS__}, .n_starts = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

/* Executor 0: task 0 from its start at 5 to 8, task 2 from 9 to 11, task 4 behind it at once, though it may begin at 2. Executor 1: task 1
   0 .. 4, and task 3, which waits for task 0, from 8 on: its start at 6 has passed by then. */
static void a_task_does_not_begin_before_its_start(void)
{
    pto_record *record = record_new(PTO_KEEP_POSITION);
    int64_t first = add(record, (pto_task){.cost = 3, .position = 0}, -1);
    add(record, (pto_task){.cost = 4, .worker = 1, .position = 0}, -1);
    add(record, (pto_task){.cost = 2, .position = 1}, -1);
    add(record, (pto_task){.cost = 1, .worker = 1, .position = 1}, first);
    add(record, (pto_task){.cost = 1, .position = 2}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 2, .is_calendar = 1, STARTS(5, 0, 9, 6, 2));
    IS(r.start, 5, 0, 9, 8, 11);
    IS(r.end, 8, 4, 11, 9, 12);
    CHECK_EQ(r.total_cycles, 12);
    IS(r.busy, 6, 5);
    IS(r.late, 6, 6);           /* executor 0 has its tasks from 0 and 8 on; executor 1 is idle 4 .. 8, and from 9 while task 4 stands */
    is_held(&r, 0, PTO_HELD_CALENDAR, -1);
    is_held(&r, 1, PTO_HELD_NOT, -1);
    is_held(&r, 2, PTO_HELD_CALENDAR, -1);
    is_held(&r, 3, PTO_HELD_EDGE, first);
    is_held(&r, 4, PTO_HELD_CALENDAR, 2);
    pto_record_free(record);
}

/* Dispatch 4, retire 1: the task that starts at 10 is dispatched 0 .. 4 and waits; the other one of its executor is dispatched when it has
   been retired, 13 .. 14, so it starts at 18. Of the second executor the start at 3 comes to nothing: it is dispatched until 4. */
static void a_task_is_dispatched_before_its_start(void)
{
    pto_record *record = record_new(PTO_KEEP_POSITION);
    add(record, (pto_task){.cost = 3, .position = 0}, -1);
    add(record, (pto_task){.cost = 3, .position = 1}, -1);
    add(record, (pto_task){.cost = 3, .worker = 1, .position = 0}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 2, .is_calendar = 1, .dispatch_cycles = 4, .retire_cycles = 1, STARTS(10, 16, 3));
    IS(r.start, 10, 18, 4);
    IS(r.complete, 14, 22, 8);
    CHECK_EQ(r.total_cycles, 22);
    is_held(&r, 0, PTO_HELD_CALENDAR, -1);
    is_held(&r, 1, PTO_HELD_DISPATCH, -1);
    is_held(&r, 2, PTO_HELD_NOT, -1);
    pto_record_free(record);
}

/* Two tasks of 10 cycles and 10 bytes, 1 byte a cycle: together they are slowed by 2. The second starts at 4: 6 cycles of the first are
   left, 12 for both; then 4 of the second. The task of no cost at 4 ends then. */
static void starts_go_with_memory_and_tasks_of_no_cost(void)
{
    pto_record *record = record_new(PTO_KEEP_POSITION | PTO_KEEP_BYTES);
    add(record, (pto_task){.cost = 10, .bytes = 10}, -1);
    add(record, (pto_task){.cost = 10, .bytes = 10, .worker = 1, .position = 1}, -1);
    add(record, (pto_task){.worker = 1, .position = 0}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 2, .is_calendar = 1, .bytes_per_cycle = 1, STARTS(0, 4, 4));
    IS(r.start, 0, 4, 4);
    IS(r.end, 16, 20, 4);
    pto_record_free(record);
}

/* The start policy holds until both are submitted, at 2; the task that starts at 9 takes the window of one until 12. */
static void starts_go_with_windows_and_the_start_policy(void)
{
    pto_record *record = record_new(PTO_KEEP_POSITION);
    add(record, (pto_task){.cost = 3, .position = 0}, -1);
    add(record, (pto_task){.cost = 3, .worker = 1, .position = 0}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 2, .is_calendar = 1, .window = 1, STARTS(9, 10));
    IS(r.start, 9, 12);
    is_held(&r, 1, PTO_HELD_WINDOW, 0);
    SIMULATE(record, &r, .n_workers = 2, .is_calendar = 1, .start_after = 2, .submit_cycles = 2, STARTS(0, 1));
    IS(r.start, 2, 2);
    is_held(&r, 0, PTO_HELD_START, -1);
    pto_record_free(record);
}

static void starts_that_do_not_fit_are_refused(void)
{
    const int64_t starts[2] = {0, 0};
    CHECK(pto_sim_new(&(pto_sim_options){.n_workers = 1, .starts = starts, .n_starts = 2}) == NULL);        /* of no calendar */
    CHECK(pto_sim_new(&(pto_sim_options){.n_workers = 1, .is_calendar = 1, .n_starts = 2}) == NULL);
    CHECK(pto_sim_new(&(pto_sim_options){.n_workers = 1, .is_calendar = 1, .starts = starts, .n_starts = -1}) == NULL);
    CHECK(pto_sim_new(&(pto_sim_options){.n_workers = 1, .is_calendar = 1, .starts = starts, .n_starts = INT64_MAX}) == NULL);
    pto_record *record = record_new(PTO_KEEP_POSITION);
    for (int32_t i = 0; i < 3; i++)
        add(record, (pto_task){.position = i}, -1);
    pto_sim_result r;
    CHECK_EQ(simulate(record, (pto_sim_options){.n_workers = 1, .is_calendar = 1, .starts = starts, .n_starts = 2}, &r), PTO_E_ARGUMENT);
    pto_record_free(record);
}

static void a_calendar_needs_all_tasks_at_once(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.keep = PTO_KEEP_POSITION});
    add(record, (pto_task){.position = 4}, -1);
    pto_sim *sim = pto_sim_new(&(pto_sim_options){.n_workers = 1, .is_calendar = 1});
    CHECK_EQ(pto_sim_feed(sim, record), PTO_OK);
    int64_t node = 1, position = 5, worker = 0, begin[2] = {0};
    uint8_t kind = PTO_NODE_TASK;
    int32_t stream = 0;
    pto_columns more = {.n_tasks = 1, .n_nodes = 1, .first_node = 1, .first_task = 1, .node_kind = &kind, .node_task = begin,
                        .pred_begin = begin, .task_node = &node, .task_worker = &worker, .task_cost = begin, .task_stream = &stream,
                        .task_position = &position};
    CHECK_EQ(pto_sim_feed_columns(sim, &more), PTO_E_ARGUMENT);
    pto_sim_free(sim);
    pto_record_free(record);
}

int main(void)
{
    static const check_test tests[] = {
        TEST(a_calendar_orders_an_executor), TEST(a_task_that_is_not_ready_blocks_its_executor),
        TEST(calendars_that_cannot_go_on_end), TEST(a_calendar_waits_for_releases), TEST(a_task_does_not_begin_before_its_start),
        TEST(a_task_is_dispatched_before_its_start), TEST(starts_go_with_memory_and_tasks_of_no_cost),
        TEST(starts_go_with_windows_and_the_start_policy), TEST(starts_that_do_not_fit_are_refused),
        TEST(a_calendar_needs_all_tasks_at_once)};
    int status = RUN_TESTS(tests);
    pto_sim_free(last);
    return status;
}
