/* test_streams.c: several streams in virtual time: hand-computed pipelines, and streams that are cut into chunks. */
#include "random_sim.h"

static pto_record *record_new(void)
{
    return pto_record_new(&(pto_record_options){0});
}

static int64_t task(pto_sink *sink, int32_t stream, int64_t worker, int64_t cost, int64_t after)
{
    pto_task t = {.stream = stream, .worker = worker, .cost = cost, .n_order = 1, .order = &after};
    return sink->submit(sink, &t);
}

static int64_t mark(pto_sink *sink, int32_t stream, int32_t flags, int32_t stall, int64_t before, int64_t delay)
{
    return sink->mark(sink, &(pto_mark){.stream = stream, .flags = flags, .stall = stall, .why = PTO_EDGE_CHANNEL,
                                        .site = -1, .n_before = 1, .before = &before, .delay = delay});
}

/* The streams 1 .. n begin where the main one stands, which rests meanwhile. */
static void fork_streams(pto_sink *sink, int32_t n)
{
    int64_t fork = mark(sink, 0, PTO_MARK_RESTS, 0, -1, 0);
    for (int32_t stream = 1; stream <= n; stream++)
        mark(sink, stream, PTO_MARK_BLOCKS, 0, fork, 0);
}

static pto_sim_result simulate(pto_sim **sim, const pto_record *record, int64_t n_workers, int64_t window)
{
    pto_sim_result result;
    *sim = pto_sim_new(&(pto_sim_options){.n_workers = n_workers, .window = window, .keep_trace = 1});
    CHECK_EQ(pto_sim_feed(*sim, record), PTO_OK);
    CHECK_EQ(pto_sim_finish(*sim, &result), PTO_OK);
    return result;
}

/* 5, 5 on worker 0 and 3, 3, 3 on worker 1: with one slot each, neither stream waits for the other's tasks. */
static void every_stream_has_its_own_window(void)
{
    for (int32_t forks = 0; forks < 2; forks++) {
        pto_record *record = record_new();
        pto_sink *sink = pto_record_sink(record);
        if (forks)
            fork_streams(sink, 2);
        for (int32_t i = 0; i < 2; i++)
            task(sink, 1, 0, 5, -1);
        if (!forks)         /* a stream that nobody announced begins where it first stands in the record, at time 5 - 5 */
            pto_record_reset(record), task(sink, 1, 0, 5, -1), task(sink, 2, 1, 3, -1), task(sink, 1, 0, 5, -1);
        for (int32_t i = forks ? 0 : 1; i < 3; i++)
            task(sink, 2, 1, 3, -1);
        pto_sim *sim;
        pto_sim_result r = simulate(&sim, record, 2, 1);
        CHECK_EQ(r.total_cycles, 10);
        CHECK_EQ(r.end[4], 9);
        CHECK(r.window_stalls == 3 && r.window_stall_cycles == 11 && r.window_high_water == 1);
        CHECK_EQ(r.critical_path, 5);
        CHECK(r.stalls[PTO_STALL_CHANNEL_EMPTY] == 0 && r.stall_cycles[PTO_STALL_CHANNEL_FULL] == 0);
        pto_sim_free(sim);
        pto_record_free(record);
    }
}

/* Three tokens through one slot, latency 2. Sent tasks take 4 on worker 0, what is done with a token 10 on worker 1.
   Send 1 waits for receive 0 at 6, send 2 for receive 1. With structure edges a receive also waits for the work before. */
