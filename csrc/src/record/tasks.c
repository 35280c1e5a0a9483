/* tasks.c: what an orchestrator submits becomes rows of columns, with the edges to the nodes before. */
#include "tasks.h"

#include <string.h>

#include "nodes.h"

static inline bool reserve_task(pto_record *r, const pto_task *t)
{
    int64_t tasks = r->n_tasks + 2;    /* one spare row for the closing begins */
    int64_t args = r->n_args + t->n_args, scalars = r->n_scalars + t->n_scalars, index = r->n_index + t->n_index;
    return (tasks <= r->tasks_capacity || pto_record_grow_tasks(r, tasks)) && pto_record_reserve_node(r) &&
           ((args <= r->args_capacity && scalars <= r->scalars_capacity && index <= r->index_capacity) ||
            pto_record_grow_values(r, args, scalars, index));
}

static bool is_task_valid(const pto_task *t)
{
    return (t->kernel | t->n_order | t->n_after | t->stream) >= 0 && (t->cost | t->worker | t->lane | t->pool | t->bytes | t->ranks) >= 0 &&
           (uint32_t)t->n_args <= PTO_MAX_ARGS && (uint32_t)t->n_scalars <= PTO_MAX_SCALARS && (uint32_t)t->n_index <= PTO_MAX_INDEX;
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

/* Mark arguments that the kernel has to copy before it runs: an argument that the kernel reads while another argument of the same task
   writes the same elements must show the old values. */
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
    const int64_t kept[PTO_N_KEPT] = {t->lane, t->pool, t->priority, t->position, t->bytes, t->ranks};
    for (int k = 0; k < PTO_N_KEPT; k++)
        if (r->kept[k] != NULL)
            r->kept[k][at] = kept[k];
}

static int64_t add_task(pto_record *r, const pto_task *t)
{
    pto_sink *sink = &r->sink;
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
    return r->task_node[at] = pto_record_append_node(r, PTO_NODE_TASK, at);
}

int64_t pto_sink_task(pto_sink *sink, const pto_task *t)
{
    pto_record *r = (pto_record *)sink;
    if (r->shift_bytes == NULL || t->n_args == 0 || (uint32_t)t->n_args > PTO_MAX_ARGS || r->shift_bytes[t->site] == 0)
        return add_task(r, t);
    pto_task elsewhere = *t;
    pto_arg args[PTO_MAX_ARGS];
    memcpy(args, t->args, (size_t)t->n_args * sizeof *args);
    args[0].data += r->shift_bytes[t->site];
    elsewhere.args = args;
    return add_task(r, &elsewhere);
}
