/* test_deps.c: edges of a record against a record kept byte by byte: who wrote it last, who has read it since. */
#include "check.h"

enum { ARENA = 1 << 12, MAX_TASKS = 96, MAX_ARGS = 3 };

static char arena[ARENA];

typedef struct bytes {
    uint8_t in[ARENA];
} bytes;

typedef struct stream {
    int32_t n;
    int32_t n_args[MAX_TASKS];
    pto_arg args[MAX_TASKS][MAX_ARGS];
} stream;

static void bytes_of(const pto_arg *arg, bytes *out)
{
    memset(out, 0, sizeof *out);
    for (int64_t i = 0; i < arg->extent[0]; i++)
        for (int64_t j = 0; j < arg->extent[1]; j++)
            memset(out->in + (arg->data - arena) + (i * arg->stride[0] + j * arg->stride[1]) * arg->elem_bytes, 1,
                   (size_t)arg->elem_bytes);
}

static bool meets(const pto_arg *a, const pto_arg *b)
{
    static bytes x, y;
    if (a->buffer != b->buffer)
        return false;
    bytes_of(a, &x);
    bytes_of(b, &y);
    for (int32_t i = 0; i < ARENA; i++)
        if (x.in[i] && y.in[i])
            return true;
    return false;
}

static int32_t conflicts(const pto_arg *earlier, const pto_arg *later)
{
    int32_t why = 0;
    if (later->flags & PTO_READ && earlier->flags & PTO_WRITE)
        why |= PTO_EDGE_RAW;
    if (later->flags & PTO_WRITE && earlier->flags & PTO_READ)
        why |= PTO_EDGE_WAR;
    if (later->flags & PTO_WRITE && earlier->flags & PTO_WRITE)
        why |= PTO_EDGE_WAW;
    return why != 0 && meets(earlier, later) ? why : 0;
}

static pto_record *record_of(const stream *s, int64_t *nodes)
{
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
    pto_sink *sink = pto_record_sink(record);
    for (int32_t t = 0; t < s->n; t++) {
        pto_task task = {.cost = 1, .n_args = s->n_args[t], .args = s->args[t]};
        nodes[t] = sink->submit(sink, &task);
    }
    CHECK_EQ(sink->status, PTO_OK);
    return record;
}

/* reaches[a][b]: a path of edges leads from task a to task b. */
static bool expected[MAX_TASKS][MAX_TASKS], found[MAX_TASKS][MAX_TASKS];

static void close_over(bool reaches[MAX_TASKS][MAX_TASKS], int32_t n)
{
    for (int32_t b = 0; b < n; b++)
        for (int32_t a = b - 1; a >= 0; a--)
            if (reaches[a][b])
                for (int32_t z = 0; z < a; z++)
                    reaches[z][b] |= reaches[z][a];
}

static void expect_by_bytes(const stream *s)
{
    static int32_t writer[2][ARENA];
    static bool reads[2][ARENA][MAX_TASKS];
    static bytes set;
    memset(expected, 0, sizeof expected);
    memset(writer, 0xff, sizeof writer);
    memset(reads, 0, sizeof reads);
    for (int32_t t = 0; t < s->n; t++) {
        for (int32_t pass = PTO_READ; pass <= PTO_WRITE; pass++)
            for (int32_t a = 0; a < s->n_args[t]; a++) {
                const pto_arg *arg = &s->args[t][a];
                if (!(arg->flags & pass))
                    continue;
                bytes_of(arg, &set);
                for (int32_t i = 0; i < ARENA; i++) {
                    if (!set.in[i])
                        continue;
                    int32_t last = writer[arg->buffer][i];
                    if (last >= 0 && last != t)
                        expected[last][t] = true;
                    bool *readers = reads[arg->buffer][i];
                    if (pass == PTO_READ) {
                        readers[t] = true;
                        continue;
                    }
                    for (int32_t r = 0; r < t; r++)
                        expected[r][t] |= readers[r];
                    memset(readers, 0, sizeof reads[0][0]);
                    writer[arg->buffer][i] = t;
                }
            }
    }
    close_over(expected, s->n);
}

