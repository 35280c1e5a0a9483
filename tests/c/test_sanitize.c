/* test_sanitize.c: races against brute force over all ways through the structure, and seeded orders. */
#include "check.h"

enum { CELLS = 24, MAX_NODES = 400 };

static char cells[CELLS];
static int64_t ran[1 << 16], n_ran;

static int32_t note(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scratch, (void)context;
    if (n_ran < 1 << 16)
        ran[n_ran] = scalars[0];
    n_ran++;
    return 0;
}

static const pto_kernel kernels[] = {{note, 0}};

/* ---- a drawn program: sequences, loops in order and free ones, after=, channels between what is free ---- */

typedef struct drawn {
    pto_sink *sink;
    int64_t n_tasks, last_mark, tasks[MAX_NODES];
    int32_t n_cells, links, reads;     /* of 100: links, tasks that wait for others by name; reads, arguments that only read */
    bool structure;
} drawn;

static int64_t task_of(drawn *d, int64_t after)
{
    pto_arg args[2];
    for (int32_t i = 0; i < 2; i++)
        args[i] = (pto_arg){.data = &cells[pick(0, d->n_cells - 1)], .extent = {1, pick(0, 2)}, .stride = {1, 1}, .elem_bytes = 1,
                            .flags = pick(0, 99) < d->reads ? PTO_READ : (int32_t)pick(1, 3)};
    write_apart(args, 2);
    int64_t behind = d->n_tasks > 0 && pick(0, 99) < d->links ? d->tasks[pick(0, d->n_tasks - 1)] : -1, number = d->n_tasks;
    pto_task task = {.site = (int32_t)(number % 7), .n_args = 2, .args = args, .n_scalars = 1, .scalars = &number, .n_index = 1,
                     .index = &number, .n_order = d->structure, .order = &after, .n_after = 1, .after = &behind, .cost = 1};
    return d->tasks[d->n_tasks++] = d->sink->submit(d->sink, &task);
}

static int64_t mark_of(drawn *d, int64_t after)
{
    pto_mark mark = {.why = PTO_EDGE_CHANNEL, .site = 3, .n_before = 1, .before = &d->last_mark, .n_order = d->structure, .order = &after};
    return d->last_mark = d->sink->mark(d->sink, &mark);
}

static int64_t sequence(drawn *d, int64_t after, int32_t depth)
{
    for (int64_t i = pick(1, 3); i > 0 && d->n_tasks < 60; i--) {
        int64_t kind = depth == 0 ? 0 : pick(0, 9);
        if (kind < 4) {
            after = task_of(d, after);
        } else if (kind < 6) {
            for (int64_t k = pick(0, 3); k > 0; k--)
                after = sequence(d, after, depth - 1);
        } else if (kind < 9 || d->links == 0) {
            int64_t join = d->structure ? d->sink->join_open(d->sink) : -1;
            for (int64_t k = pick(0, 4); k > 0; k--) {
                int64_t end = sequence(d, after, depth - 1);
                if (d->structure && end != after)
                    d->sink->join_add(d->sink, join, end);
            }
            after = d->structure ? d->sink->join_close(d->sink, join, after) : after;
        } else {
            after = mark_of(d, after);
        }
    }
    return after;
}

static drawn program;
static uint64_t program_state;

static int32_t orchestrate(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    check_random_state = program_state;
    program.sink = sink;
    program.n_tasks = 0;
    program.last_mark = -1;
    sequence(&program, -1, 4);
    return sink->status;
}

/* ---- brute force ---- */

static int64_t races_of(const pto_columns *c, int64_t *n_pairs)
{
    static uint8_t before[MAX_NODES][MAX_NODES];
    int64_t n_races = 0;
    *n_pairs = 0;
    memset(before, 0, sizeof before);
    for (int64_t node = 0; node < c->n_nodes; node++) {
        for (int64_t e = c->pred_begin[node]; e < c->pred_begin[node + 1]; e++)
            if (c->edge_why[e] & (PTO_EDGE_ORDER | PTO_EDGE_AFTER | PTO_EDGE_CHANNEL | PTO_EDGE_EVENT)) {
                before[c->edge_src[e]][node] = 1;
                for (int64_t other = 0; other < c->edge_src[e]; other++)
                    before[other][node] |= before[other][c->edge_src[e]];
            }
        for (int64_t e = c->pred_begin[node]; e < c->pred_begin[node + 1]; e++)
            if (c->edge_why[e] & (PTO_EDGE_RAW | PTO_EDGE_WAR | PTO_EDGE_WAW)) {
                ++*n_pairs;
                n_races += !before[c->edge_src[e]][node];
            }
    }
    return n_races;
}

