/* record.c: what an orchestrator submits becomes columns, with the edges between the nodes.

   A record with max_tasks > 0 keeps that many: before the next one it hands the kept tasks to on_full (pto_run executes
   them there) and drops them, counting on in absolute ids. Without on_full it ends with PTO_E_NOMEM. max_tasks <= 0 keeps
   all. After an error every sink function returns -1 and the first status stays. */
#include "../internal.h"

#define SHAPE_SETS 8           /* a power of two */

int64_t pto_record_fail(pto_record *r, int32_t status)
{
    if (r->sink.status == PTO_OK)
        r->sink.status = status;
    return -1;
}

/* ---- room ---- */

static inline bool reserve_node(pto_record *r)
{
    int64_t nodes = r->n_nodes + 2, edges = r->n_edges + r->edges.n;        /* one spare row for the closing begin */
    return (nodes <= r->nodes_capacity || pto_record_grow_nodes(r, nodes)) && (edges <= r->edges_capacity || pto_record_grow_edges(r, edges));
}

bool pto_record_reserve_node(pto_record *r)
{
    return reserve_node(r);
}

static inline bool reserve_task(pto_record *r, const pto_task *t)
{
    int64_t tasks = r->n_tasks + 2;    /* one spare row for the closing begins */
    int64_t args = r->n_args + t->n_args, scalars = r->n_scalars + t->n_scalars, index = r->n_index + t->n_index;
    return (tasks <= r->tasks_capacity || pto_record_grow_tasks(r, tasks)) && reserve_node(r) &&
           ((args <= r->args_capacity && scalars <= r->scalars_capacity && index <= r->index_capacity) ||
            pto_record_grow_values(r, args, scalars, index));
}

/* ---- nodes ---- */

/* Append a node whose predecessors are r->edges. Room for it has been made. */
static inline int64_t append_node(pto_record *r, uint8_t kind, int64_t task)
{
    const pto_edge *edge = r->edges.data, *end = edge + r->edges.n;
    int64_t at = r->n_nodes, row = r->n_edges;
    r->node_kind[at] = kind;
    r->node_task[at] = task;
    for (; edge < end; edge++, row++) {
        r->edge_src[row] = edge->src;
        r->edge_why[row] = edge->why;
        r->edge_arg[row] = edge->arg;
    }
    r->pred_begin[at + 1] = row;
    r->n_edges = row;
    r->n_nodes = at + 1;
    r->graph.valid = false;
    return r->first_node + at;
}

int64_t pto_record_append_node(pto_record *r, uint8_t kind, int64_t task)
{
    return append_node(r, kind, task);
}

/* Add structural predecessors; -1 entries are skipped. */
int32_t pto_record_add_named(pto_record *r, const int64_t *nodes, int64_t n, int32_t why)
{
    int64_t next = r->first_node + r->n_nodes;
    for (int64_t i = 0; i < n; i++) {
        if (nodes[i] == -1)
            continue;
        if (nodes[i] < 0 || nodes[i] >= next)
            return PTO_E_ARGUMENT;
        if (!pto_edges_add(&r->edges, nodes[i], why, -1))
            return PTO_E_NOMEM;
    }
    return PTO_OK;
}

static bool is_task_valid(const pto_task *t)
{
    return (t->kernel | t->n_order | t->n_after | t->stream) >= 0 && (t->cost | t->worker | t->lane | t->pool | t->bytes) >= 0 &&
           (uint32_t)t->n_args <= PTO_MAX_ARGS && (uint32_t)t->n_scalars <= PTO_MAX_SCALARS && (uint32_t)t->n_index <= PTO_MAX_INDEX;
}

/* A shape that was not the last one at its place may be that of the argument before it. */
static void find_shape(pto_record *r, pto_shape *set, int32_t i, const pto_arg *arg)
{
    if (i > 0 && pto_shape_is_of(&set[i - 1], arg)) {
        set[i] = set[i - 1];
        return;
    }
    set[i].id = ++r->n_shapes;
    pto_shape_find(&set[i], arg);
}

bool pto_record_shapes(pto_record *r, int32_t site, int32_t n_args, const pto_arg *args, const pto_shape **shapes)
{
    pto_shape *set = r->shapes + (size_t)(site & (SHAPE_SETS - 1)) * PTO_MAX_ARGS;
    for (int32_t i = 0; i < n_args; i++) {
        if (!pto_shape_is_of(&set[i], &args[i]))
            find_shape(r, set, i, &args[i]);
        if (!pto_shape_is_valid(&set[i], &args[i]))
            return false;
        shapes[i] = &set[i];
    }
    return true;
}