static void check_stream(const stream *s)
{
    int64_t nodes[MAX_TASKS];
    pto_record *record = record_of(s, nodes);
    pto_columns c;
    pto_record_columns(record, &c);
    memset(found, 0, sizeof found);
    for (int32_t t = 0; t < s->n; t++) {
        int64_t before = -1;
        CHECK_EQ(nodes[t], t);
        for (int64_t e = c.pred_begin[t]; e < c.pred_begin[t + 1]; e++) {
            int64_t src = c.edge_src[e];
            int32_t why = 0, pair = c.edge_arg[e];
            CHECK(src > before && src < t);
            before = src;
            found[src][t] = true;
            for (int32_t a = 0; a < s->n_args[src]; a++)
                for (int32_t b = 0; b < s->n_args[t]; b++)
                    why |= conflicts(&s->args[src][a], &s->args[t][b]);
            CHECK(c.edge_why[e] != 0 && (c.edge_why[e] & ~why) == 0);
            CHECK(conflicts(&s->args[src][pair >> 16], &s->args[t][pair & 0xffff]) != 0);
        }
    }
    close_over(found, s->n);
    expect_by_bytes(s);
    for (int32_t a = 0; a < s->n; a++)
        for (int32_t b = a + 1; b < s->n; b++)
            CHECK_EQ(found[a][b], expected[a][b]);
    pto_record_free(record);
}

static int32_t random_flags(void)
{
    int64_t kind = pick(0, 9);
    return kind < 5 ? PTO_READ : kind < 8 ? PTO_WRITE : PTO_READ | PTO_WRITE;
}

/* Tiles of matrices of a few pitches, with whole rows, columns and odd pieces among them. */
static pto_arg random_tile(void)
{
    static const int64_t pitches[] = {8, 16, 24, 16};
    static const int32_t sizes[] = {1, 2, 4};
    int64_t pitch = pitches[pick(0, 3)], rows = pick(0, 4), cols = pick(0, pick(0, 1) ? pitch : 4);
    int32_t size = sizes[pick(0, 2)];
    pto_arg arg = {.extent = {rows, cols}, .stride = {pitch, 1}, .elem_bytes = size, .flags = random_flags(),
                   .buffer = (int32_t)(pick(0, 3) == 0)};
    int64_t row = pick(0, 6), col = pick(0, pitch - 1);
    arg.data = arena + 1024 + (row * pitch + col) * size;
    if (pick(0, 7) == 0)
        arg.stride[1] = pick(-2, 3);
    if (pick(0, 7) == 0)
        arg.stride[0] = pick(-2, 2) * pitch;
    if (pick(0, 9) == 0)
        arg.data += pick(0, 3);
    return arg;
}

/* A grid of aligned tiles, as most programs have: here regions are found equal, renewed and covered. */
static pto_arg random_grid_tile(void)
{
    int64_t size = (int64_t)1 << pick(0, 3), pitch = 16;
    pto_arg arg = {.extent = {size, size}, .stride = {pitch, 1}, .elem_bytes = 4, .flags = random_flags()};
    arg.data = arena + 1024 + (pick(0, 15) / size * size * pitch + pick(0, 15) / size * size) * 4;
    return arg;
}

/* One shape on one grid, but for a few tiles that lie between, past the end of a row, or are shorter. */
static pto_arg random_tile_of_one_shape(void)
{
    int64_t pitch = 18, row = 4 * pick(0, 3) + 1, col = 4 * pick(0, 4);   /* tiles of the last column go on in the next row */
    int64_t kind = pick(0, 30);
    pto_arg arg = {.extent = {4, 4}, .stride = {pitch, 1}, .elem_bytes = 4, .flags = random_flags()};
    row += kind == 0 ? pick(1, 3) : 0;
    col += kind == 1 ? pick(1, 3) : 0;
    arg.extent[0] -= kind == 2;
    arg.extent[1] -= kind == 3;
    arg.data = arena + 1024 - (uintptr_t)(arena + 1024) % (uintptr_t)(pitch * 4) + (row * pitch + col) * 4;    /* rows as the map counts */
    return arg;
}

