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

/* Only pto_library.h's functions are exported: an artifact and a program of the user's share the process. */
#pragma GCC visibility push(hidden)

#define PTO_N_KEPT 5           /* PTO_KEEP_ bits */
#define PTO_KEPT_PRIORITY 2
#define PTO_KEPT_POSITION 3

/* Steps an overlap test may take inside the library; past it two regions count as overlapping, which is always safe. */
#define PTO_OVERLAP_STEPS 16384
#define PTO_CLASH_STEPS (1 << 20)      /* the same of two arguments that a task writes, which are refused: worth more */

/* ---- growable arrays (memory.c) ---- */

/* Make room for `need` elements behind the pointer stored at `slot`; false, and nothing changed, when memory ran out.
   The pointer is moved with memcpy so that any pointer type may be behind slot. */
bool pto_grow(void *slot, int64_t *capacity, int64_t need, size_t elem_bytes);

/* The same for arrays that are filled side by side, each with a place of its own from 0: large ones all begin at the begin of a page, so
   their rows would meet in the same few lines of the first cache. */
bool pto_grow_apart(void *slot, int64_t *capacity, int64_t need, size_t elem_bytes, int32_t place);
void pto_free_apart(void *array, int32_t place);

#define PTO_RESERVE(array, capacity, need) \
    ((need) <= (capacity) || pto_grow(&(array), &(capacity), (need), sizeof *(array)))

/* ---- heaps ---- */

/* Of any entries: before(a, b) tells which comes out first. The first puts `entry` at the end, which is data[n - 1]; the second
   puts `moved`, which was there, in place of data[0], which is taken out, into what is left: n entries. */
#define PTO_SIFT_UP(data, n, entry, before) \
    do { \
        int64_t at_ = (n) - 1; \
        for (; at_ > 0 && before(entry, (data)[(at_ - 1) / 2]); at_ = (at_ - 1) / 2) \
            (data)[at_] = (data)[(at_ - 1) / 2]; \
        (data)[at_] = entry; \
    } while (0)

#define PTO_SIFT_DOWN(data, n, moved, before) \
    do { \
        int64_t at_ = 0; \
        for (int64_t child_; (child_ = 2 * at_ + 1) < (n); at_ = child_) { \
            if (child_ + 1 < (n) && before((data)[child_ + 1], (data)[child_])) \
                child_++; \
            if (!before((data)[child_], moved)) \
                break; \
            (data)[at_] = (data)[child_]; \
        } \
        (data)[at_] = moved; \
    } while (0)

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

typedef enum pto_box_state { PTO_BOX_EMPTY, PTO_BOX_OK, PTO_BOX_INVALID } pto_box_state;

/* Further than any address space reaches, and small enough that sums of a few stay within 64 bits. */
#define PTO_FAR ((int64_t)1 << 59)

/* INVALID: elements of no size, or reaching further than any address space. */
pto_box_state pto_box_of(const pto_arg *arg, pto_box *out);
bool pto_box_overlap(const pto_box *a, const pto_box *b, int64_t max_steps);
bool pto_box_meets(const pto_box *a, const pto_box *b, int64_t max_steps, bool *is_exact);   /* whether it was found out */
bool pto_box_covers(const pto_box *outer, const pto_box *inner);     /* may miss, never claims wrongly */

/* The bytes from the first to past the last of one row, where the first dimension counts rows. */
static inline int64_t pto_box_row(const pto_box *box)
{
    return box->n_dims == 0 ? box->width : box->hi - box->lo - box->stride[0] * (box->count[0] - 1);
}

static inline pto_box pto_box_at(const pto_box *from_zero, int64_t lo)
{
    pto_box box = *from_zero;
    box.lo = lo;
    box.hi += lo;
    return box;
}

static inline int64_t pto_floor_div(int64_t a, int64_t b)            /* b > 0 */
{
    int64_t q = a / b;
    return q - (a % b < 0);
}

/* ---- shapes.c ---- */