static bool overlap(const pto_arg *a, const pto_shape *shape_a, const pto_arg *b, const pto_shape *shape_b, int64_t max_steps)
{
    int64_t lo_a = pto_shape_lo(shape_a, a), lo_b = pto_shape_lo(shape_b, b);
    if (lo_a >= lo_b + shape_b->box.hi || lo_b >= lo_a + shape_a->box.hi || shape_a->state != PTO_BOX_OK || shape_b->state != PTO_BOX_OK)
        return false;
    pto_box box_a = pto_box_at(&shape_a->box, lo_a), box_b = pto_box_at(&shape_b->box, lo_b);
    return pto_box_overlap(&box_a, &box_b, max_steps);
}

/* Is there a pair of arguments that the task writes and that share an element? A pair whose strides take too many steps counts as one. */
static bool find_clash(pto_record *r, const pto_task *t, const pto_shape *const *shapes)
{
    for (int32_t second = 1; second < t->n_args; second++)
        for (int32_t first = 0; first < second && t->args[second].flags & PTO_WRITE; first++) {
            const pto_arg *a = &t->args[first], *b = &t->args[second];
            if (!(a->flags & PTO_WRITE) || a->buffer != b->buffer || !overlap(a, shapes[first], b, shapes[second], PTO_CLASH_STEPS))
                continue;
            r->clash = (pto_clash){.site = t->site, .first_arg = first, .second_arg = second, .n_index = t->n_index};
            for (int32_t i = 0; i < t->n_index; i++)
                r->clash.index[i] = t->index[i];
            return true;
        }
    return false;
}

/* A kernel that reads what another of its arguments writes must see the old values: it copies staged arguments first. */
static void mark_staged(pto_arg *args, const pto_shape *const *shapes, int32_t n)
{
    for (int32_t w = 0; w < n; w++) {
        if (!(args[w].flags & PTO_WRITE))
            continue;
        for (int32_t i = 0; i < n; i++)
            if (args[i].buffer == args[w].buffer && i != w && args[i].flags & PTO_READ &&
                overlap(&args[i], shapes[i], &args[w], shapes[w], PTO_OVERLAP_STEPS))
                args[i].flags |= PTO_STAGE;
    }
}

static bool prunes(const pto_record_options *options)
{
    return !options->forgets_nothing && options->window > 0 && options->window_unit == PTO_WINDOW_TASKS;
}

int32_t pto_record_hand_over(pto_record *r)
{
    if (r->on_full == NULL)
        return PTO_E_NOMEM;
    int32_t status = r->on_full(r, r->hook_user);
    if (status != PTO_OK)
        return status;
    pto_record_drop(r);
    if (r->deps != NULL && prunes(&r->options))
        pto_deps_prune(r->deps, r->first_task - r->options.window,
                       r->completed_node < r->first_node ? r->completed_node : r->first_node);
    return PTO_OK;
}

/* Most tasks of loops name one or two nodes and ask for no more: these edges go straight to where they stay, in order without a branch on
   which node is the later one. False, and nothing done, where there is something to sort out. */
static inline bool append_order(pto_record *r, const pto_task *t)
{
    int64_t row = r->n_edges, n = t->n_order, first = t->order[0], last = t->order[n - 1];
    int64_t lo = first < last ? first : last, hi = first < last ? last : first;
    if (n > 2 || lo < 0 || hi >= r->first_node + r->n_nodes || (n == 2 && lo == hi) || row + 2 > r->edges_capacity)
        return false;
    r->edge_src[row] = lo;
    r->edge_src[row + 1] = hi;
    r->edge_why[row] = r->edge_why[row + 1] = PTO_EDGE_ORDER;
    r->edge_arg[row] = r->edge_arg[row + 1] = -1;
    r->n_edges = row + n;
    return true;
}

/* Find what the task waits for: r->edges, merged, and perhaps edges that are appended already. */
static inline int32_t collect_edges(pto_record *r, const pto_task *t, const pto_shape *const *shapes)
{
    int64_t node = r->first_node + r->n_nodes;
    int32_t status = PTO_OK;
    r->edges.n = 0;
    if (r->deps == NULL && t->n_order > 0 && t->n_after == 0 && t->lane == 0 && append_order(r, t))
        return PTO_OK;
    if (r->deps != NULL)
        status = pto_deps_submit(r->deps, node, r->first_task + r->n_tasks, t->n_args, t->args, shapes, &r->edges);
    if (status == PTO_OK && t->n_order > 0)
        status = pto_record_add_named(r, t->order, t->n_order, PTO_EDGE_ORDER);
    if (status == PTO_OK && t->n_after > 0)
        status = pto_record_add_named(r, t->after, t->n_after, PTO_EDGE_AFTER);
    if (status == PTO_OK && t->lane != 0 && r->options.keep & PTO_KEEP_LANE) {
        int64_t before;
        if (!pto_lanes_enter(&r->lanes, t->lane, node, &before))
            return PTO_E_NOMEM;
        status = pto_record_add_named(r, &before, 1, PTO_EDGE_LANE);
    }
    if (status == PTO_OK && r->edges.n > 1 && !pto_edges_merge(&r->edges))
        status = PTO_E_NOMEM;
    return status;
}