/* The same of rows without gaps. */
static pto_arg random_piece_of_one_length(void)
{
    int64_t at = 8 * pick(0, 9) + (pick(0, 30) == 0 ? pick(1, 7) : 0);
    return (pto_arg){.data = arena + 1024 + at * 4, .extent = {1, pick(0, 30) == 0 ? 7 : 8}, .stride = {8, 1}, .elem_bytes = 4,
                     .flags = random_flags()};
}

/* Combs: every column or every other one, so that strides nest and one covers another only sometimes. */
static pto_arg random_comb(void)
{
    int64_t step = pick(1, 2), pitch = 12;
    pto_arg arg = {.extent = {pick(1, 3), pick(1, 5)}, .stride = {pitch, step}, .elem_bytes = 4, .flags = random_flags()};
    arg.data = arena + 1024 + (pick(0, 2) * pitch + pick(0, 4)) * 4;
    return arg;
}

static void check_random(pto_arg (*draw)(void), int64_t cases)
{
    static stream s;
    for (int64_t i = 0; i < cases; i++) {
        s.n = (int32_t)pick(1, MAX_TASKS);
        for (int32_t t = 0; t < s.n; t++) {
            s.n_args[t] = (int32_t)pick(0, MAX_ARGS);
            for (int32_t a = 0; a < s.n_args[t]; a++)
                s.args[t][a] = draw();
            write_apart(s.args[t], s.n_args[t]);
        }
        check_stream(&s);
    }
}

static void random_tiles_agree_with_bytes(void)
{
    check_random(random_tile, CASES(300));
}

static void grid_tiles_agree_with_bytes(void)
{
    check_random(random_grid_tile, CASES(300));
}

static void tiles_of_one_shape_agree_with_bytes(void)
{
    check_random(random_tile_of_one_shape, CASES(600));
    check_random(random_piece_of_one_length, CASES(600));
}

static void combs_agree_with_bytes(void)
{
    check_random(random_comb, CASES(300));
}

static pto_arg row_of(int64_t row, int32_t flags)
{
    return (pto_arg){.data = arena + 64 * row, .extent = {1, 16}, .stride = {16, 1}, .elem_bytes = 4, .flags = flags};
}

static int64_t submit(pto_sink *sink, const pto_arg *args, int32_t n)
{
    pto_task task = {.cost = 1, .n_args = n, .args = args};
    return sink->submit(sink, &task);
}

static void write_after_many_reads_waits_for_all(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
    pto_sink *sink = pto_record_sink(record);
    pto_arg read = row_of(0, PTO_READ), write = row_of(0, PTO_WRITE);
    for (int32_t i = 0; i < 1000; i++)
        submit(sink, &read, 1);
    submit(sink, &write, 1);
    submit(sink, &read, 1);
    pto_columns c;
    pto_record_columns(record, &c);
    CHECK_EQ(c.pred_begin[1000], 0);
    CHECK_EQ(c.pred_begin[1001], 1000);
    for (int64_t e = 0; e < 1000; e++)
        CHECK(c.edge_src[e] == e && c.edge_why[e] == PTO_EDGE_WAR);
    CHECK_EQ(c.n_edges, 1001);      /* the readers are gone: the last read waits for the write alone */
    CHECK_EQ(c.edge_why[1000], PTO_EDGE_RAW);
    pto_record_free(record);
}

static void reasons_of_one_edge_merge(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
    pto_sink *sink = pto_record_sink(record);
    pto_arg both = row_of(0, PTO_READ | PTO_WRITE);
    int64_t first = submit(sink, &both, 1);
    pto_task task = {.n_args = 1, .args = &both, .n_order = 2, .order = (int64_t[]){-1, first}, .n_after = 1,
                     .after = &first};
    sink->submit(sink, &task);
    pto_columns c;
    pto_record_columns(record, &c);
    CHECK_EQ(c.n_edges, 1);
    CHECK_EQ(c.edge_why[0],
             PTO_EDGE_RAW | PTO_EDGE_WAR | PTO_EDGE_WAW | PTO_EDGE_ORDER | PTO_EDGE_AFTER);
    CHECK_EQ(c.edge_arg[0], 0);
    pto_record_free(record);
}

