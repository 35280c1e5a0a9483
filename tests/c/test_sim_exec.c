/* test_sim_exec.c: which executor runs a task, and when: each rule of the simulator by hand. */
#include "sim_by_hand.h"

enum { KEEP_ALL = PTO_KEEP_POOL | PTO_KEEP_PRIORITY | PTO_KEEP_POSITION | PTO_KEEP_BYTES };

/* ---- pools ---- */

/* Five tasks of 4 on a worker with three executors: three at 0, two at 4 on the lowest. */
static void a_pool_runs_as_many_as_it_has_executors(void)
{
    pto_record *record = record_new(0);
    for (int32_t i = 0; i < 5; i++)
        add(record, (pto_task){.cost = 4}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 1, POOLS(3));
    IS(r.start, 0, 0, 0, 4, 4);
    IS(r.executor, 0, 1, 2, 0, 1);
    CHECK(r.total_cycles == 8 && r.n_executors == 3);
    IS(r.busy, 8, 8, 4);
    IS(r.late, 0, 0, 0);
    IS(r.tasks_run, 2, 2, 1);
    is_held(&r, 3, PTO_HELD_EXECUTOR, 0);
    is_held(&r, 4, PTO_HELD_EXECUTOR, 1);
    pto_record_free(record);
}

/* Cube tasks (pool 0, 6 cycles) and vector tasks (pool 1, 2 cycles) of one worker do not stand in each other's way: two cube tasks
   after one another to 12, three vector tasks on two executors to 4. */
static void pools_of_a_worker_run_at_once(void)
{
    pto_record *record = record_new(PTO_KEEP_POOL);
    for (int32_t i = 0; i < 5; i++)
        add(record, (pto_task){.pool = i % 2 == 0, .cost = i % 2 == 0 ? 2 : 6}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 1, POOLS(1, 2));
    IS(r.start, 0, 0, 0, 6, 2);
    IS(r.executor, 1, 0, 2, 0, 1);
    IS(r.pool, 0, 1, 1);
    CHECK_EQ(r.total_cycles, 12);
    pto_record_free(record);
}

/* 130 executors behind 3 others: tasks of 1, 2, 3 ... cycles all start at 0, one after another by number; one more at 1, on the first. */
static void executors_are_taken_by_number(void)
{
    pto_record *record = record_new(PTO_KEEP_POOL);
    for (int32_t i = 0; i <= 130; i++)
        add(record, (pto_task){.pool = 1, .cost = 1 + i}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 1, POOLS(3, 130));
    for (int32_t i = 0; i < 130; i++)
        CHECK(r.executor[i] == 3 + i && r.start[i] == 0);
    CHECK(r.executor[130] == 3 && r.start[130] == 1);
    pto_record_free(record);
}

/* Two workers, pools that tasks name: 2 and 5 alone, so there are four executors. */
static void pools_grow_as_tasks_name_them(void)
{
    pto_record *record = record_new(PTO_KEEP_POOL);
    add(record, (pto_task){.pool = 5, .worker = 1, .cost = 3}, -1);
    add(record, (pto_task){.pool = 2, .worker = 1, .cost = 4}, -1);
    add(record, (pto_task){.pool = 2, .worker = 1, .cost = 1}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 2);
    CHECK(r.n_executors == 4 && r.total_cycles == 5);
    IS(r.pool, 2, 2, 5, 5);
    IS(r.busy, 0, 5, 0, 3);
    IS(r.late, 4, 0, 0, 0);      /* worker 0 of pool 2, while the third task stands behind the second */
    IS(r.executor, 3, 1, 1);
    pto_record_free(record);
}

