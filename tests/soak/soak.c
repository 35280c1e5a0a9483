/* soak.c: one run of very many tasks: made, executed, simulated and dropped, with tensors of their own, checked at the end.

   soak TASKS THREADS prints the largest resident memory in KiB ten times, each after another tenth of the tasks. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "pto_wsp.h"

enum { CELLS = 64, WIDTH = 32, WINDOW = 128, KEPT = 1 << 16 };

static uint64_t cells[CELLS];
static int64_t n_iterations;

/* all of the tensor is the cell times 3, and the scalar */
static int32_t spread(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scratch, (void)context;
    for (int64_t i = 0; i < WIDTH; i++)
        ((uint64_t *)args[1].data)[i] = *(uint64_t *)args[0].data * 3 + (uint64_t)scalars[0];
    return 0;
}

/* the cell is the sum of the tensor */
static int32_t gather(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)scratch, (void)context, (void)scalars;
    uint64_t sum = 0;
    for (int64_t i = 0; i < WIDTH; i++)
        sum += ((uint64_t *)args[0].data)[i];
    *(uint64_t *)args[1].data = sum;
    return 0;
}

static void say_memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%ld\n", usage.ru_maxrss);
    fflush(stdout);
}

static int32_t orchestrate(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    for (int64_t i = 0; i < n_iterations && sink->status == PTO_OK; i++) {
        int64_t width = WIDTH, at = i % CELLS;
        pto_tensor t;
        if (sink->fresh(sink, &t, 8, 1, &width) != PTO_OK)
            break;
        pto_arg cell = {.data = (char *)&cells[at], .extent = {1, 1}, .stride = {1, 1}, .elem_bytes = 8};
        pto_arg made = {.data = t.data, .extent = {1, WIDTH}, .stride = {WIDTH, 1}, .elem_bytes = 8, .buffer = t.buffer};
        pto_arg first[2] = {cell, made}, second[2] = {made, cell};
        first[0].flags = second[0].flags = PTO_READ;
        first[1].flags = second[1].flags = PTO_WRITE;
        sink->submit(sink, &(pto_task){.kernel = 0, .worker = i & 1, .cost = 5, .n_args = 2, .args = first, .n_scalars = 1, .scalars = &at});
        sink->submit(sink, &(pto_task){.kernel = 1, .worker = i & 1, .cost = 7, .n_args = 2, .args = second});
        sink->release(sink, &t);
        if ((i + 1) % (n_iterations / 10) == 0)
            say_memory();
    }
    return sink->status;
}

int main(int argc, char **argv)
{
    static const pto_kernel kernels[] = {{spread, 0}, {gather, 0}};
    n_iterations = argc > 1 ? atoll(argv[1]) / 2 : 500000;
    pto_pool *pool = pto_pool_new(argc > 2 ? atoi(argv[2]) : 2);
    pto_record *record = pto_record_new(&(pto_record_options){.infer = 1, .window = WINDOW, .max_tasks = KEPT});
    pto_sim *sim = pto_sim_new(&(pto_sim_options){.n_workers = 2, .window = WINDOW});
    pto_run_options options = {.orchestrate = orchestrate, .kernels = kernels, .n_kernels = 2, .sim = sim};
    pto_execute_result result;
    pto_sim_result simulated;
    int32_t status = pto_run(pool, record, &options, &result);
    if (status == PTO_OK && result.n_run == n_iterations * 2)
        status = pto_sim_finish(sim, &simulated);
    for (int64_t at = 0; at < CELLS; at++) {
        uint64_t expected = 0;
        for (int64_t i = at; i < n_iterations; i += CELLS)
            expected = WIDTH * (expected * 3 + (uint64_t)at);
        if (cells[at] != expected)
            status = PTO_E_KERNEL;
    }
    pto_sim_free(sim);
    pto_record_free(record);
    pto_pool_free(pool);
    if (status != PTO_OK)
        fprintf(stderr, "status %d after %lld tasks\n", status, (long long)result.n_run);
    return status != PTO_OK;
}
