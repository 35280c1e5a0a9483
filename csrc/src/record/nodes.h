/* nodes.h: what tasks, joins and marks have in common: a node with its predecessors, behind the others of the record. */
#ifndef PTO_NODES_H
#define PTO_NODES_H
#include "columns.h"

#pragma GCC visibility push(hidden)

#define PTO_SHAPE_SETS 8       /* of arguments whose shapes are kept, by site; a power of two */

int32_t pto_record_hand_over(pto_record *record);          /* on_full, then drop */
void pto_record_drop(pto_record *record);                  /* forget the kept tasks, keep counting */
bool pto_record_prunes(const pto_record_options *options); /* tasks before the window are forgotten */
/* The shapes of arguments, shapes[i] of args[i]; false: one is invalid. */
bool pto_record_shapes(pto_record *record, int32_t site, int32_t n_args, const pto_arg *args, const pto_shape **shapes);

static inline int64_t pto_record_fail(pto_record *r, int32_t status)      /* keeps the first status; -1 */
{
    if (r->sink.status == PTO_OK)
        r->sink.status = status;
    return -1;
}

/* Make room for one node more and its edges; false: no memory. */
static inline bool pto_record_reserve_node(pto_record *r)
{
    int64_t nodes = r->n_nodes + 2, edges = r->n_edges + r->edges.n;        /* one spare row for the closing begin */
    return (nodes <= r->nodes_capacity || pto_record_grow_nodes(r, nodes)) && (edges <= r->edges_capacity || pto_record_grow_edges(r, edges));
}

/* Append a node whose predecessors are r->edges. Room for it has been made. */
static inline int64_t pto_record_append_node(pto_record *r, uint8_t kind, int64_t task)
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

/* Add structural predecessors to those of the next node; -1 entries are skipped. PTO_E_ARGUMENT: a node that does not exist. */
static inline int32_t pto_record_add_named(pto_record *r, const int64_t *nodes, int64_t n, int32_t why)
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

#pragma GCC visibility pop

#endif