static void tasks_without_an_executor_are_refused(void)
{
    pto_record *record = record_new(PTO_KEEP_POOL);
    add(record, (pto_task){.pool = 0, .cost = 1}, -1);
    add(record, (pto_task){.pool = 2, .cost = 1}, -1);
    pto_sim_result r;
    CHECK_EQ(simulate(record, (pto_sim_options){.n_workers = 1, POOLS(1, 1)}, &r), PTO_E_ARGUMENT);
    CHECK_EQ(r.failed_task, 1);
    CHECK_EQ(simulate(record, (pto_sim_options){.n_workers = 1, POOLS(0, 1, 1)}, &r), PTO_E_ARGUMENT);
    CHECK_EQ(r.failed_task, 0);
    pto_record_reset(record);
    add(record, (pto_task){.pool = PTO_MAX_POOLS - 1, .cost = 1}, -1);
    SIMULATE(record, &r, .n_workers = 1);
    CHECK(r.n_executors == 1 && r.pool[0] == 4095 && r.executor[0] == 0);
    add(record, (pto_task){.pool = PTO_MAX_POOLS, .cost = 1}, -1);
    CHECK_EQ(simulate(record, (pto_sim_options){.n_workers = 1}, &r), PTO_E_ARGUMENT);
    CHECK_EQ(r.failed_task, 1);
    pto_record_free(record);
}

static void options_that_contradict_are_refused(void)
{
    int64_t two = 2, less = -1, ones[] = {1, 1, 1};
    const pto_sim_options wrong[] = {
        {.n_workers = 0}, {.n_workers = 1, .n_pools = 1}, {.n_workers = 1, .n_pools = 1, .pool_size = &less},
        {.n_workers = 1, .is_calendar = 1, .is_shared = 1}, {.n_workers = 1, .is_calendar = 1, .steals = 1},
        {.n_workers = 1, .is_calendar = 1, .n_pools = 1, .pool_size = &two}, {.n_workers = 1, .dispatch_cycles = -1},
        {.n_workers = 1, .is_calendar = 1, .timing = PTO_TIMING_INTERLEAVED, .timing_n = 2}, {.n_workers = 1, .retire_cycles = -1},
        {.n_workers = 1, .timing = PTO_TIMING_INTERLEAVED}, {.n_workers = 1, .bytes_per_cycle = -1},
        {.n_workers = 1, .hop_cycles = -1, .grid_columns = 1}, {.n_workers = 1, .hop_cycles = 1},
        {.n_workers = 1, .hop_cycles = 1, .grid_columns = 1, .steals = 1}, {.n_workers = 1, .hop_cycles = 1, .grid_columns = 1, .is_shared = 1},
        {.n_workers = 3, .route = 3, .rank_workers = 1, .n_pools = 3, .pool_size = ones, .link_pool = 1},
        {.n_workers = 3, .route = PTO_ROUTE_SWITCH, .rank_workers = 2, .n_pools = 3, .pool_size = ones, .link_pool = 1},
        {.n_workers = 3, .route = PTO_ROUTE_SWITCH, .rank_workers = 1, .n_pools = 3, .pool_size = ones, .link_pool = 2},
        {.n_workers = 3, .route = PTO_ROUTE_SWITCH, .rank_workers = 1, .n_pools = 3, .pool_size = ones, .link_pool = 1, .steals = 1},
        {.n_workers = 3, .route = PTO_ROUTE_SWITCH, .rank_workers = 1, .n_pools = 3, .pool_size = ones, .link_pool = 1, .link_buffers = -1},
        {.n_workers = 3, .route = PTO_ROUTE_TORUS, .rank_workers = 1, .n_pools = 3, .pool_size = ones, .link_pool = 1, .n_axes = 1, .axes = {4}},
        {.n_workers = 1, .bytes_per_cycle = 0.0 / 0.0}, {.n_workers = INT32_MAX, .n_pools = 1, .pool_size = &two}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(pto_sim_new(&wrong[i]) == NULL);
}

/* ---- which queue ---- */

/* All tasks call worker 0 their home: two executors share them. 8, 1, 1, 5: the second runs 1, 1, 5. */
static void a_shared_queue_feeds_all_workers(void)
{
    pto_record *record = record_new(0);
    const int64_t cost[] = {8, 1, 1, 5};
    for (int32_t i = 0; i < 4; i++)
        add(record, (pto_task){.cost = cost[i]}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 2, .is_shared = 1, POOLS(1));
    IS(r.start, 0, 0, 1, 2);
    IS(r.executor, 0, 1, 1, 1);
    CHECK_EQ(r.total_cycles, 8);
    IS(r.late, 0, 0);
    SIMULATE(record, &r, .n_workers = 2, POOLS(1));
    CHECK_EQ(r.total_cycles, 15);
    IS(r.late, 0, 10);          /* until the last task of worker 0 starts */
    pto_record_free(record);
}

/* Worker 1 runs its own task (2) first, then takes what worker 0 has ready first: task 2 at 2, task 3 at 5. */
static void an_idle_executor_steals_what_is_ready_first(void)
{
    pto_record *record = record_new(0);
    add(record, (pto_task){.worker = 0, .cost = 6}, -1);
    add(record, (pto_task){.worker = 1, .cost = 2}, -1);
    add(record, (pto_task){.worker = 0, .cost = 3}, -1);
    add(record, (pto_task){.worker = 0, .cost = 3}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 2, .steals = 1, POOLS(1));
    IS(r.start, 0, 0, 2, 5);
    IS(r.executor, 0, 1, 1, 1);
    CHECK_EQ(r.total_cycles, 8);
    is_held(&r, 3, PTO_HELD_EXECUTOR, 2);
    pto_record_free(record);
}

/* ---- which task ---- */

/* While the first runs, 1, 5, 5 and 3 become ready: 5 before 5, then 3, then 1. */
static void the_highest_priority_goes_first(void)
{
    pto_record *record = record_new(PTO_KEEP_PRIORITY);
    const int64_t priority[] = {-9, 1, 5, 5, INT64_MIN};
    for (int32_t i = 0; i < 5; i++)
        add(record, (pto_task){.cost = 2, .priority = priority[i]}, -1);
    add(record, (pto_task){.cost = 2, .priority = INT64_MAX}, 1);      /* ready at 2 + 2 + 2 + 2, when task 1 has run */
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 1, POOLS(1));
    IS(r.start, 8, 4, 0, 2, 10, 6);
    pto_record_free(record);
}