static void a_channel_of_depth_one(void)
{
    for (int32_t structure = 0; structure < 2; structure++) {
        pto_record *record = record_new();
        pto_sink *sink = pto_record_sink(record);
        int64_t received = -1, work = -1;
        fork_streams(sink, 2);
        for (int32_t k = 0; k < 3; k++) {
            if (k > 0)
                mark(sink, 1, PTO_MARK_BLOCKS, PTO_STALL_CHANNEL_FULL, received, 0);
            int64_t token = mark(sink, 1, 0, 0, task(sink, 1, 0, 4, -1), 2);
            received = sink->mark(sink, &(pto_mark){.stream = 2, .flags = PTO_MARK_BLOCKS, .why = PTO_EDGE_CHANNEL,
                                                    .stall = PTO_STALL_CHANNEL_EMPTY, .n_before = 1, .before = &token,
                                                    .n_order = structure, .order = &work});
            work = task(sink, 2, 1, 10, -1);
        }
        pto_sim *sim;
        pto_sim_result r = simulate(&sim, record, 2, 8);
        CHECK_EQ(r.total_cycles, 36);
        CHECK(r.start[0] == 0 && r.start[2] == 6 && r.start[1] == 6 && r.start[3] == 16 && r.start[5] == 26);
        CHECK_EQ(r.start[4], structure ? 16 : 12);
        CHECK_EQ(r.ready[5], structure ? 26 : 18);
        CHECK_EQ(r.critical_path, structure ? 36 : 28);
        /* with structure, tokens 1 and 2 are there before the work on the one before is done */
        CHECK_EQ(r.stalls[PTO_STALL_CHANNEL_EMPTY], structure ? 1 : 3);
        CHECK_EQ(r.stall_cycles[PTO_STALL_CHANNEL_EMPTY], structure ? 6 : 6 + 6 + 6);
        CHECK_EQ(r.stalls[PTO_STALL_NONE], structure ? 2 : 0);
        CHECK_EQ(r.stall_cycles[PTO_STALL_NONE], structure ? 10 + 10 : 0);
        CHECK_EQ(r.stalls[PTO_STALL_CHANNEL_FULL], 2);
        CHECK_EQ(r.stall_cycles[PTO_STALL_CHANNEL_FULL], structure ? 6 + 10 : 6 + 6);
        CHECK(r.window_stalls == 0 && r.stalls[PTO_STALL_READ] == 0);
        pto_sim_free(sim);
        pto_record_free(record);
    }
}

/* The receiver reads the result of a task of 5 before it is there; only then is the token sent: 4 cycles, latency 1. */
static void a_rendezvous_waits_for_both(void)
{
    pto_record *record = record_new();
    pto_sink *sink = pto_record_sink(record);
    fork_streams(sink, 2);
    mark(sink, 2, PTO_MARK_BLOCKS, PTO_STALL_READ, task(sink, 2, 1, 5, -1), 0);
    int64_t there = mark(sink, 2, 0, 0, -1, 0);        /* complete once its stream has come to it */
    mark(sink, 1, PTO_MARK_BLOCKS, PTO_STALL_CHANNEL_FULL, there, 0);
    int64_t token = mark(sink, 1, 0, 0, task(sink, 1, 0, 4, -1), 1);
    mark(sink, 1, PTO_MARK_BLOCKS, PTO_STALL_CHANNEL_FULL, token, 0);
    task(sink, 1, 0, 1, -1);
    mark(sink, 2, PTO_MARK_BLOCKS, PTO_STALL_CHANNEL_EMPTY, token, 0);
    task(sink, 2, 1, 2, -1);
    pto_sim *sim;
    pto_sim_result r = simulate(&sim, record, 2, 1);
    CHECK(r.start[1] == 5 && r.start[2] == 10 && r.start[3] == 10 && r.total_cycles == 12 && r.critical_path == 12);
    CHECK(r.stalls[PTO_STALL_READ] == 1 && r.stall_cycles[PTO_STALL_READ] == 5);
    CHECK(r.stalls[PTO_STALL_CHANNEL_FULL] == 2 && r.stall_cycles[PTO_STALL_CHANNEL_FULL] == 10);
    CHECK(r.stalls[PTO_STALL_CHANNEL_EMPTY] == 1 && r.stall_cycles[PTO_STALL_CHANNEL_EMPTY] == 5);
    CHECK_EQ(r.window_stalls, 0);
    pto_sim_free(sim);
    pto_record_free(record);
}

/* What comes after an event waits for it; a delay that nobody waits for takes no part in the makespan. */
static void delays_count_where_someone_waits(void)
{
    pto_record *record = record_new();
    pto_sink *sink = pto_record_sink(record);
    int64_t event = mark(sink, 0, 0, 0, task(sink, 0, 0, 3, -1), 7);
    task(sink, 0, 0, 2, -1);
    task(sink, 0, 1, 1, event);
    mark(sink, 0, 0, 0, event, 1000);
    pto_sim *sim;
    pto_sim_result r = simulate(&sim, record, 2, 0);
    CHECK(r.start[1] == 3 && r.start[2] == 10 && r.total_cycles == 11 && r.critical_path == 11);
    CHECK(r.late[1] == 3 && r.waiting[1] == 7);        /* worker 0 has two ready tasks at first */
    pto_sim_free(sim);
    pto_record_free(record);
}

/* ---- edges from regions: of dropped tasks too, as long as they have not completed in simulated time ---- */

enum { CELLS = 4 };

static int64_t cells[CELLS];

