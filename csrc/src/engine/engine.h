/* engine.h: the state that pool.c (threads, sleeping and waking) and execute.c (running a graph) share.

   The thread that calls pto_execute is worker 0; a pool of n has n - 1 helper threads. The nodes ready at the start are
   split into one contiguous range a worker, claimed in blocks; later ones go to the deque of the worker that made them
   ready. Idle workers take from other ranges and deques, spin for a while, then sleep until someone has work to share.
   Atomics that order work against sleeping are sequentially consistent: a pusher publishes, then looks for sleepers; a
   sleeper counts itself, then looks for work; so one of the two sees the other. */
#ifndef PTO_ENGINE_H
#define PTO_ENGINE_H
#include "../internal.h"

#pragma GCC visibility push(hidden)

#define PTO_CACHE_LINE 64
#define PTO_DEQUE_SIZE 4096            /* a power of two; more goes to the pool's overflow list */
#define PTO_NO_NODE UINT32_MAX
#define PTO_SPIN_NS 50000              /* as long as a few wake-ups cost */

#define PTO_CANCEL_SEEN_NS 20000000    /* how soon a run that waits for the pool sees that it is cancelled */

enum { PTO_STOP_FAILED = 1, PTO_STOP_CANCELLED = 2, PTO_STOP_GENERATION = 4 };

/* Nodes that one completion has made ready for one worker, linked through pool->below. */
typedef struct pto_batch {
    uint32_t first, last;
    int64_t n;                 /* 0: none */
} pto_batch;

/* Ready nodes, the one that goes first on top: heap.c. */
typedef struct pto_ready {
    int64_t priority;
    uint32_t node;
} pto_ready;

typedef struct pto_heap {
    _Atomic int32_t is_locked;
    _Atomic int64_t n;
    pto_ready *rows;           /* in pool->heaps */
} pto_heap;

typedef struct pto_worker {
    /* ready nodes from the start, positions in pool->start: begin << 32 | end */
    _Alignas(PTO_CACHE_LINE) _Atomic uint64_t range;
    _Alignas(PTO_CACHE_LINE) _Atomic int64_t top;          /* thieves take here */
    _Alignas(PTO_CACHE_LINE) _Atomic int64_t bottom;       /* the owner pushes and pops here */
    _Atomic uint32_t slots[PTO_DEQUE_SIZE];
    /* of queues.c */
    _Alignas(PTO_CACHE_LINE) _Atomic uint32_t inbox;       /* a stack: its top; what a node stands on is in pool->below */
    pto_heap heap;                     /* by priority, in place of the rest */
    /* the owner's own */
    _Alignas(PTO_CACHE_LINE) pto_pool *pool;
    char *scratch;                     /* aligned to PTO_CACHE_LINE */
    pto_context context;               /* of the task that runs */
    int64_t scratch_bytes;
    pto_batch *batch;                  /* [limit] for queues.c: by the worker that it is for */
    int64_t batch_capacity;
    int64_t n_run;                     /* tasks completed in this run */
    int64_t n_done;                    /* nodes completed and not yet subtracted from pool->remaining */
    uint32_t block, block_end;         /* claimed from a range */
    int32_t index;
    /* under pool->sleep_lock */
    bool asleep;
    pthread_cond_t wake;
    pthread_t thread;
} pto_worker;

struct pto_pool {
    pto_worker *workers;
    int32_t n_workers;
    int32_t n_started;                 /* helper threads running */

    pthread_mutex_t run_lock;          /* one run at a time */
    pthread_mutex_t sleep_lock;
    int32_t limit;                     /* workers of this run; written under sleep_lock while closed */
    _Alignas(PTO_CACHE_LINE) _Atomic int32_t n_asleep;     /* among the first `limit` */
    _Atomic int32_t open;              /* helpers may enter the run */
    _Atomic int32_t n_inside;          /* helpers that have */
    _Atomic int32_t shut_down;
    _Alignas(PTO_CACHE_LINE) _Atomic uint32_t stop;        /* PTO_STOP_ bits, and how many runs there were */
    int32_t *_Atomic cancel;           /* of the run that holds the pool */
    int32_t own_cancel;                /* for a run that brings none */
    _Alignas(PTO_CACHE_LINE) _Atomic int64_t remaining;    /* nodes not completed, as far as workers have said */

    /* the run, constant while open */
    const pto_record *record;
    const pto_graph *graph;
    const pto_kernel *kernels;
    const pto_arg *args;
    const int64_t *scalars;
    const int64_t *node_task;          /* from the graph's first node on */
    int64_t first_task;
    pto_sanitizer *sanitizer;          /* NULL: nothing is watched */
    pto_wall_row *wall;                /* by the numbers in node_task; NULL: nobody looks at a clock */
    bool follows;                      /* every worker runs a list: its range of start */
    bool has_queues;                   /* with homes or priorities: queues.c */
    bool has_homes;
    const int64_t *priority;           /* by the numbers in node_task; NULL: none */
    _Atomic uint32_t *pending;         /* [n_nodes] predecessors not completed, for nodes with several */
    int64_t pending_capacity;
    const uint32_t *start;             /* [n_start] ready at the start: graph->ready or our own */
    int64_t n_start;
    uint32_t *ready;                   /* our own: in another order than graph->ready, or of what is left */
    int64_t ready_capacity;
    _Atomic uint32_t *below;           /* [n_nodes] for queues.c */
    int64_t below_capacity;
    pto_ready *heaps;                  /* [n_nodes] with priorities */
    int64_t heaps_capacity;