/* Lanes 4, 4', 1, 2, 5 are of classes 0, 0, 0, 1, 1 of three. Each is a chain of its own; all of cost 1. Classes 0, 1, 0, 1, 0 by turns,
   in each by (ready, node); the second task of lane 4 is ready once the first is over. */
static void lanes_take_turns(void)
{
    pto_record *record = record_new(PTO_KEEP_LANE);
    const int64_t lane[] = {4, 4, 1, 2, 5};
    for (int32_t i = 0; i < 5; i++)
        add(record, (pto_task){.cost = 1, .lane = lane[i]}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 1, POOLS(1), .timing = PTO_TIMING_INTERLEAVED, .timing_n = 3);
    IS(r.start, 0, 4, 2, 1, 3);
    SIMULATE(record, &r, .n_workers = 1, POOLS(1));
    IS(r.start, 0, 4, 1, 2, 3);
    pto_record_free(record);
}

/* Priority first: both of priority 1 go before those of 0, and among these, after class 1 class 0 is next; no lane is of the last class. */
static void turns_are_taken_within_a_priority(void)
{
    pto_record *record = record_new(PTO_KEEP_LANE | PTO_KEEP_PRIORITY);
    add(record, (pto_task){.cost = 1, .lane = 0, .priority = 0}, -1);
    add(record, (pto_task){.cost = 1, .lane = 4, .priority = 1}, -1);
    add(record, (pto_task){.cost = 1, .lane = 6, .priority = 1}, -1);
    add(record, (pto_task){.cost = 1, .lane = 3, .priority = 0}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 1, POOLS(1), .timing = PTO_TIMING_INTERLEAVED, .timing_n = 2);
    IS(r.start, 3, 0, 1, 2);
    pto_record_free(record);
}

