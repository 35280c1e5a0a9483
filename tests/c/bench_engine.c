/* bench_engine.c: what the runtime library costs itself, with kernels that do nothing.

   Built like the tests, not run by run.sh:
   cc -std=gnu11 -O3 -pthread -I csrc/include tests/c/bench_engine.c $(find csrc/src -name "*.c") -o bench && ./bench [threads] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pto_wsp.h"

enum { N = 1 << 20, SIDE = 1024, TILE = 64, REPEATS = 5 };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int32_t nothing(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scalars, (void)scratch, (void)context;
    return 0;
}

static uint64_t random_state = 1;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static int64_t submit(pto_sink *sink, const pto_arg *args, int32_t n_args, const int64_t *order, int32_t n_order,
                      int64_t worker)
{
    pto_task task = {.worker = worker, .cost = 10, .n_args = n_args, .args = args, .n_order = n_order, .order = order};
    return sink->submit(sink, &task);
}

/* ---- graphs by named edges ---- */

static void independent(pto_sink *sink)
{
    for (int64_t i = 0; i < N; i++)
        submit(sink, NULL, 0, NULL, 0, i & 3);
}

static void chain(pto_sink *sink)
{
    int64_t last = -1;
    for (int64_t i = 0; i < N; i++)
        last = submit(sink, NULL, 0, &last, 1, i & 3);
}

static void wavefront(pto_sink *sink)
{
    for (int64_t i = 0; i < N; i++) {
        int64_t order[2] = {i % SIDE ? i - 1 : -1, i >= SIDE ? i - SIDE : -1};
        submit(sink, NULL, 0, order, 2, i & 3);
    }
}

static void random_dag(pto_sink *sink)
{
    for (int64_t i = 0; i < N; i++) {
        int64_t order[3] = {-1, -1, -1};
        for (int32_t k = 0; k < 3 && i > 0; k++)
            order[k] = i - 1 - (int64_t)(next_random() % (uint64_t)(i < 4096 ? i : 4096));
        submit(sink, NULL, 0, order, 3, i & 3);
    }
}

/* ---- graphs by regions: addresses are never touched ---- */

static pto_arg tile(int64_t row, int64_t col, int64_t rows, int64_t cols, int64_t pitch, int32_t flags)
{
    return (pto_arg){.data = (char *)((1 << 30) + (row * pitch + col) * 4), .extent = {rows, cols},
                     .stride = {pitch, 1}, .flags = flags, .elem_bytes = 4};
}

static void rows_in_place(pto_sink *sink)
{
    for (int64_t i = 0; i < N; i++) {
        pto_arg args[1] = {tile(i % (N / 4), 0, 1, 1024, 1024, PTO_READ | PTO_WRITE)};
        submit(sink, args, 1, NULL, 0, i & 3);
    }
}

static void tiles_read_and_write(pto_sink *sink)
{
    for (int64_t i = 0; i < N; i++) {
        int64_t at = i % (N / 2), r = at / (SIDE / 2) * TILE, c = at % (SIDE / 2) * TILE;
        pto_arg args[2] = {tile(r, c, TILE, TILE, SIDE / 2 * TILE, PTO_READ),
                           tile(r, c, TILE, TILE, SIDE / 2 * TILE, PTO_WRITE)};
        args[1].buffer = 1;
        submit(sink, args, 2, NULL, 0, i & 3);
    }
}

static void tiles_and_shared_weights(pto_sink *sink)
{
    for (int64_t i = 0; i < N; i++) {
        pto_arg args[3] = {tile(i, 0, 1, 256, 256, PTO_READ), tile(0, 0, 512, 512, 512, PTO_READ),
                           tile(i, 0, 1, 256, 256, PTO_WRITE)};
        args[1].buffer = 1;
        args[2].buffer = 2;
        submit(sink, args, 3, NULL, 0, i & 3);
    }
}

static void stencil_tiles(pto_sink *sink)
{
    for (int64_t step = 0; step < 4; step++)
        for (int64_t at = 0; at < N / 4; at++) {
            int64_t r = at / 512 * TILE + 1, c = at % 512 * TILE + 1, pitch = 512 * TILE + 2;
            pto_arg args[2] = {tile(r - 1, c - 1, TILE + 2, TILE + 2, pitch, PTO_READ),
                               tile(r, c, TILE, TILE, pitch, PTO_WRITE)};
            args[0].buffer = (int32_t)(step & 1);
            args[1].buffer = (int32_t)(~step & 1);
            submit(sink, args, 2, NULL, 0, at & 3);
        }
}

static double simulate(const pto_record *record, int64_t window)
{
    double begin = now_ns();
    pto_sim *sim = pto_sim_new(&(pto_sim_options){.n_workers = 4, .window = window});
    pto_sim_result result;
    if (pto_sim_feed(sim, record) != PTO_OK || pto_sim_finish(sim, &result) != PTO_OK)
        abort();
    pto_sim_free(sim);
    return 1e3 * N / (now_ns() - begin);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*build)(pto_sink *);
    } graphs[] = {{"independent", independent}, {"chain", chain}, {"wavefront", wavefront}, {"random DAG", random_dag},
                  {"rows in place", rows_in_place}, {"tiles", tiles_read_and_write},
                  {"shared weights", tiles_and_shared_weights}, {"stencil tiles", stencil_tiles}};
    pto_pool *pool = pto_pool_new(argc > 1 ? atoi(argv[1]) : 2);
    pto_kernel kernels[1] = {{nothing, 0}};
    printf("%-16s %10s %10s %10s %10s %14s %14s\n", "graph", "build ns", "rebuild ns", "first run", "best run",
           "sim M/s w=128", "sim M/s w=0");
    for (size_t g = 0; g < sizeof graphs / sizeof *graphs; g++) {
        pto_record *record = pto_record_new(&(pto_record_options){.infer = 1});
        double ns[2];
        for (int32_t i = 0; i < 2; i++) {
            pto_record_reset(record);
            double begin = now_ns();
            graphs[g].build(pto_record_sink(record));
            ns[i] = (now_ns() - begin) / N;
        }
        double first = 0, best = 1e30;
        for (int32_t i = 0; i <= REPEATS; i++) {
            pto_execute_result result;
            double begin = now_ns();
            if (pto_execute(pool, record, kernels, 1, &(pto_execute_options){0}, &result) != PTO_OK)
                abort();
            double run = (now_ns() - begin) / N;
            if (i == 0)
                first = run;
            else if (run < best)
                best = run;
        }
        printf("%-16s %10.1f %10.1f %10.1f %10.1f %14.1f %14.1f\n", graphs[g].name, ns[0], ns[1], first, best,
               simulate(record, 128), simulate(record, 0));
        fflush(stdout);
        pto_record_free(record);
    }
    pto_pool_free(pool);
    return 0;
}