static void without_inference_only_named_edges_stay(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 0});
    pto_sink *sink = pto_record_sink(record);
    pto_arg write = row_of(0, PTO_WRITE);
    submit(sink, &write, 1);
    submit(sink, &write, 1);
    pto_columns c;
    pto_record_columns(record, &c);
    CHECK_EQ(c.n_edges, 0);
    pto_record_free(record);
}

static void a_task_of_a_lane_waits_for_the_one_before_it_and_for_what_it_names(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.keep = PTO_KEEP_LANE});
    pto_sink *sink = pto_record_sink(record);
    int64_t first = submit(sink, NULL, 0);
    for (int32_t i = 0; i < 2; i++) {
        pto_task task = {.n_order = 1, .order = &first, .lane = 7};
        sink->submit(sink, &task);
    }
    pto_columns c;
    pto_record_columns(record, &c);
    CHECK_EQ(c.n_edges, 3);
    CHECK_EQ(c.edge_src[2], 1);
    CHECK_EQ(c.edge_why[2], PTO_EDGE_LANE);
    pto_record_free(record);
}

/* Of a task that names nodes, in records that infer and that do not. */
static void check_named(int64_t n, const int64_t *order, int64_t n_edges, const int64_t *expected)
{
    for (int32_t infer = 0; infer < 2; infer++) {
        pto_record *record = pto_record_new(&(pto_record_options){.infer = infer});
        pto_sink *sink = pto_record_sink(record);
        for (int64_t i = 0; i < 4; i++) {
            pto_task before = {.n_order = i > 0, .order = (int64_t[]){i - 1}};
            sink->submit(sink, &before);
        }
        pto_task task = {.n_order = (int32_t)n, .order = order};
        CHECK_EQ(sink->submit(sink, &task), 4);
        submit(sink, NULL, 0);
        pto_columns c;
        pto_record_columns(record, &c);
        CHECK_EQ(c.n_edges, 3 + n_edges);
        CHECK_EQ(c.pred_begin[4], 3);
        CHECK_EQ(c.pred_begin[5], 3 + n_edges);
        CHECK_EQ(c.pred_begin[6], 3 + n_edges);
        for (int64_t e = 0; e < n_edges; e++) {
            CHECK_EQ(c.edge_src[3 + e], expected[e]);
            CHECK_EQ(c.edge_why[3 + e], PTO_EDGE_ORDER);
            CHECK_EQ(c.edge_arg[3 + e], -1);
        }
        pto_record_free(record);
    }
}

static void named_edges_are_ascending_and_once_each(void)
{
    check_named(1, (int64_t[]){2}, 1, (int64_t[]){2});
    check_named(1, (int64_t[]){-1}, 0, NULL);
    check_named(2, (int64_t[]){1, 3}, 2, (int64_t[]){1, 3});
    check_named(2, (int64_t[]){3, 1}, 2, (int64_t[]){1, 3});
    check_named(2, (int64_t[]){2, 2}, 1, (int64_t[]){2});
    check_named(2, (int64_t[]){-1, 0}, 1, (int64_t[]){0});
    check_named(2, (int64_t[]){3, -1}, 1, (int64_t[]){3});
    check_named(4, (int64_t[]){3, 0, -1, 2}, 3, (int64_t[]){0, 2, 3});
}