/* What the boxes of arguments of one layout share. Zeros are that of no elements. */
typedef struct pto_shape {
    int64_t extent[PTO_RANK];  /* the layout, as in pto_arg */
    int64_t stride[PTO_RANK];
    int32_t elem_bytes;
    int32_t state;             /* pto_box_state; with OK: */
    int64_t id;                /* shapes of one id are the same */
    int64_t offset;            /* bytes from data to the box, <= 0 */
    pto_box box;               /* from 0 */
    int64_t pitch;             /* what the dependency map sees in it: rows this many bytes apart; 0: one */
    int64_t rows;
    int64_t width;             /* bytes of a row */
    int32_t row_shift, col_shift;      /* rows and width, as powers of two */
} pto_shape;

void pto_shape_find(pto_shape *shape, const pto_arg *arg);     /* id stays */
void pto_shape_as_row(pto_shape *shape);                   /* as if it had no pitch */

static inline bool pto_shape_is_of(const pto_shape *shape, const pto_arg *arg)
{
    return shape->extent[0] == arg->extent[0] && shape->extent[1] == arg->extent[1] && shape->stride[0] == arg->stride[0] &&
           shape->stride[1] == arg->stride[1] && shape->elem_bytes == arg->elem_bytes;
}

static inline bool pto_shape_is_valid(const pto_shape *shape, const pto_arg *arg)
{
    int64_t data = (int64_t)(intptr_t)arg->data;
    return shape->state != PTO_BOX_INVALID && (shape->state == PTO_BOX_EMPTY || (data <= PTO_FAR && data >= -PTO_FAR));
}

static inline int64_t pto_shape_lo(const pto_shape *shape, const pto_arg *arg)
{
    return (int64_t)(intptr_t)arg->data + shape->offset;
}

/* ---- edges.c: the predecessors of one node while they are collected ---- */
typedef struct pto_edge {
    int64_t src;
    int32_t arg;
    uint16_t why;
} pto_edge;

typedef struct pto_edges {
    pto_edge *data;
    pto_edge *spare;           /* merge sort's other half, same capacity */
    int64_t n;
    int64_t capacity;
    int64_t spare_capacity;
} pto_edges;

void pto_edges_free(pto_edges *edges);

static inline bool pto_edges_add(pto_edges *edges, int64_t src, int32_t why, int32_t arg)
{
    if (!PTO_RESERVE(edges->data, edges->capacity, edges->n + 1))
        return false;
    edges->data[edges->n++] = (pto_edge){src, arg, (uint16_t)why};
    return true;
}

bool pto_edges_merge(pto_edges *edges);    /* ascending by src, one edge a source with all its reasons */

/* ---- turns.c: the places of tasks in a calendar ---- */
typedef struct pto_turn {
    int64_t worker;
    int64_t position;
    int64_t id;                /* of the task or node */
} pto_turn;

void pto_turns_sort(pto_turn *turns, int64_t n);           /* by worker, position and id */

/* ---- lanes.c: the last node of every lane ---- */
typedef struct pto_lane {
    int64_t lane;              /* 0: the row is free */
    int64_t node;
} pto_lane;

typedef struct pto_lanes {
    pto_lane *rows;            /* open addressing, a power of two of rows, at most half of them taken */
    int64_t capacity;
    int64_t n;
} pto_lanes;

void pto_lanes_free(pto_lanes *lanes);
void pto_lanes_reset(pto_lanes *lanes);
bool pto_lanes_enter(pto_lanes *lanes, int64_t lane, int64_t node, int64_t *before);  /* before: the lane's last node, -1: none */

/* ---- deps.c ---- */
typedef struct pto_deps pto_deps;

pto_deps *pto_deps_new(bool prunes);                       /* without: pto_deps_prune does nothing */
void pto_deps_free(pto_deps *deps);
void pto_deps_reset(pto_deps *deps);
/* Add to `edges` every earlier access that conflicts with this task, then enter the task's own. shapes[i] goes with
   args[i]. */