static int32_t run(pto_pool *pool, pto_record *record, pto_sanitizer *sanitizer, uint64_t seed)
{
    pto_execute_result result;
    pto_bindings bindings = {0};
    pto_run_options options = {.orchestrate = orchestrate, .bindings = &bindings, .kernels = kernels, .n_kernels = 1,
                               .execute = {.order_seed = seed, .sanitizer = sanitizer}};
    n_ran = 0;
    return pto_run(pool, record, &options, &result);
}

static pto_sanitizer *sanitizer_of(int32_t keep)
{
    return pto_sanitizer_new(&(pto_sanitizer_options){.keep = keep});
}

static void races_are_those_of_brute_force(void)
{
    pto_pool *pool = pto_pool_new(1);
    pto_sanitizer *sanitizer = sanitizer_of(0xff);
    int64_t n_clean = 0, n_racy = 0;
    for (int64_t i = 0; i < CASES(20000); i++) {
        pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
        program = (drawn){.n_cells = i % 3 == 0 ? CELLS - 2 : (int32_t)pick(1, CELLS - 2), .links = i % 2 ? 0 : 30, .structure = true};
        program_state = check_random_state;
        int32_t status = run(pool, record, sanitizer, 1 + (uint64_t)i);
        pto_columns c;
        pto_record_columns(record, &c);
        pto_sanitizer_report report;
        pto_sanitizer_read(sanitizer, &report);
        int64_t n_pairs, expected = races_of(&c, &n_pairs);
        CHECK_EQ(report.n_races, expected);
        CHECK_EQ(report.n_pairs, n_pairs);
        CHECK_EQ(report.n_unchecked, 0);
        CHECK_EQ(status, expected > 0 ? PTO_E_RACE : PTO_OK);
        CHECK(expected > 0 ? n_ran == 0 && report.n_rows > 0 : n_ran == c.n_tasks);
        for (int32_t k = 0; k < report.n_rows; k++) {
            const pto_race *race = &report.races[k];
            CHECK(race->has_regions && pto_regions_overlap(&race->first_region, &race->second_region, 1000));
            CHECK((race->first_region.flags | race->second_region.flags) & PTO_WRITE);
            CHECK_EQ(race->first_index[0], race->first_task);
            CHECK(race->first_task < race->second_task);
        }
        n_clean += expected == 0;
        n_racy += expected > 0;
        pto_record_free(record);
    }
    CHECK(n_clean > 50 && n_racy > 50);        /* the draw is worth something */
    pto_sanitizer_free(sanitizer);
    pto_pool_free(pool);
}

/* Of a program in chunks every race is found as well; a first task that is gone is known by its call and indices. */
static void races_across_chunks_are_found(void)
{
    pto_pool *pool = pto_pool_new(1);
    pto_sanitizer *sanitizer = sanitizer_of(0xff);
    int64_t n_across = 0;
    for (int64_t i = 0; i < CASES(4000); i++) {
        program = (drawn){.n_cells = (int32_t)pick(1, CELLS - 2), .links = i % 2 ? 0 : 30, .structure = true};
        program_state = check_random_state;
        pto_record *whole = pto_record_new(&(pto_record_options){.infer = 1});
        int32_t expected = run(pool, whole, sanitizer, 1);
        pto_sanitizer_report first;
        pto_sanitizer_read(sanitizer, &first);
        int64_t race_task = first.n_rows > 0 ? first.races[0].second_task : -1, race_with = first.n_rows > 0 ? first.races[0].first_task : -1;
        pto_record *record = pto_record_new(&(pto_record_options){.infer = 1, .max_tasks = pick(1, 20)});
        int32_t status = run(pool, record, sanitizer, 1);
        CHECK_EQ(status, expected);
        pto_sanitizer_report report;
        pto_sanitizer_read(sanitizer, &report);
        if (report.n_rows > 0) {
            CHECK_EQ(report.races[0].second_task, race_task);
            CHECK_EQ(report.races[0].first_task, race_with);
            CHECK_EQ(report.races[0].first_index[0], race_with);
            CHECK_EQ(report.races[0].first_site, race_with % 7);
            n_across += !report.races[0].has_regions;
        }
        check_random_state = program_state + 2;
        pick(0, 1);
        pto_record_free(record);
        pto_record_free(whole);
    }
    CHECK(n_across > 20);
    pto_sanitizer_free(sanitizer);
    pto_pool_free(pool);
}

