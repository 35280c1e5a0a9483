/* ranks.h: a run of one rank's part of a plan, where a caller's function moves the copies between ranks. */
#ifndef PTO_ENGINE_RANKS_H
#define PTO_ENGINE_RANKS_H
#include "state.h"

#pragma GCC visibility push(hidden)

/* What a node is to this rank. */
typedef enum pto_side {
    PTO_SIDE_RUN,              /* a task of this rank */
    PTO_SIDE_SMALL,            /* the same, and so short that the thread that moves copies may run it */
    PTO_SIDE_PASS,             /* a task of other ranks: it takes no time here */
    PTO_SIDE_MOVE              /* a copy to or from another rank */
} pto_side;

struct pto_ranks {
    pto_ranks_options options;
    uint8_t *side;             /* [n_nodes] a pto_side */
    int64_t *order;            /* [n_nodes] of copies: which one between their two ranks, from 0 in program order */
    int64_t side_capacity, order_capacity;
    int64_t *n_copies;         /* [2 * n_ranks] in this run so far: to each rank, then from each */
    int64_t copies_capacity;
    pthread_mutex_t lock;
    pto_transfer *ready;       /* under lock: copies that may be moved; and worker 0's, being handed over */
    pto_transfer *given;
    int64_t n_ready, ready_capacity, given_capacity;
    _Atomic int64_t n_waiting; /* n_ready, for a look without the lock */
    _Atomic int32_t n_busy;    /* workers that run a task */
    _Atomic int32_t *runs;     /* [workers] the site of the task that each runs, + 1; 0: none. What any thread may look at, under lock */
    pthread_cond_t wake;       /* under lock: worker 0 sleeps until a copy is ready, or a worker has no more to run */
    bool is_asleep, was_woken;
    uint64_t *kept;            /* by key: the handle of the request that moves the copy; 0: none */
    pto_transfer *open;        /* [n_open] what `start` has begun, the oldest first, and the handles beside */
    char *requests, *statuses;
    int32_t *done;
    int64_t n_open, kept_capacity, open_capacity, requests_capacity, statuses_capacity, done_capacity, runs_capacity;
    int32_t error;             /* of `start` or `test` */
    int64_t *ended;            /* nodes of copies that have been moved */
    uint32_t *todo;            /* worker 0's stack of nodes that are ready */
    int64_t ended_capacity, todo_capacity;
};

void pto_ranks_start(pto_ranks *ranks);                    /* a run begins: no copy has been moved */
bool pto_ranks_prepare(pto_pool *pool, pto_ranks *ranks);  /* find the side of every node of the pool's graph; false: no memory */
void pto_ranks_defer(pto_worker *worker, uint32_t node);   /* a copy is ready */
int64_t pto_ranks_begin(pto_ranks *ranks);                 /* begin what is ready; returns how many of it are `given`, for progress to begin */
int64_t pto_ranks_test(pto_ranks *ranks);                  /* `ended` are those that `start` has begun and that have ended; returns how many */
void pto_ranks_sleep(pto_ranks *ranks, int64_t most_ns);   /* worker 0 passes a time in which nothing is to be done */
void pto_ranks_wake(pto_ranks *ranks);                     /* from any thread */
void pto_ranks_spread(const pto_ranks *ranks);             /* give all copies of what control reads this rank's contents */

/* Run a node's kernel on the side of this rank, or say what stands in its place. */
static inline pto_side pto_side_of(const pto_worker *worker, uint32_t node)
{
    return (pto_side)worker->pool->ranks->side[node];
}

#pragma GCC visibility pop

#endif