/* What a task brings for its kernel and for people. */
static inline void copy_arguments(pto_record *r, const pto_task *t, const pto_shape *const *shapes, int64_t at)
{
    pto_arg *args = r->args + r->n_args;
    for (int32_t i = 0; i < t->n_args; i++)
        args[i] = t->args[i];
    mark_staged(args, shapes, t->n_args);
    for (int32_t i = 0; i < t->n_scalars; i++)
        r->scalars[r->n_scalars + i] = t->scalars[i];
    for (int32_t i = 0; i < t->n_index; i++)
        r->index[r->n_index + i] = t->index[i];
    r->arg_begin[at + 1] = r->n_args += t->n_args;
    r->scalar_begin[at + 1] = r->n_scalars += t->n_scalars;
    r->index_begin[at + 1] = r->n_index += t->n_index;
}

static void keep_columns(pto_record *r, const pto_task *t, int64_t at)
{
    const int64_t kept[PTO_N_KEPT] = {t->lane, t->pool, t->priority, t->position, t->bytes};
    for (int k = 0; k < PTO_N_KEPT; k++)
        if (r->kept[k] != NULL)
            r->kept[k][at] = kept[k];
}

static int64_t submit(pto_sink *sink, const pto_task *t)
{
    pto_record *r = (pto_record *)sink;
    if (sink->status != PTO_OK)
        return -1;
    if (!is_task_valid(t))
        return pto_record_fail(r, PTO_E_ARGUMENT);
    int32_t status = PTO_OK;
    if (r->options.max_tasks > 0 && r->n_tasks >= r->options.max_tasks)
        status = pto_record_hand_over(r);
    const pto_shape *shapes[PTO_MAX_ARGS];
    if (status == PTO_OK && t->n_args > 0 && !pto_record_shapes(r, t->site, t->n_args, t->args, shapes))
        status = PTO_E_ARGUMENT;
    if (status == PTO_OK)
        status = find_clash(r, t, shapes) ? PTO_E_OUTPUTS : collect_edges(r, t, shapes);
    if (status == PTO_OK && !reserve_task(r, t))
        status = PTO_E_NOMEM;
    if (status != PTO_OK)
        return pto_record_fail(r, status);

    int64_t at = r->n_tasks++;
    r->task_kernel[at] = t->kernel;
    r->task_site[at] = t->site;
    r->task_worker[at] = t->worker;
    r->task_cost[at] = t->cost;
    r->task_stream[at] = t->stream;
    if (r->options.keep != 0)
        keep_columns(r, t, at);
    copy_arguments(r, t, shapes, at);
    if (t->kernel > r->max_kernel)
        r->max_kernel = t->kernel;
    if (__builtin_add_overflow(r->total_cost, t->cost, &r->total_cost))
        r->total_cost = INT64_MAX;
    return r->task_node[at] = append_node(r, PTO_NODE_TASK, at);
}

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

/* Empty the columns; absolute ids go on from what is dropped. */
void pto_record_drop(pto_record *r)
{
    r->first_node += r->n_nodes;
    r->first_task += r->n_tasks;
    r->n_tasks = r->n_nodes = r->n_edges = r->n_marks = r->n_args = r->n_scalars = r->n_index = 0;
    r->done = (pto_done){0};
    r->total_cost = 0;
    r->max_kernel = -1;
    r->graph.valid = false;
    r->n_gates = 0;
    r->window_task = 0;
    pto_arena_drop(&r->arena);
}

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
    r->sink = (pto_sink){submit, join_open, join_add, join_close, fail_guard, pto_sink_mark, pto_sink_fresh,
                         pto_sink_release, pto_sink_stuck, &pto_never_cancelled, PTO_OK, 0};
    r->options = *options;
    pto_arena_init(&r->arena, options->arena_bytes > 0 ? options->arena_bytes : PTO_ARENA_BYTES, options->poison != 0);
    r->shapes = calloc(SHAPE_SETS * PTO_MAX_ARGS, sizeof *r->shapes);
    if (options->infer)
        r->deps = pto_deps_new(prunes(options));
    if (r->shapes == NULL || (options->infer && r->deps == NULL) || !pto_record_grow_tasks(r, 1) || !pto_record_grow_nodes(r, 1) ||
        !pto_reserve_marks(r, 1)) {
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
    void *owned[] = {r->mark_node, r->mark_delay, r->mark_stream, r->mark_site, r->mark_flags, r->mark_stall, r->stuck, r->gates, r->shapes};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
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
