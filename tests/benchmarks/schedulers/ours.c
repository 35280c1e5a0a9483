/* ours.c: the runtime library as an orchestrator and a run use it.

   The orchestrators are written as generated ones are.
   build: the record of tasks that name their predecessors, as loops of an explicit order do. inferred: the same edges found from
   regions, each task writing a tile of 64 x 64 and reading those of its predecessors. all: making the record anew and running it, which
   finds the successors first. run: executing the record again, as a later run with the same bindings does. */
#include "graphs.h"
#include "pto_orchestrator.h"

enum { TILE = 64, PITCH = SIDE * TILE };

static int32_t entry(const pto_arg *args, const int64_t *scalars, char *scratch, pto_context *context)
{
    (void)args, (void)scratch, (void)context;
    body(scalars[0]);
    return 0;
}

static const pto_kernel kernel = {entry, 0};

static int64_t nodes[N_TASKS];

static PTO_ORCHESTRATOR int32_t by_order(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    for (int64_t i = 0; i < N_TASKS; i++) {
        int64_t order[2];
        int32_t n_order = 0;
        if (first[i] >= 0)
            order[n_order++] = nodes[first[i]];
        if (second[i] >= 0)
            order[n_order++] = nodes[second[i]];
        pto_task task = {.worker = i & 1, .cost = 1, .n_scalars = 1, .scalars = &i, .n_order = n_order, .order = order};
        nodes[i] = sink->submit(sink, &task);
    }
    return sink->status;
}

static void tile(pto_arg *arg, int64_t i, int32_t flags)
{
    static const pto_tensor tensor = {.data = (char *)((intptr_t)1 << 40)};            /* never touched */
    pto_bind(arg, &tensor, i / SIDE * TILE * PITCH + i % SIDE * TILE, TILE, TILE, PITCH, 1, flags, 4);
}

static PTO_ORCHESTRATOR int32_t by_regions(const pto_bindings *bindings, pto_sink *sink)
{
    (void)bindings;
    for (int64_t i = 0; i < N_TASKS; i++) {
        pto_arg args[3];
        int32_t n_args = 0;
        if (first[i] >= 0)
            tile(&args[n_args++], first[i], PTO_READ);
        if (second[i] >= 0)
            tile(&args[n_args++], second[i], PTO_READ);
        tile(&args[n_args++], i, PTO_WRITE);
        pto_task task = {.worker = i & 1, .cost = 1, .n_args = n_args, .args = args, .n_scalars = 1, .scalars = &i};
        sink->submit(sink, &task);
    }
    return sink->status;
}

static void must(int32_t status)
{
    if (status != PTO_OK) {
        fprintf(stderr, "status %d\n", status);
        exit(1);
    }
}

static double build(pto_record *record, pto_orchestrate_fn orchestrate)
{
    double begin = now_ns();
    pto_record_reset(record);
    must(orchestrate(NULL, pto_record_sink(record)));
    return now_ns() - begin;
}

static double run(pto_pool *pool, pto_record *record, pto_orchestrate_fn orchestrate)
{
    pto_run_options options = {.orchestrate = orchestrate, .kernels = &kernel, .n_kernels = 1};
    pto_execute_result result;
    double begin = now_ns();
    must(pto_run(pool, record, &options, &result));
    double ns = now_ns() - begin;
    if (result.n_run != N_TASKS)
        exit(1);
    return ns;
}

static int64_t edges(pto_record *record)
{
    pto_columns columns;
    pto_record_columns(record, &columns);
    return columns.n_edges;
}

int main(int argc, char **argv)
{
    pto_pool *pool = pto_pool_new(argc > 1 ? atoi(argv[1]) : 2);
    pto_record *named = pto_record_new(&(pto_record_options){.infer = 0});
    pto_record *inferring = pto_record_new(&(pto_record_options){.infer = 1});
    for (int graph = 0; graph < N_GRAPHS; graph++) {
        double built = 1e30, inferred = 1e30, all = 1e30, again = 1e30;
        make_graph(graph);
        check_order = 1;
        for (int k = 0; k < N_CHECKED; k++) {
            run(pool, inferring, k == 0 ? by_regions : NULL);
            check_all(graph);
            run(pool, named, k == 0 ? by_order : NULL);
            check_all(graph);
        }
        if (edges(named) != edges(inferring)) {
            fprintf(stderr, "%s: other edges from regions\n", graph_names[graph]);
            return 1;
        }
        check_order = 0;
        for (int k = 0; k < N_TIMED; k++) {
            inferred = least(inferred, build(inferring, by_regions));
            built = least(built, build(named, by_order));
            all = least(all, run(pool, named, by_order));
            for (int i = 0; i < 3; i++)
                again = least(again, run(pool, named, NULL));
        }
        report(graph, "build", built);
        report(graph, "inferred", inferred);
        report(graph, "run", again);
        report(graph, "all", all);
    }
    pto_record_free(named);
    pto_record_free(inferring);
    pto_pool_free(pool);
    return 0;
}
