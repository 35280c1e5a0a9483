/* sim_executors.h: what runs tasks in the simulator: pools of executors and their queues (sim_pools.c), the tasks of a calendar
   (sim_calendar.c), AICPUs that dispatch and retire (sim_serve.c), the memory that running tasks share (sim_memory.c).

   Executors are numbered pool by pool, in each worker by worker, so those that a queue serves follow one another. Queues are numbered
   the same: pool * n_workers + worker, or by pool where workers share them. A pool that comes later moves nothing. */
#ifndef PTO_SIM_EXECUTORS_H
#define PTO_SIM_EXECUTORS_H
#include "sim_queue.h"

#pragma GCC visibility push(hidden)

/* Clocks run only while what they count goes on, so that an interval of any executor costs two readings. */
typedef struct pto_sim_pool {
    int64_t n_executors;       /* that a worker has */
    int64_t first_executor;
    int64_t n_standing;        /* ready tasks that nobody has taken */
    int64_t late;              /* the time with n_standing > 0, up to since */
    int64_t since;
    int64_t n_unnamed;         /* pools before it that no task named, once the simulation has ended */
    bool is_named;             /* by a task */
} pto_sim_pool;

typedef struct pto_sim_queue {
    pto_sim_ready ready;
    int64_t n_waiting;         /* submitted and not ready */
    int64_t waited;            /* the time with n_waiting > 0 and none standing in the pool, up to since */
    int64_t since;
    int64_t late;              /* of the pool, at since */
    int32_t pool;
    int32_t first, n;          /* executors that it serves */
    int32_t n_idle;            /* of these */
    int64_t order, order_end;  /* with a calendar: what comes next in sim->calendar, and the end */
    pto_sim_entry asked;       /* where AICPUs take time and share nothing: the dispatch that it wants, (since, node); node -1: none */
    bool listed;               /* in sim->to_dispatch */
} pto_sim_queue;

typedef struct pto_sim_executor {
    int64_t running;           /* node that it runs or that is being dispatched to it, -1: idle */
    int64_t since;             /* idle, being given a task, or running */
    int64_t idle_waited, idle_late;    /* the clocks of its queue and pool when it became idle */
    int64_t busy, waiting, late, tasks_run;
    int64_t last_task;         /* that it ran, -1: none */
    int32_t queue;
    int32_t worker;
} pto_sim_executor;

/* An AICPU that takes time. */
typedef struct pto_sim_server {
    pto_sim_heap ended;        /* (end, node) of tasks that it is to retire */
    pto_sim_heap wanted;       /* dispatches that its queues asked for; one that its queue does not ask for any more is passed over */
    int64_t node;              /* that it dispatches or retires, -1: it is free */
    int64_t executor;          /* that it dispatches to, -1: it retires */
    bool listed;               /* in sim->to_serve */
} pto_sim_server;

/* A task that runs and asks for memory. */
typedef struct pto_sim_flow {
    double end;                /* on the memory's clock */
    double asks;               /* bytes a cycle */
    int64_t executor;
} pto_sim_flow;

typedef struct pto_sim_memory {
    pto_sim_flow *flows;       /* a heap by (end, executor) */
    int64_t n, capacity;
    double clock;              /* how far tasks that ask have come, at since */
    double factor;             /* by which they are slowed down, >= 1 */
    int64_t since;
    bool is_stale;             /* the factor */
} pto_sim_memory;

#pragma GCC visibility pop

#endif