/* ---- AICPUs that take time ---- */

/* One worker with two executors, dispatch 2, retire 1, three tasks of 10. Dispatches at 0 and 2: starts 2 and 4, ends 12 and 14. At 12
   the first's retirement and the third's dispatch are wanted: retired 12 .. 13, dispatched 13 .. 15, so it runs 15 .. 25, retired 26.
   The second ended at 14, and is retired 15 .. 16. */
static void a_worker_does_one_thing_after_another(void)
{
    pto_record *record = record_new(0);
    for (int32_t i = 0; i < 3; i++)
        add(record, (pto_task){.cost = 10}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 1, POOLS(2), .dispatch_cycles = 2, .retire_cycles = 1);
    IS(r.start, 2, 4, 15);
    IS(r.end, 12, 14, 25);
    IS(r.complete, 13, 16, 26);
    CHECK_EQ(r.total_cycles, 26);
    IS(r.late, 5, 4);           /* executor 0: 0 .. 2 and 12 .. 15; executor 1: 0 .. 4; task 2 stands until 13 */
    is_held(&r, 0, PTO_HELD_NOT, -1);
    is_held(&r, 1, PTO_HELD_DISPATCH, -1);
    is_held(&r, 2, PTO_HELD_DISPATCH, -1);
    pto_record_free(record);
}

/* A grid of 2 x 3: from worker 0 it is one step to 1 and to 3, three to 5. Task 0 runs on 0 until 10; 1 on the same worker follows at
   once, 2 and 3 a step of 4 later, 4 after three. Task 5 on 1 waits for 2, at its place until 19, and for 4 from 5, whose end at 27 comes two
   steps later: at 35. */
static void an_edge_takes_a_time_for_each_step_of_the_grid(void)
{
    static const int64_t workers[] = {0, 0, 1, 3, 5}, costs[] = {10, 5, 5, 5, 5};
    pto_record *record = record_new(0);
    for (int64_t i = 0; i < 5; i++)
        add(record, (pto_task){.worker = workers[i], .cost = costs[i]}, i == 0 ? -1 : 0);
    pto_sink *sink = pto_record_sink(record);
    sink->submit(sink, &(pto_task){.worker = 1, .cost = 1, .n_after = 2, .after = (int64_t[]){2, 4}});
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 6, .hop_cycles = 4, .grid_columns = 3);
    IS(r.ready, 0, 10, 14, 14, 22, 35);
    IS(r.start, 0, 10, 14, 14, 22, 35);
    is_held(&r, 5, PTO_HELD_EDGE, 4);
    CHECK_EQ(r.total_cycles, 36);
    CHECK_EQ(r.critical_path, 36);     /* 10, three steps of 4 to worker 5, 5, two steps to worker 1, 1 */
    SIMULATE(record, &r, .n_workers = 6, .hop_cycles = 0);
    IS(r.start, 0, 10, 10, 10, 10, 15);
    pto_record_free(record);
}

/* A ring of four ranks, a worker each: pool 1 has the links up, pool 2 those down. */
#define RING .n_workers = 4, .route = PTO_ROUTE_TORUS, .rank_workers = 1, .n_axes = 1, .axes = {4}, .n_pools = 3, .pool_size = ones, .link_pool = 1

static void add_copy(pto_record *record, int64_t source, int64_t target, int64_t pool, int64_t cost)
{
    add(record, (pto_task){.worker = source, .pool = pool, .cost = cost, .ranks = 1 + target + 65536 * (1 + source)}, -1);
}