    pthread_mutex_t overflow_lock;
    uint32_t *overflow;                /* a stack, at most n_nodes */
    int64_t overflow_capacity;
    _Atomic int64_t n_overflow;

    pthread_mutex_t failure_lock;
    _Atomic uint32_t failed_node;      /* the first in program order so far; PTO_NO_NODE: none */
    int32_t failed_guard;
    pto_fault fault;                   /* of the failed task */
};

/* pool.c */
void pto_pool_wake(pto_pool *pool, int64_t n);             /* up to n sleeping workers of this run */
void pto_pool_wake_for(pto_pool *pool, int32_t worker, int64_t n);     /* the same, this one before others */
void pto_worker_sleep(pto_worker *worker);                 /* until woken, unless there is work or an end to see */
void pto_run_open(pto_pool *pool);
void pto_run_close(pto_pool *pool);                        /* no helper is inside afterwards */
int64_t pto_now_ns(void);
void pto_pause(int32_t n);

/* prints.c: pto_context.print of a run whose prints are kept */
void pto_print_value(pto_context *context, int32_t statement, const void *data, int32_t elem_bytes, int64_t rows, int64_t cols,
                     int64_t row_step, int64_t col_step);

/* wall.c */
void pto_wall_start(pto_wall *wall);                       /* of a run: nothing is kept of the last one */
int32_t pto_wall_rows(pto_wall *wall, const pto_record *record, pto_wall_row **rows);      /* NULL: tasks have been dropped */

static inline void pto_wall_note(pto_wall_row *row, int64_t start_ns, int32_t thread)
{
    *row = (pto_wall_row){.start_ns = start_ns, .end_ns = pto_now_ns(), .thread = thread};
}

/* calendar.c */
int32_t pto_lists_take(pto_pool *pool, const pto_record *record);        /* a copy in pool->start, by the ranges of workers */
bool pto_worker_follow(pto_worker *worker);                /* run its list to the end; false if nothing is left of it */

/* queues.c */
bool pto_queues_reserve(pto_pool *pool);
void pto_queues_start(pto_pool *pool);                     /* deal out pool->start; workers have no other ready nodes */
bool pto_queues_work(pto_worker *worker);                  /* as pto_worker_work */

/* heap.c */
void pto_heap_clear(pto_heap *heap, pto_ready *rows);      /* rows: room for all that are ever in it */
void pto_heap_push(pto_pool *pool, pto_heap *heap, const pto_batch *batch);
uint32_t pto_heap_pop(pto_heap *heap);                     /* PTO_NO_NODE: it is empty */

/* random_order.c */
int32_t pto_run_in_random_order(pto_worker *worker, uint64_t seed);        /* on the calling thread alone */

/* worker.c */
typedef bool (*pto_run_node_fn)(pto_worker *worker, uint32_t at);  /* false when cancelled; a join or mark has nothing to run */
pto_run_node_fn pto_run_node_of(const pto_pool *pool);     /* plainly, with the pool's sanitizer or with its wall-clock trace */
bool pto_worker_work(pto_worker *worker);                  /* run what can be found; false if nothing was */
uint32_t pto_worker_claim(pto_worker *worker);             /* the first node of its range, and a block of those behind it; or PTO_NO_NODE */
bool pto_worker_steal_range(pto_worker *worker, pto_worker *victim);   /* the back half of it */
void pto_worker_settle(pto_worker *worker);                /* tell the run what it has completed; whoever says the last ends it */

static inline bool pto_run_over(pto_pool *pool)
{
    return atomic_load(&pool->remaining) == 0 || (atomic_load(&pool->stop) & PTO_STOP_CANCELLED) != 0;
}

static inline bool pto_must_stop(pto_pool *pool)
{
    return (atomic_load_explicit(&pool->stop, memory_order_relaxed) & PTO_STOP_CANCELLED) != 0;
}

/* The last predecessor to arrive releases the node. Seeing 1 means all others have, which saves the write. */
static inline bool pto_arrive(pto_pool *pool, uint32_t node)
{
    if (pool->graph->nodes[node].n_preds == 1)
        return true;
    _Atomic uint32_t *pending = &pool->pending[node];
    return atomic_load_explicit(pending, memory_order_acquire) == 1 ||
           atomic_fetch_sub_explicit(pending, 1, memory_order_acq_rel) == 1;
}

#pragma GCC visibility pop

#endif
