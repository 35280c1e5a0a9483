/* test_sim_rules.c: random programs under random rules of submitting, releasing and starting, against every cycle looked at. */
#include "random_sim.h"

static void random_rules_agree_and_chunks_change_nothing(void)
{
    int64_t n_full = 0, n_stuck = 0, seen[PTO_HELD_READY + 1] = {0}, n = CASES(8000);
    for (int64_t i = 0; i < n && check_failures == 0; i++) {
        static slow_sim slow;
        random_program(&current);
        simulate_slowly(&current, &slow);
        for (int32_t cut = 0; cut < 2 - current.rules.is_calendar; cut++) {
            int32_t status;
            pto_sim_result r;
            pto_sim *sim = simulate_current(cut ? pick(1, 20) : 0, &status, &r);
            CHECK_EQ(status, slow.window_task >= 0 ? PTO_E_WINDOW : slow.is_stuck ? PTO_E_DEADLOCK : PTO_OK);
            CHECK_EQ(r.failed_task, task_of(&current, slow.window_task));
            CHECK_EQ(r.failed_window, slow.window_unit);
            if (status == PTO_OK) {
                check_same(&r, &current, &slow);
                for (int64_t t = 0; t < r.n_tasks; t++)
                    seen[r.held[t]]++;
            }
            n_full += status == PTO_E_WINDOW;
            n_stuck += status == PTO_E_DEADLOCK;
            pto_sim_free(sim);
        }
    }
    CHECK(n_full > n / 20 && n_full < n && n_stuck > n / 500 && n_stuck < n / 10);     /* the cases are no trivial ones */
    for (int32_t held = PTO_HELD_NOT; held <= PTO_HELD_READY; held++)
        CHECK(seen[held] > n / 100);
}