/* From 0 to 2 it is two links of 10 cycles; the copy from 1 to 2 keeps the second one until 15, and the next from 0 the first until 30. */
static void a_copy_holds_the_links_of_its_route(void)
{
    static const int64_t ones[] = {1, 1, 1};
    pto_record *record = pto_record_new(&(pto_record_options){.keep = PTO_KEEP_POOL | PTO_KEEP_RANKS});
    add_copy(record, 0, 2, 1, 20);
    add_copy(record, 1, 2, 1, 15);
    add_copy(record, 0, 1, 1, 20);
    add_copy(record, 0, 3, 2, 4);
    pto_sim_result r;
    SIMULATE(record, &r, RING);
    IS(r.start, 0, 0, 10, 0);
    IS(r.end, 25, 15, 30, 4);
    CHECK_EQ(r.n_hops, 2);
    CHECK(r.hops[0].task == 0 && r.hops[0].executor == 4 && r.hops[0].start == 0 && r.hops[0].end == 10 && r.hops[0].held_by == -1);
    CHECK(r.hops[1].task == 0 && r.hops[1].executor == 5 && r.hops[1].ready == 10 && r.hops[1].start == 15 && r.hops[1].held_by == 1);
    is_held(&r, 2, PTO_HELD_EXECUTOR, 0);
    CHECK_EQ(r.total_cycles, 30);
    CHECK_EQ(r.critical_path, 20);
    CHECK_EQ(r.busy[4], 30);
    pto_record_free(record);
    record = pto_record_new(&(pto_record_options){.keep = PTO_KEEP_POOL | PTO_KEEP_RANKS});
    add_copy(record, 0, 2, 2, 20);     /* up is as near, and goes first */
    CHECK_EQ(simulate(record, (pto_sim_options){RING}, &r), PTO_E_ARGUMENT);
    pto_record_free(record);
}

/* All ranks send two links on, twice: each first copy has the buffer of its link and waits behind the second, which waits for the buffer. */
static void links_without_room_wait_for_each_other(void)
{
    static const int64_t ones[] = {1, 1, 1};
    pto_record *record = pto_record_new(&(pto_record_options){.keep = PTO_KEEP_POOL | PTO_KEEP_RANKS});
    for (int64_t i = 0; i < 8; i++)
        add_copy(record, i / 2, (i / 2 + 2) % 4, 1, 20);
    pto_sim_result r;
    CHECK_EQ(simulate(record, (pto_sim_options){RING, .keep_trace = 1, .link_buffers = 1}, &r), PTO_E_DEADLOCK);
    CHECK_EQ(r.n_hops, 4);
    SIMULATE(record, &r, RING, .link_buffers = 2);
    CHECK_EQ(r.total_cycles, 40);
    SIMULATE(record, &r, RING);
    CHECK_EQ(r.total_cycles, 40);
    pto_record_free(record);
    record = pto_record_new(&(pto_record_options){.keep = PTO_KEEP_POOL | PTO_KEEP_RANKS});
    int64_t before = -1;
    for (int64_t i = 0; i < 3; i++)    /* one after the other, each has the buffer that the one before has left */
        before = add(record, (pto_task){.pool = 1, .cost = 20, .ranks = 3 + 65536}, before);
    SIMULATE(record, &r, RING, .link_buffers = 1);
    CHECK_EQ(r.total_cycles, 60);
    pto_record_free(record);
}

/* A window of one task submits the second when the first has completed, and its end is under way still: 10 + 2 steps of 100. */
static void an_edge_is_under_way_when_its_target_is_submitted(void)
{
    pto_record *record = record_new(0);
    int64_t before = add(record, (pto_task){.cost = 10}, -1);
    add(record, (pto_task){.worker = 3, .cost = 5}, before);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 4, .hop_cycles = 100, .grid_columns = 2, .window = 1);
    IS(r.submit, 0, 10);
    IS(r.start, 0, 210);
    is_held(&r, 1, PTO_HELD_EDGE, before);
    pto_record_free(record);
}

