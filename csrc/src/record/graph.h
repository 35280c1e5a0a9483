/* graph.h: the successors of nodes, for the engine. Nodes are counted from `begin`; those before it have completed. Behind the nodes of the
   record come its gates, as joins that nobody else sees. The record owns the graph and builds it anew when it is stale. */
#ifndef PTO_GRAPH_H
#define PTO_GRAPH_H
#include <stdbool.h>
#include <stdint.h>

#include "pto_wsp.h"

#pragma GCC visibility push(hidden)

/* Nodes from `from` on run after all nodes before `before`: they use memory again. Both are absolute, and grow from gate to gate. */
typedef struct pto_gate {
    int64_t before;
    int64_t from;
} pto_gate;

typedef struct pto_graph_node {
    int64_t arg;               /* of the task, in the record's args */
    int64_t scalar;
    int64_t succ;              /* in pto_graph.succ, up to the next node's */
    int32_t kernel;            /* -1: a join or mark */
    uint32_t n_preds;          /* predecessors in the graph; the others have completed */
} pto_graph_node;

typedef struct pto_graph {
    int64_t begin;             /* position in the record of its first node */
    pto_graph_node *nodes;     /* [n_nodes + 1] */
    uint32_t *succ;            /* node positions */
    uint32_t *ready;           /* [n_ready] nodes without predecessors, ascending */
    int64_t *gate_end;         /* [n_nodes - n_own] a gate has completed when the nodes before this one have */
    uint32_t *first_succ;      /* while gates are added: the first successor of a node */
    int64_t n_nodes;           /* with gates */
    int64_t n_own;             /* without */
    int64_t n_ready;
    int64_t nodes_capacity;
    int64_t gates_capacity;
    int64_t first_succ_capacity;
    int64_t succ_capacity;
    int64_t ready_capacity;
    uint32_t *list;            /* of a calendar, see engine/calendar.c: [n_nodes], thread by thread; list_end: [list_threads] */
    int64_t *list_end;
    int64_t list_capacity;
    int64_t list_end_capacity;
    int32_t list_threads;      /* 0: not made */
    uint32_t max_preds;
    bool valid;
} pto_graph;

int32_t pto_graph_build(pto_graph *graph, const pto_columns *columns, const pto_gate *gates, int64_t n_gates, int64_t begin);
void pto_graph_free(pto_graph *graph);

#pragma GCC visibility pop

#endif