int32_t pto_deps_submit(pto_deps *deps, int64_t node, int64_t task, int32_t n_args, const pto_arg *args,
                        const pto_shape *const *shapes, pto_edges *edges);
/* Add to `edges` the latest writers of what a mark reads. The read is not entered: it is over when the mark is. */
int32_t pto_deps_read(pto_deps *deps, int32_t n_args, const pto_arg *args, const pto_shape *const *shapes, pto_edges *edges);
/* Forget the accesses, from the oldest on, of tasks before first_task that are nodes before first_node. */
void pto_deps_prune(pto_deps *deps, int64_t first_task, int64_t first_node);
void pto_deps_forget(pto_deps *deps, int32_t buffer);      /* forget an alias group: no later task is of it */

/* ---- arena.c: the memory of fresh tensors, each an alias group of its own (negative, so never a bound one) ---- */
typedef struct pto_block {
    char *data;                /* NULL: the row is free */
    char *place;               /* in a chunk: data, or with poison only what is counted */
    int64_t bytes;
    int64_t end_task;          /* of a released one: its users are tasks and nodes before these */
    int64_t end_node;
    int32_t next_free;
    bool released;
} pto_block;

typedef struct pto_gap {
    char *data;
    int64_t bytes;
} pto_gap;

typedef struct pto_arena {
    pto_block *blocks;
    int64_t n;
    int64_t capacity;
    int32_t *released;         /* rows of blocks that go with the tasks kept, in the order of their release */
    int64_t n_released;
    int64_t n_retired;         /* of these, whose memory is for others */
    int64_t released_capacity;
    char **chunks;
    int64_t n_chunks;
    int64_t chunks_capacity;
    pto_gap *gaps;             /* memory that nobody uses, by address */
    int64_t n_gaps;
    int64_t gaps_capacity;
    int64_t open_bytes;
    int64_t released_bytes;    /* not retired */
    int64_t poisoned_bytes;    /* retired, and with poison nobody's */
    int64_t peak_bytes;        /* most of both at a time */
    int64_t held_bytes;        /* all chunks */
    int64_t max_bytes;
    int32_t first_free;        /* row, -1: none */
    bool poison;
} pto_arena;

void pto_arena_init(pto_arena *arena, int64_t max_bytes, bool poison);
void pto_arena_free(pto_arena *arena);
void pto_arena_reset(pto_arena *arena);                    /* gives all memory back */
void pto_arena_drop(pto_arena *arena);                     /* makes gaps of all that has been released */
void pto_arena_poison(pto_arena *arena);                   /* every block, where asked for */
bool pto_arena_is_full(const pto_arena *arena, int64_t bytes);         /* and a drop would help */
int64_t pto_tensor_bytes(int32_t elem_bytes, int32_t rank, const int64_t *dims);   /* of a block; -1: no such tensor */
int32_t pto_arena_fresh(pto_arena *arena, int64_t bytes, pto_tensor *out);      /* its data and buffer */
/* PTO_E_ARGUMENT: no open block of this arena */
int32_t pto_arena_release(pto_arena *arena, int32_t buffer, int64_t end_task, int64_t end_node);
/* Make gaps of released blocks, from the oldest on: of those whose users come before end_task; until no more than `left` bytes are in
   use. Returns the node that whoever takes such a gap has to run after all nodes before it; -1: there was none. */
int64_t pto_arena_retire_tasks(pto_arena *arena, int64_t end_task);
int64_t pto_arena_retire_bytes(pto_arena *arena, int64_t left);

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

/* Nodes from `from` on run after all nodes before `before`: they use memory again. Both are absolute, and grow from gate to gate. */
typedef struct pto_gate {
    int64_t before;
    int64_t from;
} pto_gate;

/* ---- graph.c: successors, for the engine. Nodes are counted from `begin`, those before it have completed. Behind the nodes of the
   record come its gates, as joins that nobody else sees ---- */
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
    uint32_t *list;            /* of a calendar, see calendar.c: [n_nodes], thread by thread; list_end: [list_threads] */
    int64_t *list_end;
    int64_t list_capacity;
    int64_t list_end_capacity;
    int32_t list_threads;      /* 0: not made */
    uint32_t max_preds;
    bool valid;
} pto_graph;

