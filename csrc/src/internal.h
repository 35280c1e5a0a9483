/* internal.h: what the files of the runtime library share with one another and with nobody else.

   One record (record.c) owns columns, the dependency map (deps.c) and a cached graph (graph.c); the engine (pool.c, execute.c)
   and the simulator (sim.c) read the columns. Growable arrays double, so appending costs O(1) amortised. */
#ifndef PTO_INTERNAL_H
#define PTO_INTERNAL_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pto_wsp.h"

/* Only pto_abi.h's functions are exported: an artifact and a program of the user's share the process. */
#pragma GCC visibility push(hidden)

/* Steps an overlap test may take inside the library; past it two regions count as overlapping, which is always safe. */
#define PTO_OVERLAP_STEPS 16384

/* ---- growable arrays (memory.c) ---- */

/* Make room for `need` elements behind the pointer stored at `slot`; false, and nothing changed, when memory ran out.
   The pointer is moved with memcpy so that any pointer type may be behind slot. */
bool pto_grow(void *slot, int64_t *capacity, int64_t need, size_t elem_bytes);

#define PTO_RESERVE(array, capacity, need) \
    ((need) <= (capacity) || pto_grow(&(array), &(capacity), (need), sizeof *(array)))

/* ---- regions.c ---- */

/* A strided byte set in canonical form: the bytes lo + sum(stride[i] * x[i]) + u, 0 <= x[i] < count[i], 0 <= u < width.
   Strides fall, all exceed width, all counts exceed 1: dense dimensions are folded into width. hi is past the last byte. */
typedef struct pto_box {
    int64_t lo;
    int64_t hi;
    int64_t width;
    int64_t stride[PTO_RANK];
    int64_t count[PTO_RANK];
    int64_t n_dims;
} pto_box;

typedef enum pto_box_state { PTO_BOX_OK, PTO_BOX_EMPTY, PTO_BOX_INVALID } pto_box_state;

/* INVALID: elements of no size, or reaching further than any address space. */
pto_box_state pto_box_of(const pto_arg *arg, pto_box *out);
bool pto_box_overlap(const pto_box *a, const pto_box *b, int64_t max_steps);
bool pto_box_covers(const pto_box *outer, const pto_box *inner);     /* may miss, never claims wrongly */
bool pto_box_equal(const pto_box *a, const pto_box *b);

static inline int64_t pto_floor_div(int64_t a, int64_t b)            /* b > 0 */
{
    int64_t q = a / b;
    return q - (a % b < 0);
}

/* ---- edges.c: the predecessors of one node while they are collected ---- */
typedef struct pto_edge {
    int64_t src;
    int32_t arg;
    uint8_t why;
} pto_edge;

typedef struct pto_edges {
    pto_edge *data;
    pto_edge *spare;           /* merge sort's other half, same capacity */
    int64_t n;
    int64_t capacity;
    int64_t spare_capacity;
} pto_edges;

void pto_edges_free(pto_edges *edges);
bool pto_edges_add(pto_edges *edges, int64_t src, int32_t why, int32_t arg);
bool pto_edges_merge(pto_edges *edges);    /* ascending by src, one edge a source with all its reasons */

/* ---- deps.c ---- */
typedef struct pto_deps pto_deps;

pto_deps *pto_deps_new(bool prunes);                       /* without: pto_deps_prune does nothing */
void pto_deps_free(pto_deps *deps);
void pto_deps_reset(pto_deps *deps);
/* Add to `edges` every earlier access that conflicts with this task, then enter the task's own. boxes[i] goes with
   args[i]; an argument whose box is empty has hi == lo. */
int32_t pto_deps_submit(pto_deps *deps, int64_t node, int64_t task, int32_t n_args, const pto_arg *args,
                        const pto_box *boxes, pto_edges *edges);
void pto_deps_prune(pto_deps *deps, int64_t first_task);   /* forget accesses of the tasks before first_task */

/* ---- joins.c: open joins, reusable lists of nodes ---- */
typedef struct pto_join {
    int64_t *nodes;
    int64_t n;
    int64_t capacity;
    int64_t next_free;         /* -2 while open */
} pto_join;

