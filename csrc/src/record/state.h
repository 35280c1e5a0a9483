/* state.h: the state of a record: its columns, and what adding nodes to the columns needs. The caller of pto_record_new owns the
   record; the record owns all that it points to, except the cancel flag of its sink and the user of its hooks. Columns are counted from
   first_node and first_task, which are absolute. */
#ifndef PTO_RECORD_STATE_H
#define PTO_RECORD_STATE_H
#include <pthread.h>

#include "arena.h"
#include "deps.h"
#include "graph.h"
#include "joins.h"
#include "lanes.h"

#pragma GCC visibility push(hidden)

#define PTO_N_KEPT 6           /* PTO_KEEP_ bits */
#define PTO_KEPT_PRIORITY 2
#define PTO_KEPT_POSITION 3
#define PTO_KEPT_RANKS 5

typedef int32_t (*pto_hook_fn)(pto_record *record, void *user);

/* How much of what is kept has run: marks that are to have run execute a record piece by piece. */
typedef struct pto_done {
    int64_t n_nodes;
    int64_t n_tasks;
    int64_t cost;
} pto_done;

struct pto_record {
    pto_sink sink;             /* first: a sink pointer is a record pointer */
    pto_record_options options;
    int64_t n_tasks, n_nodes, n_edges, n_marks, n_args, n_scalars, n_index;
    int64_t first_node, first_task;
    int64_t completed_node;    /* set by on_full: what comes before it has completed for all that reads the record */
    pto_done done;             /* in the run under way */
    int64_t total_cost;        /* of the tasks kept */
    int32_t max_kernel;        /* of the tasks kept, -1: no task */
    bool has_guard;
    pto_guard guard;
    pto_clash clash;           /* second_arg 0: there was none */
    pto_stuck *stuck;
    int64_t n_stuck, stuck_capacity;

    uint8_t *node_kind;
    int64_t *node_task, *pred_begin;
    int64_t nodes_capacity;

    int64_t *edge_src;
    uint16_t *edge_why;
    int32_t *edge_arg;
    int64_t edges_capacity;

    int64_t *task_node, *task_worker, *task_cost, *arg_begin, *scalar_begin, *index_begin;
    int64_t *kept[PTO_N_KEPT];     /* task_lane .. task_bytes, those of options.keep; the others NULL */
    pto_lanes lanes;
    int32_t *task_kernel, *task_site, *task_stream;
    int64_t tasks_capacity;

    int64_t *mark_node, *mark_delay;
    int32_t *mark_stream, *mark_site;
    uint8_t *mark_flags, *mark_stall;
    int64_t marks_capacity;

    pto_arg *args;
    int64_t *scalars, *index;
    int64_t args_capacity, scalars_capacity, index_capacity;

    int64_t n_shapes;          /* found so far */
    pto_shape *shapes;         /* of the tasks before, by site and argument: most are like the last */
    pto_edges edges;           /* of the node being added */
    pto_joins joins;
    pto_deps *deps;            /* NULL without inference */
    pto_arena arena;
    pto_gate *gates;           /* of the tasks kept */
    int64_t n_gates, gates_capacity;
    int64_t window_task;       /* with a window of entries: tasks before this one are outside it */

    pto_hook_fn on_full;       /* these are set by pto_run while it orchestrates: execute, feed (then all is dropped) */
    pto_hook_fn on_now;        /* execute what has not run; NULL: nothing executes */
    bool skips_now;            /* on_now is not called for marks that wait for what has run */
    void *hook_user;
    const int64_t *shift_bytes;    /* [sites] by which the first argument of a task is elsewhere on this rank; NULL: by nothing */
    const int64_t *shifted_by;     /* the same of the tasks that are there */

    pthread_mutex_t graph_lock;    /* two pools may execute one record at once */
    pto_graph graph;
};

#pragma GCC visibility pop

#endif
