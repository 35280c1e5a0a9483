/* state.h: the state of a pool: its workers, and the run that holds it.

   The thread that calls pto_execute is worker 0; a pool of n has n - 1 helper threads. The nodes ready at the start are
   split into one contiguous range a worker, claimed in blocks; later ones go to the deque of the worker that made them
   ready. Idle workers take from other ranges and deques, spin for a while, then sleep until someone has work to share.
   Atomics that order work against sleeping are sequentially consistent: a pusher publishes, then looks for sleepers; a
   sleeper counts itself, then looks for work; so one of the two sees the other.

   Ownership: whoever made the pool owns it; it owns its workers and arrays. What a run gives is borrowed until the run ends. Units: times in
   nanoseconds of the monotonic clock, sizes in bytes; nodes by their position in the graph. */
#ifndef PTO_ENGINE_STATE_H
#define PTO_ENGINE_STATE_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../record/graph.h"
#include "../record/state.h"

#pragma GCC visibility push(hidden)

#define PTO_CACHE_LINE 64
#define PTO_DEQUE_SIZE 4096            /* a power of two; more goes to the pool's overflow list */
#define PTO_NO_NODE UINT32_MAX
#define PTO_SPIN_NS 50000              /* as long as a few wake-ups cost */

#define PTO_CANCEL_SEEN_NS 20000000    /* how soon a run that waits for the pool sees that it is cancelled */

enum { PTO_STOP_FAILED = 1, PTO_STOP_CANCELLED = 2, PTO_STOP_GENERATION = 4 };

typedef struct pto_worker pto_worker;
typedef int32_t (*pto_watch_fn)(pto_worker *worker, uint32_t at);      /* what the task's entry returned, or 1 */

/* Nodes that one completion has made ready for one worker, linked through pool->below. */
typedef struct pto_batch {
    uint32_t first, last;
    int64_t n;                 /* 0: none */
} pto_batch;

/* Ready nodes, the one that goes first on top: heap.h. */
typedef struct pto_ready {
    int64_t priority;
    uint32_t node;
} pto_ready;

typedef struct pto_heap {
    _Atomic int32_t is_locked;
    _Atomic int64_t n;
    pto_ready *rows;           /* in pool->heaps */
} pto_heap;

struct pto_worker {
    /* ready nodes from the start, positions in pool->start: begin << 32 | end */
    _Alignas(PTO_CACHE_LINE) _Atomic uint64_t range;
    _Alignas(PTO_CACHE_LINE) _Atomic int64_t top;          /* thieves take here */
    _Alignas(PTO_CACHE_LINE) _Atomic int64_t bottom;       /* the owner pushes and pops here */
    _Atomic uint32_t slots[PTO_DEQUE_SIZE];
    /* of queues.h */
    _Alignas(PTO_CACHE_LINE) _Atomic uint32_t inbox;       /* a stack: its top; what a node stands on is in pool->below */
    pto_heap heap;                     /* by priority, in place of the rest */
    /* the owner's own */
    _Alignas(PTO_CACHE_LINE) pto_pool *pool;
    char *scratch;                     /* aligned to PTO_CACHE_LINE */
    pto_context context;               /* of the task that runs */
    int64_t scratch_bytes;
    pto_batch *batch;                  /* [limit] for queues.h: by the worker that it is for */
    int64_t batch_capacity;
    _Atomic int64_t n_run;             /* tasks completed in this run; others look at it */
    int64_t n_done;                    /* nodes completed and not yet subtracted from pool->remaining */
    uint32_t block, block_end;         /* claimed from a range */
    int32_t index;
    /* under pool->sleep_lock */
    bool asleep;
    pthread_cond_t wake;
    pthread_t thread;
};

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
    pto_watch_fn watch;                /* runs a task for the sanitizer */
    pto_wall_row *wall;                /* by the numbers in node_task; NULL: nobody looks at a clock */
    pto_ranks *ranks;                  /* NULL: the tasks of all ranks run here */
    bool follows;                      /* every worker runs a list: its range of start */
    bool has_queues;                   /* with homes or priorities: queues.h */
    bool has_homes;
    const int64_t *priority;           /* by the numbers in node_task; NULL: none */
    _Atomic uint32_t *pending;         /* [n_nodes] predecessors not completed, for nodes with several */
    int64_t pending_capacity;
    const uint32_t *start;             /* [n_start] ready at the start: graph->ready or our own */
    int64_t n_start;
    uint32_t *ready;                   /* our own: in another order than graph->ready, or of what is left */
    int64_t ready_capacity;
    _Atomic uint32_t *below;           /* [n_nodes] for queues.h */
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