/* What the schedule did not ask for is gone when tasks run, and the order is that of a program compiled without a sanitizer. */
static void the_same_seed_gives_the_order_of_a_plain_program(void)
{
    static int64_t watched[1 << 16];
    pto_pool *pool = pto_pool_new(2);
    int64_t n_compared = 0, n_moved = 0;
    for (int64_t i = 0; i < CASES(6000); i++) {
        bool by_data = i % 2;
        pto_sanitizer *sanitizer = sanitizer_of(by_data ? 0xff & ~PTO_EDGE_ORDER : 0xff & ~(PTO_EDGE_RAW | PTO_EDGE_WAR | PTO_EDGE_WAW));
        program = (drawn){.n_cells = CELLS - 2, .links = i % 3 ? 0 : 30, .reads = 95, .structure = true};
        program_state = check_random_state;
        pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
        int32_t status = run(pool, record, sanitizer, 77 + (uint64_t)i);
        int64_t n_watched = n_ran;
        memcpy(watched, ran, sizeof watched);
        if (status == PTO_OK) {
            program.structure = !by_data;
            pto_record *plain = pto_record_new(&(pto_record_options){.infer = by_data});
            CHECK_EQ(run(pool, plain, NULL, 77 + (uint64_t)i), PTO_OK);
            CHECK_EQ(n_ran, n_watched);
            CHECK(memcmp(ran, watched, (size_t)n_ran * sizeof *ran) == 0);
            for (int64_t k = 0; k < n_ran; k++)
                n_moved += ran[k] != k;
            pto_columns c;
            pto_record_columns(record, &c);
            n_compared += c.n_nodes > c.n_tasks;       /* there are joins or marks */
            pto_record_free(plain);
        }
        check_random_state = program_state + 2;
        pick(0, 1);
        pto_record_free(record);
        pto_sanitizer_free(sanitizer);
    }
    CHECK(n_compared > 20 && n_moved > 100);
    pto_pool_free(pool);
}

/* ---- size: loops in loops, each of them joined, all reading what one task wrote ---- */

static int64_t rows, in_row;

static int32_t orchestrate_large(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    pto_arg first = {.data = cells, .extent = {1, 1}, .stride = {1, 1}, .elem_bytes = 1, .flags = PTO_WRITE}, read = first;
    read.flags = PTO_READ;
    int64_t zero = 0;
    pto_task task = {.n_args = 1, .args = &first, .n_scalars = 1, .scalars = &zero};
    int64_t start = sink->submit(sink, &task), after = start;
    task.args = &read;
    task.n_order = 1;
    for (int32_t phase = 0; phase < 2; phase++) {
        int64_t join = sink->join_open(sink);
        for (int64_t r = 0; r < rows; r++) {
            int64_t inner = after, row = sink->join_open(sink);
            for (int64_t k = 0; k < in_row; k++) {
                task.order = &inner;
                int64_t node = sink->submit(sink, &task);
                if (phase == 0)
                    sink->join_add(sink, row, node);
                else
                    inner = node;
            }
            int64_t end = sink->join_close(sink, row, inner);
            sink->join_add(sink, join, end);
        }
        after = sink->join_close(sink, join, after);
    }
    task.args = &first;
    task.order = &after;
    sink->submit(sink, &task);
    return sink->status;
}

static void large_programs_are_checked_to_the_end(void)
{
    static const int64_t shapes[][2] = {{1, 50000}, {300, 170}, {50000, 1}};
    pto_pool *pool = pto_pool_new(1);
    pto_sanitizer *sanitizer = sanitizer_of(0xff);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        rows = shapes[i][0];
        in_row = shapes[i][1];
        pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
        pto_execute_result result;
        pto_bindings bindings = {0};
        pto_run_options options = {.orchestrate = orchestrate_large, .bindings = &bindings, .kernels = kernels, .n_kernels = 1,
                                   .execute = {.order_seed = 5, .sanitizer = sanitizer}};
        CHECK_EQ(pto_run(pool, record, &options, &result), PTO_OK);
        pto_sanitizer_report report;
        pto_sanitizer_read(sanitizer, &report);
        CHECK_EQ(report.n_pairs, 4 * rows * in_row + 1);
        CHECK_EQ(report.n_races + report.n_unchecked, 0);
        pto_record_free(record);
    }
    pto_sanitizer_free(sanitizer);
    pto_pool_free(pool);
}