int32_t pto_graph_build(pto_graph *graph, const pto_columns *columns, const pto_gate *gates, int64_t n_gates, int64_t begin);
void pto_graph_free(pto_graph *graph);

/* ---- record.c ---- */
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
    void *hook_user;

    pthread_mutex_t graph_lock;    /* two pools may execute one record at once */
    pto_graph graph;
};

int32_t pto_record_graph(const pto_record *record, int64_t begin, const pto_graph **out);   /* built when stale */
void pto_record_drop(pto_record *record);                 /* forget the kept tasks, keep counting */
/* The shapes of arguments, shapes[i] of args[i]; false: one is invalid. */
bool pto_record_shapes(pto_record *record, int32_t site, int32_t n_args, const pto_arg *args, const pto_shape **shapes);

/* ---- columns.c: false without memory ---- */
bool pto_record_grow_tasks(pto_record *record, int64_t need);
bool pto_record_grow_nodes(pto_record *record, int64_t need);
bool pto_record_grow_edges(pto_record *record, int64_t need);
bool pto_record_grow_values(pto_record *record, int64_t n_args, int64_t n_scalars, int64_t n_index);
void pto_record_free_columns(pto_record *record);

/* ---- record.c, for marks.c ---- */
int64_t pto_record_fail(pto_record *record, int32_t status);           /* keeps the first status; -1 */
int32_t pto_record_hand_over(pto_record *record);                      /* on_full, then drop */
int32_t pto_record_add_named(pto_record *record, const int64_t *nodes, int64_t n, int32_t why);
bool pto_record_reserve_node(pto_record *record);                      /* and its edges */
int64_t pto_record_append_node(pto_record *record, uint8_t kind, int64_t task);

/* ---- marks.c: sink functions ---- */
int64_t pto_sink_mark(pto_sink *sink, const pto_mark *mark);
bool pto_reserve_marks(pto_record *record, int64_t need);
int32_t pto_sink_fresh(pto_sink *sink, pto_tensor *out, int32_t elem_bytes, int32_t rank, const int64_t *dims);
int32_t pto_sink_release(pto_sink *sink, const pto_tensor *tensor);
int32_t pto_sink_stuck(pto_sink *sink, const pto_stuck *rows, int32_t n);

/* ---- sim.c, for run.c ---- */
void pto_sim_watch(pto_sim *sim, const volatile int32_t *cancel);      /* not 0 ends the simulation; NULL: nothing does */
int64_t pto_sim_completed(const pto_sim *sim);             /* all nodes before this one have completed at its time */

/* ---- interrupt.c: on the main thread ---- */
extern const volatile int32_t pto_never_cancelled;         /* what a sink looks at outside a run */
/* From here on SIGINT cancels: sets *cancel, and ends the run of the pool that has it (NULL: there is none). False, and nothing changed: nobody
   handles the signal, or another call has it. */
bool pto_interrupt_open(pto_pool *pool, int32_t *cancel);
void pto_interrupt_close(int32_t status);                  /* back to what was; status: how the run ended */

/* ---- execute.c, for run.c: the caller holds the pool ---- */
/* Waits for other runs, and clears a stale cancel of the pool. NULL: the run has one of the pool's own. False: cancelled while it waited. */
bool pto_pool_hold(pto_pool *pool, int32_t *cancel);
void pto_pool_release(pto_pool *pool);
bool pto_pool_cancelled(pto_pool *pool);
/* Run the tasks behind `done`, which have not run; the rest has. */
int32_t pto_execute_held(pto_pool *pool, const pto_record *record, const pto_done *done, const pto_kernel *kernels,
                         int32_t n_kernels, const pto_execute_options *options, pto_execute_result *result);

#pragma GCC visibility pop

#endif
