/* record.c: what an orchestrator submits becomes columns, with the edges between the nodes.

   A record with max_tasks > 0 keeps that many: before the next one it hands the kept tasks to on_full (pto_run executes
   them there) and drops them, counting on in absolute ids. Without on_full it ends with PTO_E_NOMEM. max_tasks <= 0 keeps
   all. After an error every sink function returns -1 and the first status stays. */
#include "../internal.h"

int64_t pto_record_fail(pto_record *r, int32_t status)
{
    if (r->sink.status == PTO_OK)
        r->sink.status = status;
    return -1;
}

/* ---- room ---- */

static bool reserve_tasks(pto_record *r, int64_t need)
{
    if (need < r->tasks_capacity)       /* one spare row for the closing begin */
        return true;
    int64_t capacity = r->tasks_capacity, grown = capacity;
#define PTO_GROW_COLUMN(column) (grown = capacity, PTO_RESERVE(r->column, grown, need + 1))
    if (!PTO_GROW_COLUMN(task_node) || !PTO_GROW_COLUMN(task_worker) || !PTO_GROW_COLUMN(task_cost) ||
        !PTO_GROW_COLUMN(arg_begin) || !PTO_GROW_COLUMN(scalar_begin) || !PTO_GROW_COLUMN(index_begin) ||
        !PTO_GROW_COLUMN(task_kernel) || !PTO_GROW_COLUMN(task_site) || !PTO_GROW_COLUMN(task_stream))
        return false;
    for (int k = 0; k < PTO_N_KEPT; k++)
        if (r->options.keep >> k & 1 && !PTO_GROW_COLUMN(kept[k]))
            return false;
    r->tasks_capacity = grown;
    return true;
}

static bool reserve_nodes(pto_record *r, int64_t need)
{
    if (need < r->nodes_capacity)
        return true;
    int64_t capacity = r->nodes_capacity, grown = capacity;
    if (!PTO_GROW_COLUMN(node_kind) || !PTO_GROW_COLUMN(node_task) || !PTO_GROW_COLUMN(pred_begin))
        return false;
    r->nodes_capacity = grown;
    return true;
}

static bool reserve_edges(pto_record *r, int64_t need)
{
    if (need <= r->edges_capacity)
        return true;
    int64_t capacity = r->edges_capacity, grown = capacity;
    need -= 1;                          /* no closing row here */
    if (!PTO_GROW_COLUMN(edge_src) || !PTO_GROW_COLUMN(edge_why) || !PTO_GROW_COLUMN(edge_arg))
        return false;
    r->edges_capacity = grown;
    return true;
}
#undef PTO_GROW_COLUMN

bool pto_record_reserve_node(pto_record *r)
{
    return reserve_nodes(r, r->n_nodes + 1) && reserve_edges(r, r->n_edges + r->edges.n);
}

/* ---- nodes ---- */

/* Append a node whose predecessors are r->edges. Room for it has been made. */
int64_t pto_record_append_node(pto_record *r, uint8_t kind, int64_t task)
{
    int64_t at = r->n_nodes++;
    r->node_kind[at] = kind;
    r->node_task[at] = task;
    for (int64_t i = 0; i < r->edges.n; i++) {
        const pto_edge *edge = &r->edges.data[i];
        r->edge_src[r->n_edges] = edge->src;
        r->edge_why[r->n_edges] = edge->why;
        r->edge_arg[r->n_edges] = edge->arg;
        r->n_edges++;
    }
    r->pred_begin[r->n_nodes] = r->n_edges;
    r->graph.valid = false;
    return r->first_node + at;
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
    return t->kernel >= 0 && t->cost >= 0 && t->worker >= 0 && t->n_args >= 0 && t->n_args <= PTO_MAX_ARGS &&
           t->n_scalars >= 0 && t->n_scalars <= PTO_MAX_SCALARS && t->n_index >= 0 && t->n_index <= PTO_MAX_INDEX &&
           t->n_order >= 0 && t->n_after >= 0 && t->stream >= 0 && t->lane >= 0 && t->pool >= 0 && t->bytes >= 0;
}