static bool are_same(const int64_t *a, const int64_t *b, int64_t n)
{
    return n == 0 || memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* When a stream that rests goes on is decided by what comes before in the record, so the slow simulator does not know; cuts may not say. */
static void rests_are_the_same_in_chunks(void)
{
    for (int64_t i = 0; i < CASES(3000); i++) {
        int32_t status[2];
        pto_sim_result r[2];
        pto_sim *sims[2];
        random_program(&current);
        if (current.rules.is_calendar)
            continue;
        for (int64_t t = current.n_streams; t < current.n; t++)
            current.node[t].rests |= !current.node[t].is_task && pick(0, 2) == 0;
        for (int32_t cut = 0; cut < 2; cut++)
            sims[cut] = simulate_current(cut ? pick(1, 20) : 0, &status[cut], &r[cut]);
        CHECK_EQ(status[0], status[1]);
        if (status[0] == PTO_OK) {
            int64_t n = r[0].n_tasks;
            CHECK(r[0].total_cycles == r[1].total_cycles && are_same(r[0].submit, r[1].submit, n));
            CHECK(are_same(r[0].start, r[1].start, n) && are_same(r[0].complete, r[1].complete, n));
            CHECK(are_same(r[0].held_by, r[1].held_by, n) && memcmp(r[0].held, r[1].held, (size_t)n) == 0);
            CHECK(are_same(r[0].stall_cycles, r[1].stall_cycles, PTO_N_STALLS) && r[0].window_stalls == r[1].window_stalls);
            CHECK(are_same(r[0].late, r[1].late, r[0].n_executors) && are_same(r[0].waiting, r[1].waiting, r[0].n_executors));
        }
        pto_sim_free(sims[0]);
        pto_sim_free(sims[1]);
    }
}

/* Nobody who wants no trace gets other times for it. */
static void a_trace_changes_nothing(void)
{
    for (int64_t i = 0; i < CASES(1000); i++) {
        int32_t status[2];
        pto_sim_result r[2];
        pto_sim *sims[2];
        random_program(&current);
        for (int32_t k = 0; k < 2; k++) {
            current.rules.keep_trace = k;
            sims[k] = simulate_current(0, &status[k], &r[k]);
        }
        CHECK(status[0] == status[1] && r[0].total_cycles == r[1].total_cycles && r[0].window_high_water == r[1].window_high_water);
        CHECK(r[0].window_stalls == r[1].window_stalls && r[0].window_stall_cycles == r[1].window_stall_cycles);
        CHECK(r[0].n_executors == r[1].n_executors && are_same(r[0].busy, r[1].busy, r[0].n_executors) &&
              are_same(r[0].waiting, r[1].waiting, r[0].n_executors) && are_same(r[0].late, r[1].late, r[0].n_executors));
        CHECK(r[0].submit == NULL);
        pto_sim_free(sims[0]);
        pto_sim_free(sims[1]);
    }
}

/* A sum of cycles that 64 bits do not hold is an error, and never another number. What is as large and waits for nothing is none. */
static void the_end_of_time_is_an_error(void)
{
    static const pto_sim_options large[] = {
        {.submit_cycles = INT64_MAX}, {.submit_cycles = INT64_MAX, .timing = PTO_TIMING_BATCHED, .timing_n = INT64_MAX},
        {.timing = PTO_TIMING_RATE, .release_num = INT64_MAX, .release_den = 1}, {.start_after = INT64_MAX, .submit_cycles = INT64_MAX / 2},
        {.timing = PTO_TIMING_RATE, .release_num = INT64_MAX, .release_den = INT64_MAX / 2, .submit_cycles = INT64_MAX / 3},
        {.window = INT64_MAX, .window_unit = PTO_WINDOW_BYTES, .submit_cycles = INT64_MAX - 1}};
    for (int64_t i = 0; i < CASES(300); i++) {
        random_program(&current);
        for (int64_t t = 0; t < current.n; t++)
            current.node[t].task.cost = pick(0, 5) ? current.node[t].task.cost : INT64_MAX - pick(0, 9);
        current.rules = large[(size_t)i % (sizeof large / sizeof *large)];
        current.rules.n_workers = current.n_workers;
        int32_t status;
        pto_sim_result r;
        pto_sim *sim = simulate_current(0, &status, &r);
        CHECK(status == PTO_E_OVERFLOW ? r.failed_task >= -1 && r.failed_task < current.n : status == PTO_OK);
        CHECK(status != PTO_OK || (r.n_tasks == task_of(&current, current.n) && r.total_cycles < INT64_MAX));
        CHECK(status != PTO_OK || (r.work >= 0 && r.critical_path <= r.total_cycles));
        pto_sim_free(sim);
    }
}

/* ---- a stream that is too long to keep ---- */

static int32_t many(const pto_bindings *bindings, pto_sink *sink)
{
    static char memory[1];
    pto_arg arg = {.data = memory, .extent = {1, 1}, .stride = {1, 1}, .elem_bytes = 1, .flags = PTO_READ};
    (void)bindings;
    for (int64_t k = 0; k < CASES(300000) && sink->status == PTO_OK; k++)
        sink->submit(sink, &(pto_task){.worker = k % 2, .cost = 4, .n_args = 1, .args = &arg});
    return sink->status;
}

/* 13/4 cycles a release, one cycle a submission, 16 places: the first runs when the window is full at 16, the tasks released until then
   before the others. From then on the rate is what counts: the last is released at 13/4 · (n - 1), rounded up, and takes 4. In batches
   of 7 of 16 places: two at once, 2 tasks are left, and go when the window is full. */
static void memory_is_bounded_by_the_window_under_rules_too(void)
{
    int64_t before = resident_kib(), n = CASES(300000);
    pto_sim_options o = {.n_workers = 2, .window = 16, .window_unit = PTO_WINDOW_ENTRIES, .submit_cycles = 1, .timing = PTO_TIMING_RATE,
                         .release_num = 13, .release_den = 4, .start_after = PTO_AFTER_ALL};
    for (int32_t is_batched = 0; is_batched < 2; is_batched++) {
        pto_record *record = pto_record_new(&(pto_record_options){.max_tasks = 500, .window = 16});
        pto_sim *sim = pto_sim_new(&o);
        pto_execute_result ran;
        pto_sim_result r;
        CHECK_EQ(pto_run(NULL, record, &(pto_run_options){.orchestrate = many, .sim = sim}, &ran), PTO_OK);
        CHECK_EQ(pto_sim_finish(sim, &r), PTO_OK);
        CHECK(r.n_tasks == n && r.window_high_water == 16);
        if (is_batched)
            CHECK(r.total_cycles >= 2 * n && r.total_cycles < 3 * n);      /* two executors, not far from busy */
        else
            CHECK_EQ(r.total_cycles, (13 * (n - 1) + 3) / 4 + 4);
        pto_sim_free(sim);
        pto_record_free(record);
        o.timing = PTO_TIMING_BATCHED;
        o.timing_n = 7;
    }
    CHECK(resident_kib() - before < 24000);
}

int main(void)
{
    static const check_test tests[] = {TEST(random_rules_agree_and_chunks_change_nothing), TEST(rests_are_the_same_in_chunks),
                                       TEST(a_trace_changes_nothing), TEST(the_end_of_time_is_an_error),
                                       TEST(memory_is_bounded_by_the_window_under_rules_too)};
    return RUN_TESTS(tests);
}
