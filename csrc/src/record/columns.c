/* columns.c: the columns of a record: how they grow, and what those who read them see. */
#include "columns.h"

/* Columns that grow together, with the places of pto_grow_apart. */
#define TASK_COLUMNS(of) \
    of(task_node, 0) of(task_worker, 1) of(task_cost, 2) of(arg_begin, 3) of(scalar_begin, 4) of(index_begin, 5) of(task_kernel, 6) \
        of(task_site, 7) of(task_stream, 8)
#define NODE_COLUMNS(of) of(node_kind, 9) of(node_task, 10) of(pred_begin, 11)
#define EDGE_COLUMNS(of) of(edge_src, 12) of(edge_why, 13) of(edge_arg, 14)
#define MARK_COLUMNS(of) \
    of(mark_node, 0) of(mark_delay, 0) of(mark_stream, 0) of(mark_site, 0) of(mark_flags, 0) of(mark_stall, 0)     /* few: no places */
#define VALUE_COLUMNS(of) of(args, 15) of(scalars, 16) of(index, 17)            /* each grows alone */
enum { KEPT_PLACE = 18 };

#define GROW(column, place) && (grown = capacity, pto_grow_apart(&r->column, &grown, need, sizeof *r->column, place))
#define FREE(column, place) pto_free_apart(r->column, place);

bool pto_record_grow_tasks(pto_record *r, int64_t need)
{
    int64_t capacity = r->tasks_capacity, grown = capacity;
    if (!(true TASK_COLUMNS(GROW)))
        return false;
    for (int k = 0; k < PTO_N_KEPT; k++)
        if (r->options.keep >> k & 1 && !(true GROW(kept[k], KEPT_PLACE + k)))
            return false;
    r->tasks_capacity = grown;
    return true;
}

bool pto_record_grow_nodes(pto_record *r, int64_t need)
{
    int64_t capacity = r->nodes_capacity, grown = capacity;
    if (!(true NODE_COLUMNS(GROW)))
        return false;
    r->nodes_capacity = grown;
    return true;
}

bool pto_record_grow_edges(pto_record *r, int64_t need)
{
    int64_t capacity = r->edges_capacity, grown = capacity;
    if (!(true EDGE_COLUMNS(GROW)))
        return false;
    r->edges_capacity = grown;
    return true;
}

bool pto_record_grow_marks(pto_record *r, int64_t need)
{
    int64_t capacity = r->marks_capacity, grown = capacity;
    if (need <= capacity)
        return true;
    if (!(true MARK_COLUMNS(GROW)))
        return false;
    r->marks_capacity = grown;
    return true;
}

bool pto_record_grow_values(pto_record *r, int64_t n_args, int64_t n_scalars, int64_t n_index)
{
#define GROW_ALONE(column, place) \
    && (n_##column <= r->column##_capacity || pto_grow_apart(&r->column, &r->column##_capacity, n_##column, sizeof *r->column, place))
    return true VALUE_COLUMNS(GROW_ALONE);
#undef GROW_ALONE
}

void pto_record_free_columns(pto_record *r)
{
    TASK_COLUMNS(FREE)
    NODE_COLUMNS(FREE)
    EDGE_COLUMNS(FREE)
    MARK_COLUMNS(FREE)
    VALUE_COLUMNS(FREE)
    for (int k = 0; k < PTO_N_KEPT; k++)
        pto_free_apart(r->kept[k], KEPT_PLACE + k);
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
        .task_ranks = r->kept[5],
        .arg_begin = r->arg_begin, .args = r->args,
        .scalar_begin = r->scalar_begin, .scalars = r->scalars, .index_begin = r->index_begin, .index = r->index,
        .mark_node = r->mark_node, .mark_delay = r->mark_delay, .mark_stream = r->mark_stream, .mark_site = r->mark_site,
        .mark_flags = r->mark_flags, .mark_stall = r->mark_stall};
}