static void a_node_named_as_order_and_as_after_is_one_edge(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 0});
    pto_sink *sink = pto_record_sink(record);
    int64_t first = submit(sink, NULL, 0);
    pto_task next = {.n_order = 1, .order = &first}, both = {.n_order = 1, .order = &first, .n_after = 1, .after = &first};
    sink->submit(sink, &next);
    sink->submit(sink, &both);
    pto_task late = {.n_order = 1, .order = (int64_t[]){3}};
    pto_columns c;
    pto_record_columns(record, &c);
    CHECK_EQ(c.n_edges, 2);
    CHECK_EQ(c.edge_why[1], PTO_EDGE_ORDER | PTO_EDGE_AFTER);
    CHECK_EQ(sink->submit(sink, &late), -1);           /* its own node */
    CHECK_EQ(sink->status, PTO_E_ARGUMENT);
    pto_record_free(record);
}

static void reads_that_overlap_own_writes_are_staged(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 0});
    pto_sink *sink = pto_record_sink(record);
    pto_arg args[4] = {row_of(0, PTO_READ), row_of(0, PTO_WRITE), row_of(1, PTO_READ | PTO_WRITE), row_of(0, PTO_READ)};
    args[3].buffer = 1;
    submit(sink, args, 4);
    pto_columns c;
    pto_record_columns(record, &c);
    CHECK_EQ(c.args[0].flags, PTO_READ | PTO_STAGE);
    CHECK_EQ(c.args[1].flags, PTO_WRITE);
    CHECK_EQ(c.args[2].flags, PTO_READ | PTO_WRITE);
    CHECK_EQ(c.args[3].flags, PTO_READ);
    pto_record_free(record);
}

static void joins_nest_and_may_be_open_together(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){0});
    pto_sink *sink = pto_record_sink(record);
    for (int32_t round = 0; round < 3; round++) {
        pto_record_reset(record);
        int64_t a = submit(sink, NULL, 0), b = submit(sink, NULL, 0);
        int64_t outer = sink->join_open(sink), inner = sink->join_open(sink), other = sink->join_open(sink);
        CHECK_EQ(sink->join_add(sink, inner, b), PTO_OK);
        CHECK_EQ(sink->join_add(sink, inner, a), PTO_OK);
        CHECK_EQ(sink->join_add(sink, inner, b), PTO_OK);
        CHECK_EQ(sink->join_add(sink, other, b), PTO_OK);
        CHECK_EQ(sink->join_add(sink, other, b), PTO_OK);
        int64_t joined = sink->join_close(sink, inner, -1);
        CHECK_EQ(joined, 2);
        CHECK_EQ(sink->join_close(sink, other, -1), b);
        int64_t none = sink->join_open(sink);
        CHECK_EQ(sink->join_close(sink, none, -1), -1);
        sink->join_add(sink, outer, joined);
        sink->join_add(sink, outer, -1);
        int64_t c3 = submit(sink, NULL, 0);
        sink->join_add(sink, outer, c3);
        CHECK_EQ(sink->join_close(sink, outer, -1), 4);
        pto_columns c;
        pto_record_columns(record, &c);
        CHECK_EQ(c.n_nodes, 5);
        CHECK_EQ(c.n_tasks, 3);
        CHECK_EQ(c.node_kind[2], PTO_NODE_JOIN);
        CHECK_EQ(c.node_task[2], -1);
        CHECK_EQ(c.pred_begin[3] - c.pred_begin[2], 2);
        CHECK(c.edge_src[0] == a && c.edge_src[1] == b && c.edge_why[0] == PTO_EDGE_ORDER && c.edge_arg[0] == -1);
        CHECK_EQ(c.edge_src[c.pred_begin[4]], 2);
        CHECK_EQ(c.edge_src[c.pred_begin[4] + 1], 3);
        CHECK_EQ(sink->status, PTO_OK);
    }
    CHECK_EQ(sink->join_close(sink, 77, 0), -1);
    CHECK_EQ(sink->status, PTO_E_ARGUMENT);
    pto_record_free(record);
}