static int32_t orchestrate_cells(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    for (int64_t t = 0; t < current.n; t++) {
        const node *n = &current.node[t];
        pto_arg arg = {.data = (char *)&cells[n->pred[0] & (CELLS - 1)], .extent = {1, 1}, .stride = {1, 1},
                       .elem_bytes = 8, .flags = n->blocks || n->stall > 1 ? PTO_READ : PTO_WRITE};
        pto_task one = {.stream = n->task.stream, .worker = n->task.worker, .cost = n->task.cost, .n_args = 1, .args = &arg};
        pto_mark other = {.stream = n->task.stream, .flags = n->blocks ? PTO_MARK_BLOCKS : 0, .delay = n->task.cost,
                          .n_args = n->stall == PTO_STALL_READ, .args = &arg};
        if (n->is_task)
            sink->submit(sink, &one);
        else
            sink->mark(sink, &other);
    }
    return sink->status;
}

static void what_is_forgotten_has_completed(void)
{
    for (int64_t i = 0; i < CASES(4000); i++) {
        random_program(&current);
        pto_sim_result r[2];
        pto_sim *sims[2];
        for (int32_t cut = 0; cut < 2; cut++) {
            pto_record *record = pto_record_new(&(pto_record_options){.max_tasks = cut ? pick(1, 4) : 0, .infer = 1,
                                                                      .window = current.rules.window > 0 ? current.rules.window : 1});
            pto_execute_result ran;
            sims[cut] = pto_sim_new(&(pto_sim_options){.n_workers = current.n_workers, .window = current.rules.window,
                                                       .keep_trace = 1});
            pto_run_options options = {.orchestrate = orchestrate_cells, .sim = sims[cut]};
            CHECK_EQ(pto_run(NULL, record, &options, &ran), PTO_OK);
            pto_columns c;
            pto_record_columns(record, &c);
            if (c.first_node == 0)
                CHECK_EQ(pto_sim_feed(sims[cut], record), PTO_OK);
            CHECK_EQ(pto_sim_finish(sims[cut], &r[cut]), PTO_OK);
            pto_record_free(record);
        }
        CHECK_EQ(r[1].n_tasks, r[0].n_tasks);
        for (int64_t t = 0; t < r[0].n_tasks; t++)
            CHECK(r[1].start[t] == r[0].start[t] && r[1].ready[t] == r[0].ready[t]);
        CHECK(memcmp(r[0].stall_cycles, r[1].stall_cycles, sizeof r[0].stall_cycles) == 0);
        pto_sim_free(sims[0]);
        pto_sim_free(sims[1]);
    }
}

/* ---- a pipeline that is too long to keep ---- */

/* Tokens through two slots: 3 cycles to make, 5 to use, latency 1: after the first, one every 5 cycles. */
static int32_t long_pipeline(const pto_bindings *bindings, pto_sink *sink)
{
    int64_t received[2] = {-1, -1};
    (void)bindings;
    fork_streams(sink, 2);
    for (int64_t k = 0; k < CASES(200000) && sink->status == PTO_OK; k++) {
        mark(sink, 1, PTO_MARK_BLOCKS, PTO_STALL_CHANNEL_FULL, received[k % 2], 0);
        int64_t token = mark(sink, 1, 0, 0, task(sink, 1, 0, 3, -1), 1);
        received[k % 2] = mark(sink, 2, PTO_MARK_BLOCKS, PTO_STALL_CHANNEL_EMPTY, token, 0);
        mark(sink, 2, PTO_MARK_BLOCKS, PTO_STALL_READ, task(sink, 2, 1, 5, -1), 0);
    }
    int64_t end = mark(sink, 1, PTO_MARK_RESTS, 0, -1, 0), ends = mark(sink, 2, PTO_MARK_RESTS, 0, end, 0);
    task(sink, 0, 0, 7, ends);
    return sink->status;
}

static void memory_of_a_long_pipeline_is_bounded(void)
{
    int64_t before = resident_kib();
    pto_record *record = pto_record_new(&(pto_record_options){.max_tasks = 500, .window = 16});
    pto_sim *sim = pto_sim_new(&(pto_sim_options){.n_workers = 2, .window = 16});
    pto_execute_result ran;
    pto_sim_result r;
    CHECK_EQ(pto_run(NULL, record, &(pto_run_options){.orchestrate = long_pipeline, .sim = sim}, &ran), PTO_OK);
    CHECK_EQ(pto_sim_finish(sim, &r), PTO_OK);
    CHECK_EQ(r.total_cycles, 4 + 5 * CASES(200000) + 7);
    CHECK(resident_kib() - before < 24000);
    pto_sim_free(sim);
    pto_record_free(record);
}

int main(void)
{
    static const check_test tests[] = {
        TEST(every_stream_has_its_own_window), TEST(a_channel_of_depth_one), TEST(a_rendezvous_waits_for_both),
        TEST(delays_count_where_someone_waits), TEST(what_is_forgotten_has_completed),
        TEST(memory_of_a_long_pipeline_is_bounded)};
    return RUN_TESTS(tests);
}