/* A kernel that reads what another of its arguments writes must see the old values: it copies staged arguments first. */
static void mark_staged(pto_arg *args, const pto_box *boxes, int32_t n)
{
    for (int32_t w = 0; w < n; w++) {
        if (!(args[w].flags & PTO_WRITE) || boxes[w].lo >= boxes[w].hi)
            continue;
        for (int32_t i = 0; i < n; i++)
            if (i != w && args[i].flags & PTO_READ && args[i].buffer == args[w].buffer && boxes[i].lo < boxes[i].hi &&
                pto_box_overlap(&boxes[i], &boxes[w], PTO_OVERLAP_STEPS))
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

/* Find what the task waits for: r->edges, merged. */
static int32_t collect_edges(pto_record *r, const pto_task *t, const pto_box *boxes)
{
    int32_t status = PTO_OK;
    r->edges.n = 0;
    if (r->deps != NULL) {
        status = pto_deps_submit(r->deps, r->first_node + r->n_nodes, r->first_task + r->n_tasks, t->n_args, t->args, boxes, &r->edges);
    }
    if (status == PTO_OK)
        status = pto_record_add_named(r, t->order, t->n_order, PTO_EDGE_ORDER);
    if (status == PTO_OK)
        status = pto_record_add_named(r, t->after, t->n_after, PTO_EDGE_AFTER);
    if (status == PTO_OK && t->lane != 0 && r->options.keep & PTO_KEEP_LANE) {
        int64_t before;
        if (!pto_lanes_enter(&r->lanes, t->lane, r->first_node + r->n_nodes, &before))
            return PTO_E_NOMEM;
        status = pto_record_add_named(r, &before, 1, PTO_EDGE_LANE);
    }
    if (status == PTO_OK && !pto_edges_merge(&r->edges))
        status = PTO_E_NOMEM;
    return status;
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
    if (status != PTO_OK)
        return pto_record_fail(r, status);

    pto_box boxes[PTO_MAX_ARGS];
    for (int32_t i = 0; i < t->n_args; i++) {
        pto_box_state state = pto_box_of(&t->args[i], &boxes[i]);
        if (state == PTO_BOX_INVALID)
            return pto_record_fail(r, PTO_E_ARGUMENT);
    }
    status = collect_edges(r, t, boxes);
    if (status != PTO_OK)
        return pto_record_fail(r, status);
    if (!reserve_tasks(r, r->n_tasks + 1) || !pto_record_reserve_node(r) ||
        !PTO_RESERVE(r->args, r->args_capacity, r->n_args + t->n_args) ||
        !PTO_RESERVE(r->scalars, r->scalars_capacity, r->n_scalars + t->n_scalars) ||
        !PTO_RESERVE(r->index, r->index_capacity, r->n_index + t->n_index))
        return pto_record_fail(r, PTO_E_NOMEM);

    int64_t at = r->n_tasks++;
    r->task_kernel[at] = t->kernel;
    r->task_site[at] = t->site;
    r->task_worker[at] = t->worker;
    r->task_cost[at] = t->cost;
    r->task_stream[at] = t->stream;
    if (r->options.keep != 0) {
        const int64_t kept[PTO_N_KEPT] = {t->lane, t->pool, t->priority, t->position, t->bytes};
        for (int k = 0; k < PTO_N_KEPT; k++)
            if (r->kept[k] != NULL)
                r->kept[k][at] = kept[k];
    }
    if (t->n_args > 0) {
        memcpy(r->args + r->n_args, t->args, (size_t)t->n_args * sizeof *t->args);
        mark_staged(r->args + r->n_args, boxes, t->n_args);
    }
    if (t->n_scalars > 0)
        memcpy(r->scalars + r->n_scalars, t->scalars, (size_t)t->n_scalars * sizeof *t->scalars);
    if (t->n_index > 0)
        memcpy(r->index + r->n_index, t->index, (size_t)t->n_index * sizeof *t->index);
    r->arg_begin[at + 1] = r->n_args += t->n_args;
    r->scalar_begin[at + 1] = r->n_scalars += t->n_scalars;
    r->index_begin[at + 1] = r->n_index += t->n_index;
    if (t->kernel > r->max_kernel)
        r->max_kernel = t->kernel;
    if (__builtin_add_overflow(r->total_cost, t->cost, &r->total_cost))
        r->total_cost = INT64_MAX;
    return r->task_node[at] = pto_record_append_node(r, PTO_NODE_TASK, at);
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
    r->n_stuck = 0;
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
                         pto_sink_release, pto_sink_stuck, PTO_OK, 0};
    r->options = *options;
    pto_arena_init(&r->arena, options->arena_bytes > 0 ? options->arena_bytes : PTO_ARENA_BYTES, options->poison != 0);
    if (options->infer)
        r->deps = pto_deps_new(prunes(options));
    if ((options->infer && r->deps == NULL) || !reserve_tasks(r, 1) || !reserve_nodes(r, 1) ||
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
    void *owned[] = {r->node_kind, r->node_task, r->pred_begin, r->edge_src, r->edge_why, r->edge_arg, r->task_node,
                     r->task_worker, r->task_cost, r->arg_begin, r->scalar_begin, r->index_begin, r->task_kernel,
                     r->task_site, r->task_stream, r->args, r->scalars, r->index, r->mark_node, r->mark_delay,
                     r->mark_stream, r->mark_site, r->mark_flags, r->mark_stall, r->stuck, r->gates};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    for (int k = 0; k < PTO_N_KEPT; k++)
        free(r->kept[k]);
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

void pto_record_columns(const pto_record *r, pto_columns *out)
{
    *out = (pto_columns){
        .n_tasks = r->n_tasks, .n_nodes = r->n_nodes, .n_edges = r->n_edges, .n_marks = r->n_marks, .first_node = r->first_node,
        .first_task = r->first_task, .total_tasks = r->first_task + r->n_tasks, .node_kind = r->node_kind,
        .node_task = r->node_task, .pred_begin = r->pred_begin, .edge_src = r->edge_src, .edge_why = r->edge_why,
        .edge_arg = r->edge_arg, .task_node = r->task_node, .task_kernel = r->task_kernel, .task_site = r->task_site,
        .task_worker = r->task_worker, .task_cost = r->task_cost, .task_stream = r->task_stream, .task_lane = r->kept[0],
        .task_pool = r->kept[1], .task_priority = r->kept[2], .task_position = r->kept[3], .task_bytes = r->kept[4],
        .arg_begin = r->arg_begin, .args = r->args,
        .scalar_begin = r->scalar_begin, .scalars = r->scalars, .index_begin = r->index_begin, .index = r->index,
        .mark_node = r->mark_node, .mark_delay = r->mark_delay, .mark_stream = r->mark_stream, .mark_site = r->mark_site,
        .mark_flags = r->mark_flags, .mark_stall = r->mark_stall};
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