/* A chain over two workers: each task starts 3 after the one before has been retired, which takes 2: 3 + 5 + 2 a task. */
static void successors_see_a_task_once_it_is_retired(void)
{
    pto_record *record = record_new(0);
    int64_t before = -1;
    for (int32_t i = 0; i < 3; i++)
        before = add(record, (pto_task){.worker = i % 2, .cost = 5}, before);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 2, POOLS(1), .dispatch_cycles = 3, .retire_cycles = 2, .window = 2);
    IS(r.start, 3, 13, 23);
    IS(r.ready, 0, 10, 20);
    CHECK_EQ(r.total_cycles, 30);
    is_held(&r, 1, PTO_HELD_EDGE, 0);
    pto_record_free(record);
}

/* Two workers share four tasks of 3, dispatch 1: both begin at 0. At 4 retirements that take no time go first, then dispatch. */
static void workers_that_share_dispatch_for_their_own_executors(void)
{
    pto_record *record = record_new(0);
    for (int32_t i = 0; i < 4; i++)
        add(record, (pto_task){.cost = 3}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 2, POOLS(1), .is_shared = 1, .dispatch_cycles = 1);
    IS(r.start, 1, 1, 5, 5);
    IS(r.executor, 0, 1, 0, 1);
    CHECK_EQ(r.total_cycles, 8);
    SIMULATE(record, &r, .n_workers = 2, POOLS(1), .steals = 1, .dispatch_cycles = 1);
    IS(r.start, 1, 1, 5, 5);
    pto_record_free(record);
}

/* ---- memory ---- */

/* Two tasks of 10 cycles and 100 bytes ask for 20 bytes a cycle of 15: each takes 13.3 cycles, so they end at 14. A third, without
   bytes, takes its 10. */
static void tasks_that_ask_for_more_than_memory_gives_are_slower(void)
{
    pto_record *record = record_new(KEEP_ALL);
    for (int32_t i = 0; i < 3; i++)
        add(record, (pto_task){.worker = i, .cost = 10, .bytes = i < 2 ? 100 : 0, .position = i}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 3, POOLS(1), .bytes_per_cycle = 15);
    IS(r.end, 14, 14, 10);
    IS(r.busy, 14, 14, 10);
    CHECK(r.total_cycles == 14 && r.memory_cycles == 8 && r.work == 30);
    SIMULATE(record, &r, .n_workers = 3, POOLS(1), .bytes_per_cycle = 20);
    CHECK(r.total_cycles == 10 && r.memory_cycles == 0);
    SIMULATE(record, &r, .n_workers = 3, POOLS(1));
    CHECK_EQ(r.total_cycles, 10);
    pto_record_free(record);
}

/* Task 0: 12 cycles, 10 bytes a cycle; task 1: 4 cycles, 20 bytes a cycle; 15 are there. Both at half speed: task 1 ends at 8, when
   task 0 has 8 of its 12 cycles left; alone it needs 8 more: 16. */
static void the_rest_of_a_task_speeds_up_again(void)
{
    pto_record *record = record_new(KEEP_ALL);
    add(record, (pto_task){.worker = 0, .cost = 12, .bytes = 120, .position = 0}, -1);
    add(record, (pto_task){.worker = 1, .cost = 4, .bytes = 80, .position = 1}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 2, POOLS(1), .bytes_per_cycle = 15);
    IS(r.end, 16, 8);
    CHECK_EQ(r.memory_cycles, 8);
    pto_record_free(record);
}

/* 2^30 cycles are a gigacycle here. Task 0 takes 3 of them, tasks 1 and 2 one after another 2 each; there is memory for all. */
static void long_tasks_keep_their_places_in_memory(void)
{
    pto_record *record = record_new(PTO_KEEP_BYTES);
    const int64_t giga = 1 << 30;
    for (int32_t i = 0; i < 3; i++)
        add(record, (pto_task){.worker = i > 0, .cost = (i == 0 ? 3 : 2) * giga, .bytes = giga}, -1);
    pto_sim_result r;
    SIMULATE(record, &r, .n_workers = 2, POOLS(1), .bytes_per_cycle = 2);
    IS(r.end, 3 * giga, 2 * giga, 4 * giga);
    pto_record_free(record);
}