static void wrong_tasks_are_refused(void)
{
    pto_task wrong[] = {{.kernel = -1}, {.cost = -1}, {.worker = -1}, {.n_args = PTO_MAX_ARGS + 1},
                        {.n_scalars = PTO_MAX_SCALARS + 1}, {.n_order = 1, .order = (int64_t[]){0}},
                        {.n_order = 1, .order = (int64_t[]){-2}}, {.n_order = 2, .order = (int64_t[]){-1, 0}},
                        {.n_order = 2, .order = (int64_t[]){-2, -1}}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pto_record *record = pto_record_new(&(pto_record_options){0});
        pto_sink *sink = pto_record_sink(record);
        CHECK_EQ(sink->submit(sink, &wrong[i]), -1);
        CHECK_EQ(sink->status, PTO_E_ARGUMENT);
        CHECK_EQ(submit(sink, NULL, 0), -1);
        pto_record_free(record);
    }
}

static void a_full_record_without_a_run_is_an_error(void)
{
    pto_record *record = pto_record_new(&(pto_record_options){.max_tasks = 2});
    pto_sink *sink = pto_record_sink(record);
    CHECK_EQ(submit(sink, NULL, 0), 0);
    CHECK_EQ(submit(sink, NULL, 0), 1);
    CHECK_EQ(submit(sink, NULL, 0), -1);
    CHECK_EQ(sink->status, PTO_E_NOMEM);
    pto_record_free(record);
}

static void groups_share_nothing(void)
{
    enum { GROUPS = 200 };
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
    pto_sink *sink = pto_record_sink(record);
    for (int32_t i = 0; i < 2 * GROUPS; i++) {
        pto_arg write = row_of(0, PTO_WRITE);
        write.buffer = i % GROUPS - 7;
        submit(sink, &write, 1);
    }
    pto_columns c;
    pto_record_columns(record, &c);
    CHECK_EQ(c.n_edges, GROUPS);
    for (int64_t i = 0; i < GROUPS; i++)
        CHECK_EQ(c.edge_src[i], i);
    pto_record_free(record);
}

/* Would take minutes if tiles of one row met each other, or readers each other. */
static void many_tiles_take_no_quadratic_time(void)
{
    int64_t side = CASES(300), pitch = side * 8;
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
    pto_sink *sink = pto_record_sink(record);
    for (int64_t step = 0; step < 2; step++)
        for (int64_t i = 0; i < side * side; i++) {
            pto_arg args[3] = {{.extent = {8, 8}, .stride = {pitch, 1}, .elem_bytes = 4, .flags = PTO_READ | PTO_WRITE},
                               {.extent = {64, 64}, .stride = {64, 1}, .elem_bytes = 4, .flags = PTO_READ,
                                .data = (char *)4096, .buffer = 1},
                               {.extent = {1, 16}, .stride = {16, 1}, .elem_bytes = 4, .flags = PTO_WRITE, .buffer = 2,
                                .data = (char *)(4096 + i * 64)}};
            args[0].data = (char *)((1 << 20) + (i / side * 8 * pitch + i % side * 8) * 4);
            submit(sink, args, 3);
        }
    pto_columns c;
    pto_record_columns(record, &c);
    CHECK_EQ(c.n_edges, side * side);
    for (int64_t i = 0; i < side * side; i++)
        CHECK_EQ(c.edge_src[i], i);
    pto_record_free(record);
}

int main(void)
{
    static const check_test tests[] = {
        TEST(random_tiles_agree_with_bytes), TEST(grid_tiles_agree_with_bytes),
        TEST(tiles_of_one_shape_agree_with_bytes), TEST(combs_agree_with_bytes), TEST(groups_share_nothing),
        TEST(write_after_many_reads_waits_for_all), TEST(reasons_of_one_edge_merge),
        TEST(without_inference_only_named_edges_stay), TEST(named_edges_are_ascending_and_once_each),
        TEST(a_node_named_as_order_and_as_after_is_one_edge),
        TEST(a_task_of_a_lane_waits_for_the_one_before_it_and_for_what_it_names),
        TEST(reads_that_overlap_own_writes_are_staged),
        TEST(joins_nest_and_may_be_open_together), TEST(wrong_tasks_are_refused),
        TEST(a_full_record_without_a_run_is_an_error), TEST(many_tiles_take_no_quadratic_time)};
    return RUN_TESTS(tests);
}
