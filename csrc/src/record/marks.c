/* marks.c: what an orchestrator writes beside tasks and joins: marks, fresh tensors, the report of a deadlock. */
#include "marks.h"

#include <string.h>

#include "nodes.h"

/* Joins and marks kept for each task kept, at most: a program of nothing but marks is bounded too. */
#define PTO_NODES_A_TASK 8

static bool is_mark_valid(const pto_mark *m)
{
    int32_t flags = PTO_MARK_BLOCKS | PTO_MARK_NOW | PTO_MARK_RESTS;
    return m->stream >= 0 && (m->flags & ~flags) == 0 && (m->why & ~UINT8_MAX) == 0 && (m->n_before == 0 || m->why != 0) &&
           m->stall >= 0 && m->stall < PTO_N_STALLS && m->n_before >= 0 && m->n_order >= 0 && m->n_args >= 0 &&
           m->n_args <= PTO_MAX_ARGS && m->delay >= 0;
}

/* Find what the mark waits for: r->edges, merged. */
static int32_t collect_edges(pto_record *r, const pto_mark *m)
{
    int32_t status = PTO_OK;
    r->edges.n = 0;
    if (m->n_args > 0 && r->deps != NULL) {
        const pto_shape *shapes[PTO_MAX_ARGS];
        if (!pto_record_shapes(r, m->site, m->n_args, m->args, shapes))
            return PTO_E_ARGUMENT;
        status = pto_deps_read(r->deps, m->n_args, m->args, shapes, &r->edges);
    }
    if (status == PTO_OK)
        status = pto_record_add_named(r, m->order, m->n_order, PTO_EDGE_ORDER);
    if (status == PTO_OK)
        status = pto_record_add_named(r, m->before, m->n_before, m->why);
    if (status == PTO_OK && !pto_edges_merge(&r->edges))
        status = PTO_E_NOMEM;
    return status;
}

/* Has all that r->edges names run? Without inferred edges nobody knows who writes what is read. */
static bool has_run(const pto_record *r, const pto_mark *m)
{
    bool is_known = m->n_args == 0 || r->deps != NULL;
    return is_known && (r->edges.n == 0 || r->edges.data[r->edges.n - 1].src < r->first_node + r->done.n_nodes);
}

int64_t pto_sink_mark(pto_sink *sink, const pto_mark *m)
{
    pto_record *r = (pto_record *)sink;
    if (sink->status != PTO_OK)
        return -1;
    if (!is_mark_valid(m))
        return pto_record_fail(r, PTO_E_ARGUMENT);
    int32_t status = PTO_OK;
    if (r->options.max_tasks > 0 && r->n_nodes / PTO_NODES_A_TASK >= r->options.max_tasks)
        status = pto_record_hand_over(r);
    if (status == PTO_OK)
        status = collect_edges(r, m);
    if (status == PTO_OK && (!pto_record_grow_marks(r, r->n_marks + 1) || !pto_record_reserve_node(r)))
        status = PTO_E_NOMEM;
    if (status != PTO_OK)
        return pto_record_fail(r, status);

    bool skips = r->skips_now && has_run(r, m);
    int64_t node = pto_record_append_node(r, PTO_NODE_MARK, -1), at = r->n_marks++;
    r->mark_node[at] = node;
    r->mark_delay[at] = m->delay;
    r->mark_stream[at] = m->stream;
    r->mark_site[at] = m->site;
    r->mark_flags[at] = (uint8_t)m->flags;
    r->mark_stall[at] = (uint8_t)m->stall;
    if ((m->flags & PTO_MARK_NOW) && !skips) {
        status = r->on_now != NULL ? r->on_now(r, r->hook_user) : PTO_E_UNEXECUTED;
        if (status != PTO_OK)
            return pto_record_fail(r, status);
    }
    return node;
}

/* Take back the memory of tensors whose users are a window earlier than the task that comes next, which has to wait for them then. In
   program order, whatever the stream, so that waiting ends. */
static bool make_room(pto_record *r, int64_t bytes)
{
    int64_t window = r->options.window, end_node;
    if (r->options.window_unit == PTO_WINDOW_BYTES) {
        end_node = pto_arena_retire_bytes(&r->arena, window - bytes);
    } else if (r->options.window_unit == PTO_WINDOW_ENTRIES) {
        while (r->window_task < r->n_tasks && r->n_args + 1 - r->arg_begin[r->window_task] > window)
            r->window_task++;
        end_node = pto_arena_retire_tasks(&r->arena, r->first_task + r->window_task);
    } else {
        end_node = pto_arena_retire_tasks(&r->arena, r->first_task + r->n_tasks + 1 - window);
    }
    if (end_node < 0)
        return true;
    int64_t from = r->first_node + r->n_nodes;
    if (r->n_gates == 0 || r->gates[r->n_gates - 1].from != from) {
        if (!PTO_RESERVE(r->gates, r->gates_capacity, r->n_gates + 1))
            return false;
        r->n_gates++;
    }
    r->gates[r->n_gates - 1] = (pto_gate){end_node, from};
    r->graph.valid = false;
    return true;
}

int32_t pto_sink_fresh(pto_sink *sink, pto_tensor *out, int32_t elem_bytes, int32_t rank, const int64_t *dims)
{
    pto_record *r = (pto_record *)sink;
    if (sink->status != PTO_OK)
        return sink->status;
    int64_t bytes = pto_tensor_bytes(elem_bytes, rank, dims);
    int32_t status = bytes < 0 ? PTO_E_ARGUMENT : PTO_OK;
    if (status == PTO_OK && r->options.window > 0 && !make_room(r, bytes))
        status = PTO_E_NOMEM;
    if (status == PTO_OK && pto_arena_is_full(&r->arena, bytes))
        status = pto_record_hand_over(r);
    memset(out, 0, sizeof *out);
    if (status == PTO_OK)
        status = pto_arena_fresh(&r->arena, bytes, out);
    if (status != PTO_OK) {
        pto_record_fail(r, status);
        return status;
    }
    out->rank = rank;
    int64_t stride = 1;
    for (int32_t i = rank - 1; i >= 0; i--) {
        out->dim[i] = dims[i];
        out->stride[i] = stride;
        stride *= dims[i] > 0 ? dims[i] : 1;
    }
    return PTO_OK;
}

int32_t pto_sink_release(pto_sink *sink, const pto_tensor *tensor)
{
    pto_record *r = (pto_record *)sink;
    if (sink->status != PTO_OK)
        return sink->status;
    int32_t status = pto_arena_release(&r->arena, tensor->buffer, r->first_task + r->n_tasks, r->first_node + r->n_nodes);
    if (status != PTO_OK)
        pto_record_fail(r, status);
    else if (r->deps != NULL)
        pto_deps_forget(r->deps, tensor->buffer);
    return sink->status;
}

int32_t pto_sink_stuck(pto_sink *sink, const pto_stuck *rows, int32_t n)
{
    pto_record *r = (pto_record *)sink;
    if (sink->status != PTO_OK)
        return sink->status;
    int32_t status = n < 0 ? PTO_E_ARGUMENT : PTO_E_DEADLOCK;
    if (n > 0 && !PTO_RESERVE(r->stuck, r->stuck_capacity, n))
        status = PTO_E_NOMEM;
    if (status == PTO_E_DEADLOCK && n > 0) {
        memcpy(r->stuck, rows, (size_t)n * sizeof *rows);
        r->n_stuck = n;
    }
    pto_record_fail(r, status);
    return status;
}