/* Two processes with a channel of two slots between them; every task of the second but its first reads
   what the second task of all wrote: not all ways lead through that one. */
static int32_t orchestrate_ladder(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    pto_arg first = {.data = cells, .extent = {1, 1}, .stride = {1, 1}, .elem_bytes = 1, .flags = PTO_WRITE}, read = first;
    read.flags = PTO_READ;
    int64_t zero = 0, end[2] = {-1, -1}, received[2] = {-1, -1};
    for (int64_t i = 0; i < rows; i++) {
        pto_task task = {.n_args = i == 1, .args = &first, .n_scalars = 1, .scalars = &zero, .n_order = 1, .order = &end[0]};
        end[0] = sink->submit(sink, &task);
        pto_mark sent = {.why = PTO_EDGE_CHANNEL, .site = -1, .n_before = 1, .before = &received[i % 2], .n_order = 1, .order = &end[0]};
        end[0] = sink->mark(sink, &sent);
        pto_mark taken = {.why = PTO_EDGE_CHANNEL, .site = -1, .stream = 1, .n_before = 1, .before = &end[0], .n_order = 1,
                          .order = &end[1]};
        received[i % 2] = end[1] = sink->mark(sink, &taken);
        pto_task free_one = {.n_scalars = 1, .scalars = &zero};        /* nothing follows it: not all that is earlier comes before */
        sink->submit(sink, &free_one);
        pto_task use = {.n_args = i > 0, .args = &read, .n_scalars = 1, .scalars = &zero, .n_order = 1, .order = &end[1], .stream = 1};
        end[1] = sink->submit(sink, &use);
    }
    return sink->status;
}

static void large_pipelines_are_checked_to_the_end(void)
{
    pto_pool *pool = pto_pool_new(1);
    pto_sanitizer *sanitizer = sanitizer_of(0xff);
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
    pto_execute_result result;
    pto_bindings bindings = {0};
    pto_run_options options = {.orchestrate = orchestrate_ladder, .bindings = &bindings, .kernels = kernels, .n_kernels = 1,
                               .execute = {.order_seed = 5, .sanitizer = sanitizer}};
    rows = 50000;
    CHECK_EQ(pto_run(pool, record, &options, &result), PTO_OK);
    pto_sanitizer_report report;
    pto_sanitizer_read(sanitizer, &report);
    CHECK_EQ(report.n_pairs, rows - 1);
    CHECK_EQ(report.n_races + report.n_unchecked, 0);
    pto_record_free(record);
    pto_sanitizer_free(sanitizer);
    pto_pool_free(pool);
}

static void a_sanitized_run_needs_an_order_and_an_orchestrator(void)
{
    pto_pool *pool = pto_pool_new(1);
    pto_sanitizer *sanitizer = sanitizer_of(0xff);
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
    program = (drawn){.n_cells = 1, .structure = true};
    program_state = 3;
    CHECK_EQ(run(pool, record, sanitizer, 0), PTO_E_ARGUMENT);
    CHECK_EQ(run(NULL, record, sanitizer, 1), PTO_E_ARGUMENT);
    pto_execute_result result;
    pto_run_options options = {.kernels = kernels, .n_kernels = 1, .execute = {.order_seed = 1, .sanitizer = sanitizer}};
    CHECK_EQ(pto_run(pool, record, &options, &result), PTO_E_ARGUMENT);
    pto_record_free(record);
    pto_sanitizer_free(sanitizer);
    pto_sanitizer_free(NULL);
    pto_pool_free(pool);
}

int main(void)
{
    static const check_test tests[] = {
        TEST(races_are_those_of_brute_force),
        TEST(races_across_chunks_are_found),
        TEST(the_same_seed_gives_the_order_of_a_plain_program),
        TEST(large_programs_are_checked_to_the_end),
        TEST(large_pipelines_are_checked_to_the_end),
        TEST(a_sanitized_run_needs_an_order_and_an_orchestrator),
    };
    return RUN_TESTS(tests);
}
