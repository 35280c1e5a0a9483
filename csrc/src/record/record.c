/* record.c: what an orchestrator submits becomes columns, with the edges between the nodes.

   A record with max_tasks > 0 keeps that many: before the next one it hands the kept tasks to on_full (pto_run executes
   them there) and drops them, counting on in absolute ids. Without on_full it ends with PTO_E_NOMEM. max_tasks <= 0 keeps
   all. After an error every sink function returns -1 and the first status stays. */
#include "record.h"

#include "marks.h"
#include "nodes.h"
#include "tasks.h"

const volatile int32_t pto_never_cancelled = 0;

/* ---- joins and guards ---- */

static int64_t join_open(pto_sink *sink)
{
    pto_record *r = (pto_record *)sink;
    if (sink->status != PTO_OK)
        return -1;
    int64_t join = pto_joins_open(&r->joins);
    return join < 0 ? pto_record_fail(r, PTO_E_NOMEM) : join;
}

/* A node of -1, what an empty join may have returned, adds nothing. */
static int32_t join_add(pto_sink *sink, int64_t join, int64_t node)
{
    pto_record *r = (pto_record *)sink;
    if (sink->status != PTO_OK)
        return sink->status;
    pto_join *open = pto_joins_get(&r->joins, join);
    if (open == NULL || node < -1 || node >= r->first_node + r->n_nodes) {
        pto_record_fail(r, PTO_E_ARGUMENT);
    } else if (node >= 0 && (open->n == 0 || open->nodes[open->n - 1] != node)) {
        if (PTO_RESERVE(open->nodes, open->capacity, open->n + 1))
            open->nodes[open->n++] = node;
        else
            pto_record_fail(r, PTO_E_NOMEM);
    }
    return sink->status;
}

static int64_t join_close(pto_sink *sink, int64_t join, int64_t empty)
{
    pto_record *r = (pto_record *)sink;
    if (sink->status != PTO_OK)
        return -1;
    pto_join *open = pto_joins_get(&r->joins, join);
    if (open == NULL)
        return pto_record_fail(r, PTO_E_ARGUMENT);
    pto_joins_close(&r->joins, join);
    if (open->n == 0)
        return empty;
    r->edges.n = 0;
    int32_t status = pto_record_add_named(r, open->nodes, open->n, PTO_EDGE_ORDER);
    if (status == PTO_OK && !pto_edges_merge(&r->edges))
        status = PTO_E_NOMEM;
    if (status != PTO_OK)
        return pto_record_fail(r, status);
    if (r->edges.n == 1)
        return r->edges.data[0].src;
    if (!pto_record_reserve_node(r))
        return pto_record_fail(r, PTO_E_NOMEM);
    return pto_record_append_node(r, PTO_NODE_JOIN, -1);
}

static int32_t fail_guard(pto_sink *sink, const pto_guard *guard)
{
    pto_record *r = (pto_record *)sink;
    if (!r->has_guard) {
        r->guard = *guard;
        r->has_guard = true;
    }
    pto_record_fail(r, PTO_E_GUARD);
    return PTO_E_GUARD;
}

/* ---- life ---- */

void pto_record_reset(pto_record *r)
{
    pto_record_drop(r);
    r->first_node = r->first_task = 0;
    r->has_guard = false;
    r->n_stuck = r->clash.second_arg = 0;
    r->sink.status = PTO_OK;
    pto_arena_reset(&r->arena);
    pto_joins_reset(&r->joins);
    pto_lanes_reset(&r->lanes);
    if (r->deps != NULL)
        pto_deps_reset(r->deps);
}

pto_record *pto_record_new(const pto_record_options *options)
{
    pto_record *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    if (pthread_mutex_init(&r->graph_lock, NULL) != 0) {
        free(r);
        return NULL;
    }
    r->sink = (pto_sink){pto_sink_task, join_open, join_add, join_close, fail_guard, pto_sink_mark, pto_sink_fresh,
                         pto_sink_release, pto_sink_stuck, &pto_never_cancelled, PTO_OK, 0};
    r->options = *options;
    pto_arena_init(&r->arena, options->arena_bytes > 0 ? options->arena_bytes : PTO_ARENA_BYTES, options->poison != 0);
    r->shapes = calloc(PTO_SHAPE_SETS * PTO_MAX_ARGS, sizeof *r->shapes);
    if (options->infer)
        r->deps = pto_deps_new(pto_record_prunes(options));
    if (r->shapes == NULL || (options->infer && r->deps == NULL) || !pto_record_grow_tasks(r, 1) || !pto_record_grow_nodes(r, 1) ||
        !pto_record_grow_marks(r, 1)) {
        pto_record_free(r);
        return NULL;
    }
    r->pred_begin[0] = r->arg_begin[0] = r->scalar_begin[0] = r->index_begin[0] = 0;
    pto_record_reset(r);
    return r;
}

void pto_record_free(pto_record *r)
{
    if (r == NULL)
        return;
    pto_record_free_columns(r);
    free(r->stuck);
    free(r->gates);
    free(r->shapes);
    pto_lanes_free(&r->lanes);
    pto_edges_free(&r->edges);
    pto_joins_free(&r->joins);
    pto_deps_free(r->deps);
    pto_arena_free(&r->arena);
    pto_graph_free(&r->graph);
    pthread_mutex_destroy(&r->graph_lock);
    free(r);
}

pto_sink *pto_record_sink(pto_record *r)
{
    return &r->sink;
}

int32_t pto_record_stuck(const pto_record *r, const pto_stuck **out)
{
    *out = r->stuck;
    return (int32_t)r->n_stuck;
}

const pto_guard *pto_record_guard(const pto_record *r)
{
    return r->has_guard ? &r->guard : NULL;
}

const pto_clash *pto_record_clash(const pto_record *r)
{
    return r->clash.second_arg > 0 ? &r->clash : NULL;
}

void pto_record_memory(const pto_record *r, pto_memory *out)
{
    *out = (pto_memory){r->arena.peak_bytes, r->arena.held_bytes, r->n_gates};
}

/* The cache is not part of what a caller sees change, so a record that is const to the engine may fill it. */
int32_t pto_record_graph(const pto_record *record, int64_t begin, const pto_graph **out)
{
    pto_record *r = (pto_record *)(uintptr_t)record;
    int32_t status = PTO_OK;
    pthread_mutex_lock(&r->graph_lock);
    if (!r->graph.valid || r->graph.begin != begin) {
        pto_columns columns;
        pto_record_columns(r, &columns);
        status = pto_graph_build(&r->graph, &columns, r->gates, r->n_gates, begin);
        r->graph.valid = status == PTO_OK;
    }
    pthread_mutex_unlock(&r->graph_lock);
    *out = &r->graph;
    return status;
}