/* ---- cycles that 64 bits do not hold ---- */

static void overflows_at(int64_t n_tasks, int64_t cost, bool in_a_row, pto_sim_options options, int64_t task)
{
    pto_record *record = record_new(KEEP_ALL);
    int64_t before = -1;
    for (int64_t i = 0; i < n_tasks; i++)
        before = add(record, (pto_task){.worker = i % options.n_workers, .cost = cost, .bytes = 8}, in_a_row ? before : -1);
    pto_sim_result r;
    int32_t status = simulate(record, options, &r);
    CHECK_EQ(status, task == PTO_E_OVERFLOW * 100 ? PTO_OK : PTO_E_OVERFLOW);
    CHECK(status == PTO_OK ? r.total_cycles == cost : r.failed_task == task);
    pto_record_free(record);
}

/* The work of all tasks does not fit though each worker has one; times do not though work does: for costs of AICPUs, for a memory that
   all share; the largest cost that a time holds is none of them. */
static void cycles_past_all_numbers_end_the_simulation(void)
{
    int64_t half = INT64_MAX / 2 + 1, fits = PTO_E_OVERFLOW * 100;
    overflows_at(2, half, false, (pto_sim_options){.n_workers = 2}, 1);
    overflows_at(2, half - 1, true, (pto_sim_options){.n_workers = 2, .retire_cycles = 2}, 1);
    overflows_at(1, INT64_MAX - 1, false, (pto_sim_options){.n_workers = 1}, fits);
    overflows_at(1, INT64_MAX, false, (pto_sim_options){.n_workers = 1}, 0);
    overflows_at(1, INT64_MAX - 1, false, (pto_sim_options){.n_workers = 1, .dispatch_cycles = 1}, 0);
    overflows_at(2, half - 1, true, (pto_sim_options){.n_workers = 1, .submit_cycles = half}, 1);
    overflows_at(2, half / 2, false, (pto_sim_options){.n_workers = 2, .bytes_per_cycle = 1e-20}, 0);
    overflows_at(2, 1, false, (pto_sim_options){.n_workers = 2, .timing = PTO_TIMING_RATE, .release_num = INT64_MAX, .release_den = 1}, -1);
}

int main(void)
{
    static const check_test tests[] = {
        TEST(a_pool_runs_as_many_as_it_has_executors), TEST(pools_of_a_worker_run_at_once), TEST(executors_are_taken_by_number),
        TEST(pools_grow_as_tasks_name_them), TEST(tasks_without_an_executor_are_refused), TEST(options_that_contradict_are_refused),
        TEST(a_shared_queue_feeds_all_workers), TEST(an_idle_executor_steals_what_is_ready_first),
        TEST(the_highest_priority_goes_first), TEST(lanes_take_turns), TEST(turns_are_taken_within_a_priority),
        TEST(an_edge_takes_a_time_for_each_step_of_the_grid), TEST(an_edge_is_under_way_when_its_target_is_submitted),
        TEST(a_copy_holds_the_links_of_its_route), TEST(links_without_room_wait_for_each_other),
        TEST(a_worker_does_one_thing_after_another), TEST(successors_see_a_task_once_it_is_retired),
        TEST(workers_that_share_dispatch_for_their_own_executors), TEST(tasks_that_ask_for_more_than_memory_gives_are_slower),
        TEST(the_rest_of_a_task_speeds_up_again), TEST(long_tasks_keep_their_places_in_memory),
        TEST(cycles_past_all_numbers_end_the_simulation)};
    int status = RUN_TESTS(tests);
    pto_sim_free(last);
    return status;
}