typedef struct pto_joins {
    pto_join *data;
    int64_t n;
    int64_t capacity;
    int64_t first_free;        /* -1: none */
} pto_joins;

void pto_joins_free(pto_joins *joins);
void pto_joins_reset(pto_joins *joins);                    /* closes all, keeps their memory */
int64_t pto_joins_open(pto_joins *joins);                  /* -1: no memory */
pto_join *pto_joins_get(pto_joins *joins, int64_t join);   /* NULL unless open */
void pto_joins_close(pto_joins *joins, int64_t join);

/* ---- graph.c: successors, for the engine ---- */
typedef struct pto_graph_node {
    int64_t arg;               /* of the task, in the record's args */
    int64_t scalar;
    int64_t succ;              /* in pto_graph.succ, up to the next node's */
    int32_t kernel;            /* -1: a join */
    uint32_t n_preds;          /* predecessors kept in the record; dropped ones have completed */
} pto_graph_node;

typedef struct pto_graph {
    pto_graph_node *nodes;     /* [n_nodes + 1] */
    uint32_t *succ;            /* node positions */
    uint32_t *ready;           /* [n_ready] nodes without predecessors, ascending */
    int64_t n_nodes;
    int64_t n_ready;
    int64_t nodes_capacity;
    int64_t succ_capacity;
    int64_t ready_capacity;
    uint32_t max_preds;
    bool valid;
} pto_graph;

int32_t pto_graph_build(pto_graph *graph, const pto_columns *columns);
void pto_graph_free(pto_graph *graph);

/* ---- record.c ---- */
typedef int32_t (*pto_full_fn)(pto_record *record, void *user);

struct pto_record {
    pto_sink sink;             /* first: a sink pointer is a record pointer */
    pto_record_options options;
    int64_t n_tasks, n_nodes, n_edges, n_args, n_scalars, n_index;
    int64_t first_node, first_task;
    int64_t total_cost;        /* of the tasks kept */
    int32_t max_kernel;        /* of the tasks kept, -1: no task */
    bool has_guard;
    pto_guard guard;

    uint8_t *node_kind;
    int64_t *node_task, *pred_begin;
    int64_t nodes_capacity;

    int64_t *edge_src;
    uint8_t *edge_why;
    int32_t *edge_arg;
    int64_t edges_capacity;

    int64_t *task_node, *task_worker, *task_cost, *arg_begin, *scalar_begin, *index_begin;
    int32_t *task_kernel, *task_site;
    int64_t tasks_capacity;

    pto_arg *args;
    int64_t *scalars, *index;
    int64_t args_capacity, scalars_capacity, index_capacity;

    pto_edges edges;           /* of the node being added */
    pto_joins joins;
    pto_deps *deps;            /* NULL without inference */

    pto_full_fn on_full;       /* set by pto_run while it orchestrates */
    void *on_full_user;

    pthread_mutex_t graph_lock;    /* two pools may execute one record at once */
    pto_graph graph;
};

int32_t pto_record_graph(const pto_record *record, const pto_graph **out);   /* built when stale */
void pto_record_drop(pto_record *record);                 /* forget the kept tasks, keep counting */

/* ---- interrupt.c: on the main thread, with the pool held ---- */
bool pto_interrupt_open(pto_pool *pool);                   /* from here on SIGINT cancels; false: nobody handles it, nothing changed */
void pto_interrupt_close(int32_t status);                  /* back to what was; status: how the run ended */

/* ---- execute.c, for run.c: the caller holds the pool ---- */
void pto_pool_hold(pto_pool *pool);                        /* waits for other runs; clears a stale cancel */
void pto_pool_release(pto_pool *pool);
bool pto_pool_cancelled(pto_pool *pool);
int32_t pto_execute_held(pto_pool *pool, const pto_record *record, const pto_kernel *kernels, int32_t n_kernels,
                         const pto_execute_options *options, pto_execute_result *result);

#pragma GCC visibility pop

#endif
